"""A chat model of LangChain that follows a script, and keeps what it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

EMPTY = "PREFIX : <http://example.org/> SELECT ?x WHERE { :arrival :nothing ?x }"
FULL = "PREFIX : <http://example.org/> SELECT ?x WHERE { :arrival :director ?x }"


class ScriptedChat(BaseChatModel):
    asked: ClassVar[list[str]] = []
    """The last message of each request, of all models together."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Runnable[Any, Any]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **options)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **options: Any,
    ) -> ChatResult:
        said = str(messages[-1].content)
        self.asked.append(said)
        usage = {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}
        message = AIMessage(content=f"reply to {said}", usage_metadata=usage)
        if options.get("tools"):
            call = {"name": "take_name", "args": {"name": "Arrival"}, "id": "call-1"}
            message = AIMessage(content="", tool_calls=[call], usage_metadata=usage)
        elif said.startswith("Draft"):
            message = AIMessage(EMPTY if said.startswith("Draft 0") else FULL, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])
