"""The entries of a run file: made of a run, and read into one. See ``docs/run_format.md``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kgwb.disk import __version__
from kgwb.kg import GraphSource, open_kg
from kgwb.kg.base import Vocabulary
from kgwb.kg.embeddings import Embeddings
from kgwb.llm.base import Message
from kgwb.llm.notice import DataNotice
from kgwb.records import JsonObject, from_data, to_data
from kgwb.run.agents import System
from kgwb.run.answers import Dialogue
from kgwb.run.calls import Call
from kgwb.run.engine import Engine
from kgwb.run.prompts import Prompts
from kgwb.run.run_file import FORMAT_VERSION, current_settings
from kgwb.terms import Triples

# Made of a run


def make_header(run: Engine) -> JsonObject:
    """Return the first entry of a run's file: what the run is, without calls and results.

    It has format and version, id, system, question, dialogue, settings, models by agent, graph and
    prompts. Models are the present ones, and the recorded ones for agents without a model.
    "system_from" is only there for a system from outside of kgwb. The prompts are the texts that
    were used and the person's own; the latter win.
    """
    models = dict(run.recorded_models)
    for agent_name, model in run.models.items():
        models[agent_name] = model.name
    origin = {}
    if run.system.origin:
        origin["system_from"] = run.system.origin
    return {
        "kgwb_run": FORMAT_VERSION,
        "kgwb": __version__,
        "id": run.id,
        "created": run.created,
        "system": run.system.name,
        **origin,
        "question": run.question,
        "dialogue": to_data(run.dialogue),
        "settings": run.settings.to_data(),
        "models": models,
        "embeddings": run.embeddings.name,
        "graph": run.kg.identity,
        "source": run.kg.source,
        **run.kg.muted_data,
        "vocabulary": to_data(run.kg.vocabulary),
        "prompts": {**run.used_prompts, **run.prompts.texts},
    }


def make_state_entries(run: Engine) -> list[JsonObject]:
    """Return the entries of a run that are known before it ends, as JSON data, in this order.

    The header, the notices of what left the machine, the recorded calls, the values put in, and the
    messages put in.
    """
    entries = [make_header(run)]
    for notice in run.notices:
        entries.append({"notice": to_data(notice)})
    for call in list(run.calls.values()):
        entries.append({"call": call.to_data()})
    for key, value in run.overrides.items():
        entry = make_override_entry(run, key, value)
        entries.append(entry)
    for (key, number), messages in run.edited_messages.items():
        entry = make_messages_entry(key, number, messages)
        entries.append(entry)
    return entries


def make_override_entry(run: Engine, key: str, value: Any) -> JsonObject:
    """Return the entry for a value that a person put in for a step or agent."""
    output_type = run.system.agent_spec(key).output_type
    data = to_data(value, output_type)
    return {"override": {"step": key, "value": data}}


def make_messages_entry(key: str, number: int, messages: Sequence[Message] | None) -> JsonObject:
    """Return the entry for messages that a person put in for a model call; None removes them."""
    data = None
    if messages is not None:
        data = [[message.role, message.content] for message in messages]
    return {"messages": {"step": key, "call": number, "value": data}}


def make_end_entry(run: Engine) -> JsonObject:
    """Return the "end" entry of the latest execution: status, position, answer, error and totals.

    The answer is None if there is none. The error is its message, "" without one.
    """
    answer = None
    if run.answer is not None:
        answer = to_data(run.answer)
    error = ""
    if run.error is not None:
        error = run.error.message
    return {
        "end": {
            "status": run.status,
            "position": run.position,
            "answer": answer,
            "error": error,
            "totals": to_data(run.totals),
        }
    }


def make_entries(run: Engine) -> list[JsonObject]:
    """Return all entries of a saved run: header, calls, values put in, messages put in, steps, end.

    An output that is the reply of one of the step's calls is written once (``_without_replies``).
    """
    entries = make_state_entries(run)
    replies = {}
    for entry in entries:
        if "call" in entry:
            replies[entry["call"]["key"]] = entry["call"]["reply"]
    for step in run.steps:
        entries.append({"step": _without_replies(step.to_data(), replies)})
    entries.append(make_end_entry(run))
    return entries


def _without_replies(step: JsonObject, replies: Mapping[str, Any]) -> JsonObject:
    """Return the data of a step, without an output that is the reply of one of its own calls.

    In its place ``output_of_call`` has the key of the first such call, and ``output`` is None: the
    survey of a graph is as large as all the rest of a run. ``replies`` are by key. An output that
    is empty, or no list or object, stays.
    """
    output = step["output"]
    if isinstance(output, dict | list) and output:
        for key in step["calls"]:
            if replies.get(key) == output:
                return {**step, "output": None, "output_of_call": key}
    return step


# Read into a run


def run_arguments(header: JsonObject, system: System, kg: GraphSource | None) -> dict[str, Any]:
    """Return the arguments of ``Run`` that the header of a run file describes.

    These are question, dialogue, kg, settings, prompts and embeddings. Settings are
    read as ``current_settings`` says; one that has been removed is left out. ``kg`` is the graph to ask,
    if there is one, which is opened; the triples that were muted in it are muted again. Embeddings that the file
    names are not loaded: a file could name any.
    """
    muted = from_data(header.get("muted", []), Triples)
    graph = open_kg(kg) if kg is not None else None
    if graph is not None and muted:
        graph = graph.without(*muted)
    saved_settings = current_settings(header["settings"], system.name)
    settings = system.settings.select_known(saved_settings)
    return {
        "question": header["question"],
        "dialogue": from_data(header["dialogue"], Dialogue),
        "kg": graph,
        "settings": system.settings.of(settings),
        "prompts": Prompts(texts=from_data(header["prompts"], dict[str, str])),
        "embeddings": Embeddings(from_data(header["embeddings"], str), trusted=False),
    }


def read_header(run: Engine, header: JsonObject) -> None:
    """Set id, time of creation and recorded models of a run to those of a file's header.

    Of a run without a graph, also set the graph's identity, vocabulary and muted triples. The run
    has been made with ``run_arguments``, which has the rest of the header.
    """
    run.id = from_data(header["id"], str)
    run.created = from_data(header["created"], str)
    identity = from_data(header["graph"], str)
    vocabulary = from_data(header["vocabulary"], Vocabulary)
    if run.unrecorded_graph is None:
        run.kg.identity = identity
        run.kg.vocabulary = vocabulary
        run.kg.muted = from_data(header.get("muted", []), Triples)
    run.recorded_models = from_data(header["models"], dict[str, str])


def read_entries(run: Engine, entries: Iterable[JsonObject]) -> None:
    """Add what a file's entries hold to a run: calls, notices, prompts, settings, values and messages put in.

    Of several entries for the same prompt or step the last one counts. ``recorded_status`` and
    ``recorded_position`` are set to those of the last "end" entry. If calls come after it, the
    status is "": the execution that made them was killed. "step" entries are ignored. Raises
    KeyError or ValueError for an entry of another form.
    """
    for entry in entries:
        if "call" in entry:
            call = Call.from_data(entry["call"])
            run.calls[call.key] = call
            run.recorded_status = ""
        elif "notice" in entry:
            run._record.add_notice(from_data(entry["notice"], DataNotice))
        elif "prompt" in entry:
            prompt = entry["prompt"]
            run.prompts = run.prompts.with_text(prompt["name"], prompt["text"])
        elif "settings" in entry:
            saved_settings = current_settings(entry["settings"], run.system.name)
            settings = run.system.settings.select_known(saved_settings)
            run.settings = run.system.settings.of(settings)
        elif "override" in entry:
            _read_override(run, entry["override"])
        elif "messages" in entry:
            _read_messages(run, entry["messages"])
        elif "end" in entry:
            end = entry["end"]
            run.recorded_status = end["status"]
            run.recorded_position = end["position"]


def _read_override(run: Engine, data: JsonObject) -> None:
    """Put in the value of an "override" entry for its step; None removes an earlier value.

    The value is JSON data of the type of the agent's
    output. Raises SettingError if the system has no such agent, and what ``from_data`` raises.
    """
    key = data["step"]
    value = data["value"]
    if value is None:
        run.overrides.pop(key, None)
        return
    output_type = run.system.agent_spec(key).output_type
    run.overrides[key] = from_data(value, output_type)


def _read_messages(run: Engine, data: JsonObject) -> None:
    """Put in the messages of a "messages" entry for a step's model call; None removes earlier ones.

    The call is given by its number. Raises KeyError or a ValueError for data of another form.
    """
    step_key = from_data(data["step"], str)
    number = from_data(data["call"], int)
    place = (step_key, number)
    if data["value"] is None:
        run.edited_messages.pop(place, None)
        return
    messages = []
    for role, content in data["value"]:
        message: Message = from_data({"role": role, "content": content}, Message)
        messages.append(message)
    run.edited_messages[place] = tuple(messages)


def last_status(entries: Iterable[JsonObject]) -> str:
    """Return the status of the last "end" entry; empty if there is none."""
    status = ""
    for entry in entries:
        if "end" in entry:
            status = entry["end"]["status"]
    return status
