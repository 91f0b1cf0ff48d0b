"""The question of DoG: finding its topic entities, and the debate that makes it one hop shorter."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from kgwb.build import (
    Candidate,
    Check,
    Context,
    Link,
    Reply,
    Run,
    Value,
    agent,
    ask_model,
    find_problems,
    link_entity,
)
from kgwb.systems.dog.records import (
    BRACKET_REPLACEMENTS,
    BRACKETED_NAME,
    FilledTriples,
    Head,
    HopInput,
    Remark,
    SimplifiedQuestion,
    SolvedHop,
    TopicEntities,
    collapse_spaces,
    normalize_name,
    remove_brackets,
)
from kgwb.systems.dog.settings import DogSettings

MAX_LABEL_WORDS = 8
"""Words of the longest label of the graph that is looked for in a question."""
MAX_NAME_CHARS = 200
"""Characters of a name that are compared with labels."""

# Topic entities


class TopicReply(Reply):
    """The names in the question, as written there."""

    entities: list[str]
    """Names as the question has them."""


def find_topic_problems(topics: TopicEntities, question: str) -> Iterator[str]:
    """Yield what is wrong with topic entities that a person put in; nothing if they are valid.

    There must be at least one, and they must be exactly the names in brackets in their question.
    The parameter ``question`` is not used.
    """
    marked = BRACKETED_NAME.findall(topics.question)
    if not topics.entities:
        yield "there is no topic entity: the walk over the graph begins at one"
    for name in topics.entities:
        if name not in marked:
            yield f"[{name}] is not in the question"
    for name in marked:
        if name not in topics.entities:
            yield f"[{name}] is in brackets, but it is not a topic entity"


@agent("topic_entity", check=find_topic_problems, kind="model")
def find_topic_entities(question: str, run: Run) -> TopicEntities:
    """Find the topic entities of a question, and put their names into brackets.

    In the paper they are given with the question (Task Formulation): the model is not asked if the
    question has names in brackets already. The setting ``topic_entities`` says whether all are
    used, or the first in the question. If none of the model's replies passes the checks, the names
    of the last one are replaced as in ``_resolve_names``. Raises InvalidReplyError if this leaves
    no name.
    """
    if run.dialogue.turns:
        run.note("DoG does not use the dialogue: it reads each question alone")
    marked = BRACKETED_NAME.findall(question)
    if marked:
        topics = TopicEntities(question, tuple(dict.fromkeys(marked)))
    else:
        topics = _ask_for_topic_entities(question, run)
    if DogSettings.of_run(run).topic_entities == "first" and len(topics.entities) > 1:
        return _keep_first_entity(topics, run)
    return topics


def _keep_first_entity(topics: TopicEntities, run: Run) -> TopicEntities:
    """Return the first topic entity alone, with brackets around it only, and note which others are left out."""
    first, *others = topics.entities
    run.note(f"the walk starts at [{first}] alone, not at {', '.join(others)} (topic_entities)")
    plain_question = remove_brackets(topics.question)
    return bracket_names(plain_question, [first])


def _ask_for_topic_entities(question: str, run: Run) -> TopicEntities:
    """Ask the model for the names in a question, and return them put into brackets.

    If no reply passes ``make_topic_checks``, the names of the last one are resolved by
    ``_resolve_names``. The step has a note if names were replaced. Raises InvalidReplyError if no
    name is left.
    """

    def can_be_resolved(reply: TopicReply) -> bool:
        """Return whether the names of a reply can be resolved to at least one name in the question."""
        return bool(_resolve_names(question, reply, run))

    reply = ask_model(
        "dog/topic_entity",
        {"question": question},
        TopicReply,
        run,
        checks=make_topic_checks(question),
        last_resort=can_be_resolved,
    )
    names = _resolve_names(question, reply, run)
    if names != _clean_names(reply):
        run.note(f"these names in the question replace those of the model: {', '.join(names)}")
    return bracket_names(question, names)


def _clean_names(reply: TopicReply) -> list[str]:
    """Return the names of a reply, each once and with single spaces."""
    return list(dict.fromkeys(map(collapse_spaces, reply.entities)))


def _resolve_names(question: str, reply: TopicReply, run: Run) -> list[str]:
    """Return the names of a reply that the question has, in their order, replaced where it lacks them.

    A name that the question does not have is replaced by the label of the graph that the question
    has and that is nearest to it (``_find_nearest_label``), or left out if there is none. A name
    that is part of another one is left out.
    """
    found = []
    for name in _clean_names(reply):
        if name and _find_name(question, name):
            found.append(name)
        else:
            found.append(_find_nearest_label(name, question, run))
    names = dict.fromkeys(filter(None, found))
    return [name for name in names if not _is_part_of_another(name, names)]


def _is_part_of_another(name: str, names: Iterable[str]) -> bool:
    return any(name != other and name in other for other in names)


def _find_nearest_label(name: str, question: str, run: Run) -> str:
    """Return the label of the graph that the question has and that is most similar to a name; "" if none is.

    It is the one with the most similar spelling (``difflib.get_close_matches``). If none is
    similar, it is the longest one whose words are all words of the name. At most MAX_NAME_CHARS
    characters of the name are compared. One request is sent to the graph.
    """
    labels = {}
    for label in run.kg.exact(_list_phrases(question)):
        labels[normalize_name(label)] = label
    wanted = normalize_name(name)[:MAX_NAME_CHARS]
    nearest = get_close_matches(wanted, labels, 1)
    if nearest:
        return labels[nearest[0]]
    words = set(re.findall(r"\w+", wanted))
    contained = [label for label in labels if words.issuperset(label.split())]
    if not contained:
        return ""
    longest = sorted(contained, key=len)[-1]
    return labels[longest]


def _list_phrases(question: str) -> list[str]:
    """Return every sequence of at most MAX_LABEL_WORDS words of a question, as written.

    They come by their first word, shorter ones first; repetitions are kept.
    """
    words = list(re.finditer(r"\w+", question))
    phrases = []
    for position, first in enumerate(words):
        for last in words[position : position + MAX_LABEL_WORDS]:
            phrases.append(question[first.start() : last.end()])
    return phrases


def make_topic_checks(question: str) -> tuple[Check[TopicReply], ...]:
    """Return the two checks that a model's topic entities must pass.

    The first is that there is at least one. The second is that each name is in the question, and
    none is part of another; its problem names all that are absent, or else the first that is a
    part.
    """

    def find_lack(reply: TopicReply) -> str:
        """Return what is wrong if a reply has no name, else ""."""
        if reply.entities:
            return ""
        return f"no entity is named: name what {question!r} is about"

    def find_wrong_names(reply: TopicReply) -> str:
        """Return a problem with all names not in the question, else with the first that is part of another; else ""."""
        names = _clean_names(reply)
        absent = [repr(name) for name in names if not name or not _find_name(question, name)]
        if absent:
            return f"{', '.join(absent)} is not in the question: copy the names from {question!r}"
        for name in names:
            if _is_part_of_another(name, names):
                return f"{name!r} is part of another name"
        return ""

    return (
        Check("at least one entity", find_lack),
        Check("copied from the question", find_wrong_names),
    )


def bracket_names(question: str, names: Sequence[str]) -> TopicEntities:
    """Put the first mention of each name in a question into brackets, and return question and names.

    The longest names come first, so that a name inside another is looked for afterwards. Whole
    words are preferred, and letter case is ignored. The names are spelled as in the question and in
    its order; a name that it does not have is left out.
    """
    spelled = []
    for name in sorted(names, key=len, reverse=True):
        match = _find_name(question, name)
        if match:
            spelled.append(match[0])
            start, end = match.span()
            question = f"{question[:start]}[{match[0]}]{question[end:]}"
    entities = sorted(dict.fromkeys(spelled), key=question.index)
    return TopicEntities(question, tuple(entities))


def give_topic(run: Run, find: Callable[[], Candidate | None]) -> None:
    """Put in the topic entity that the question set gives, with its vertex, if ``topic_given`` is on.

    Nothing then asks for either. A label that the question does not have is put behind it. Brackets
    in a label are replaced (BRACKET_REPLACEMENTS). ``find`` is called only with ``topic_given``.
    """
    if not DogSettings.of_run(run).topic_given:
        return
    topic = find()
    if topic is None:
        return
    question = remove_brackets(run.question)
    label = topic.label.translate(BRACKET_REPLACEMENTS)
    if not _find_name(question, label):
        question = f"{question} {label}"
    topics = bracket_names(question, [label])
    name = topics.entities[0]
    run.override("topic_entity", topics)
    link = Link(name, topic, (topic,), "given by the question set")
    run.override(f"entity_linking[{name}]", link)


def _find_name(question: str, name: str) -> re.Match[str] | None:
    """Return the first match of a name in a question: as whole words, else anywhere.

    Letter case is ignored. Returns None if the question does not have the name.
    """
    escaped = re.escape(name)
    as_words = re.search(rf"(?<!\w){escaped}(?!\w)", question, re.IGNORECASE)
    return as_words or re.search(escaped, question, re.IGNORECASE)


def link_topic_entities(topics: TopicEntities, run: Run) -> tuple[HopInput, tuple[Link, ...]]:
    """Link each topic entity to a vertex, and return the input of the first hop and all links.

    The input has a head for each entity with a vertex; it may have none. The links are in the order
    of the entities. Each is linked by itself, without a dialogue, and by what ``link_entity`` asks.
    """
    plain_question = remove_brackets(topics.question)
    links = run.map(link_entity, topics.entities, plain_question, Context())
    heads = []
    for link in links:
        if link.vertex:
            iri = link.vertex.iri
            value = Value(iri, link.vertex.label)
            heads.append(Head(link.entity, (value,), (iri,)))
    return HopInput(topics.question, tuple(heads)), links


# Question simplifying

SolvedHops = tuple[SolvedHop, ...]
HopResults = tuple[FilledTriples, ...]
Debate = tuple[Remark, ...]
RoleAgent = Callable[[str, str, SolvedHops, Debate, HopResults, Run], Remark]


class RemarkReply(Reply):
    """What a role says to the others, and the question it proposes."""

    remark: str
    question: str
    """The shorter question that it proposes."""


def find_question_problems(override: SimplifiedQuestion | Remark, *inputs: object) -> Iterator[str]:
    """Yield a problem if the question, in a simplified question or a remark of a person, is empty."""
    if not override.question.strip():
        yield "the question is empty"


@agent("simplifying", check=find_question_problems)
def simplify_question(
    question: str, solved: SolvedHops, filled: HopResults, run: Run
) -> SimplifiedQuestion:
    """Let roles debate how the question reads without the hops that are solved.

    The roles of the setting ``ablation`` speak one after another, in at most ``debate_rounds``
    rounds, and each sees all earlier remarks (DoG, "Question Simplifying"). The setting
    ``debate_end`` says when the debate ends: with the first question that passes
    ``make_question_checks``, after a round in which all proposed the same, or after the last round.
    A role that speaks alone agrees when it proposes the same as in the round before.
    The question of the last remark is the result. ``filled`` has the result of each hop in
    ``solved``.
    """
    settings = DogSettings.of_run(run)
    checks = make_question_checks(question, solved)
    debate: Debate = ()
    roles = ROLE_AGENTS_BY_ABLATION[settings.ablation]
    agreeing = max(len(roles), 2)
    for number in range(1, settings.max_debate_rounds + 1):
        for speak in roles:
            remark = speak(f"round {number}", question, solved, debate, filled, run)
            debate = (*debate, remark)
            if settings.debate_end == "first_valid" and goes_on(remark.question, checks):
                return SimplifiedQuestion(remark.question, question, debate)
        proposals = [remark.question for remark in debate[-agreeing:]]
        if settings.debate_end == "agreed" and proposals == [remark.question] * agreeing:
            break
    return SimplifiedQuestion(debate[-1].question, question, debate)


def goes_on(question: str, checks: Sequence[Check[RemarkReply]]) -> bool:
    """Return whether a question passes the checks, which are those of ``make_question_checks``."""
    proposal = RemarkReply(remark="", question=question)
    return not any(find_problems(proposal, checks))


def _make_role_agent(role: str, purpose: str) -> RoleAgent:
    """Return an agent that speaks as one role of the debate, named like the role, as its prompt is.

    ``purpose`` becomes the docstring of the agent. With the setting ``remark_checks`` "every_role",
    its question must pass ``make_question_checks``; it must not be empty in any case. If no reply
    passes, the question of the last one is used as it is, unless it is empty, and the step has a
    note. Otherwise the agent raises InvalidReplyError.
    """

    def speak(
        place: str, question: str, solved: SolvedHops, debate: Debate, filled: HopResults, run: Run
    ) -> Remark:
        """Ask the model, as this role, for a remark and a shorter question; it sees all earlier remarks.

        Returns both with single spaces between words. The docstring is replaced by ``purpose``.
        """
        earlier = []
        for remark in debate:
            remark_data = {
                "role": remark.role,
                "remark": remark.words,
                "question": remark.question,
            }
            earlier.append(remark_data)
        settings = DogSettings.of_run(run)
        checks: Sequence[Check[RemarkReply]] = (Check("a question", _find_empty_question),)
        if settings.remark_checks == "every_role":
            checks = make_question_checks(question, solved)
        reply = ask_model(
            f"dog/{role}",
            {
                "question": question,
                "solved": _describe_hops(solved, filled, run),
                "debate": earlier,
            },
            RemarkReply,
            run,
            checks=checks,
            last_resort=_has_question,
            max_examples=settings.simplifying_exemplars,
        )
        words = collapse_spaces(reply.remark)
        shorter_question = collapse_spaces(reply.question)
        return Remark(role.replace("_", " "), words, shorter_question)

    speak.__doc__ = purpose
    return agent(role, subject="place", check=find_question_problems, kind="model")(speak)


def _has_question(reply: RemarkReply) -> bool:
    return bool(reply.question.strip())


def _find_empty_question(reply: RemarkReply) -> str:
    """Return what is wrong with a reply without a question, else ""."""
    return "" if _has_question(reply) else "no question is proposed"


def _describe_hops(solved: SolvedHops, filled: HopResults, run: Run) -> list[dict[str, Any]]:
    """Return the solved hops as data for the prompts of the roles, in their order.

    Each has the names of head, relation and tails, the number of tails that the name stands for,
    and the first ``role_triples`` triples. If ``fan_out`` cut the tails, "cut" says how many
    were found.
    """
    limit = DogSettings.of_run(run).role_triples
    described = []
    for hop, result in zip(solved, filled, strict=False):
        hop_data = {
            "entity": hop.entity,
            "relation": hop.relation,
            "found": hop.found,
            "count": len(result.values),
            "examples": list(map(list, result.triples[:limit])),
        }
        if len(result.values) < result.found:
            kept = len(result.values)
            hop_data["cut"] = f"the first {kept:,} of {result.found:,} that were found"
        described.append(hop_data)
    return described


simplify_as_expert = _make_role_agent(
    "simplifying_expert", "Answer the first hop, and put the name of its result in its place (R1)."
)
simplify_as_critic = _make_role_agent(
    "critic", "Compare the new question with the old one, name errors, and repair them (R2)."
)
simplify_as_linguist = _make_role_agent(
    "linguist", "Remove from the question what is solved, and end the round (R3)."
)
simplify_as_fused_agent = _make_role_agent(
    "fused_agent", "Do the tasks of all three roles in one step (QS' of Table 2)."
)
THREE_ROLES = (simplify_as_expert, simplify_as_critic, simplify_as_linguist)
ROLE_AGENTS_BY_ABLATION: dict[str, tuple[RoleAgent, ...]] = {
    "none": THREE_ROLES,
    "no_linguist": (simplify_as_expert, simplify_as_critic),
    "expert_only": (simplify_as_expert,),
    "fused_agent": (simplify_as_fused_agent,),
}
"""The roles of a round in their order, by the setting ``ablation`` (DoG, Table 2).

