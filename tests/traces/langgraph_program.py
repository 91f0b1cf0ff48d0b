"""Record the trace of a LangGraph program over the sample films, with a scripted chat model."""

import base64
import json
import sys
from pathlib import Path
from typing import TypedDict

from google.protobuf.json_format import MessageToDict
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rdflib import Graph

provider = TracerProvider()
memory = InMemorySpanExporter()
provider.add_span_processor(SimpleSpanProcessor(memory))
LangChainInstrumentor().instrument(tracer_provider=provider)
FILMS = Path(__file__).parents[2] / "sample_kgs" / "films.ttl"
kg = Graph().parse(FILMS)

WRONG = "PREFIX f: <https://kgwb.example/films/>\nSELECT ?who WHERE { f:Dune f:producer ?who }"
RIGHT = "PREFIX f: <https://kgwb.example/films/>\nSELECT ?who WHERE { f:Arrival f:director ?who }"


def reply(text, prompt, completion):
    usage = {
        "input_tokens": prompt,
        "output_tokens": completion,
        "total_tokens": prompt + completion,
    }
    return AIMessage(
        content=text, usage_metadata=usage, response_metadata={"model_name": "gpt-4o-mini"}
    )


class Model(GenericFakeChatModel):
    model_name: str = "gpt-4o-mini"
    temperature: float = 0.2

    @property
    def _identifying_params(self):
        return {"model_name": self.model_name, "temperature": self.temperature}


llm = Model(
    messages=iter(
        [
            reply(WRONG, 61, 24),
            reply(RIGHT, 88, 24),
            reply("Denis Villeneuve directed Arrival.", 40, 9),
        ]
    )
)


class State(TypedDict, total=False):
    question: str
    query: str
    rows: list
    answer: str


@tool
def sparql(query: str) -> str:
    """Run a SPARQL query on the films."""
    return json.dumps([[str(cell) for cell in row] for row in kg.query(query)])


def draft(state: State) -> State:
    messages = [
        ("system", "Write one SPARQL query for the question. Answer with the query only."),
        ("user", state["question"]),
    ]
    if state.get("query"):
        messages.append(("assistant", state["query"]))
        messages.append(("user", "This query has no rows. Write another one."))
    return {"query": llm.invoke(messages).content}


def execute(state: State) -> State:
    return {"rows": json.loads(sparql.invoke({"query": state["query"]}))}


def say(state: State) -> State:
    found = json.dumps(state["rows"])
    messages = [
        ("system", "Answer in one sentence."),
        ("user", f"{state['question']}\nRows: {found}"),
    ]
    return {"answer": llm.invoke(messages).content}


graph = StateGraph(State)
graph.add_node("draft", draft)
graph.add_node("execute", execute)
graph.add_node("say", say)
graph.add_edge(START, "draft")
graph.add_edge("draft", "execute")
graph.add_conditional_edges("execute", lambda state: "say" if state["rows"] else "draft")
graph.add_edge("say", END)
graph.compile().invoke({"question": "Who directed Arrival?"})

data = MessageToDict(encode_spans(memory.get_finished_spans()), use_integers_for_enums=True)
for resource in data["resourceSpans"]:
    for scope in resource["scopeSpans"]:
        for span in scope["spans"]:
            for key in ("traceId", "spanId", "parentSpanId"):
                if key in span:
                    span[key] = base64.b64decode(span[key]).hex()
Path(sys.argv[1]).write_text(json.dumps(data, ensure_ascii=False) + "\n")