There is no debate with "no_focusing".
"""


def make_question_checks(
    question: str, solved: Sequence[SolvedHop]
) -> tuple[Check[RemarkReply], ...]:
    """Return the two checks of a question that must be shorter than ``question`` by the solved hops.

    The first is that it has in brackets what each hop found, and each name that the old question
    has in brackets and from which no hop started. The second is that it no longer has in brackets
    the names from which the hops started, unless a hop found the same name. Letter case and white
    space are ignored.
    """
    heads = [hop.entity for hop in solved]
    found = [hop.found for hop in solved]
    forbidden = sorted(set(heads).difference(found))
    required = list(found)
    normalized_heads = set(map(normalize_name, heads))
    for name in BRACKETED_NAME.findall(question):
        if normalize_name(name) not in normalized_heads:
            required.append(name)

    def find_missing(reply: RemarkReply) -> str:
        """Return a problem with the required names that a proposed question does not have in brackets; "" if none."""
        missing = []
        for name in required:
            if not _has_in_brackets(reply, name):
                missing.append(f"[{name}]")
        if missing:
            return f"the question does not go on from {', '.join(missing)}"
        return ""

    def find_remaining(reply: RemarkReply) -> str:
        """Return a problem with the solved names that a proposed question still has in brackets; "" if none."""
        remaining = []
        for name in forbidden:
            if _has_in_brackets(reply, name):
                remaining.append(f"[{name}]")
        if remaining:
            return f"the question still names {', '.join(remaining)}, which is solved"
        return ""

    return (
        Check("goes on from what was found", find_missing),
        Check("the solved entity is gone", find_remaining),
    )


def _has_in_brackets(reply: RemarkReply, name: str) -> bool:
    return f"[{normalize_name(name)}]" in normalize_name(reply.question)
