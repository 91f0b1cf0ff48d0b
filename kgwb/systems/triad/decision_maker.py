"""Triad's decision-maker: it only ever chooses among options that it is offered (section 3.2).

The options are vertices, relations, and the queries that a template makes of these.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from itertools import chain, islice, product
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

from pydantic import StrictInt
from rdflib import BNode, Literal, URIRef

from kgwb.build import (
    OPPOSITE_DIRECTION,
    Candidate,
    CandidateQuery,
    Check,
    Direction,
    GraphTimeoutError,
    JsonObject,
    QueryError,
    Reply,
    RetrievedCandidates,
    Run,
    Term,
    agent,
    analyze_query,
    compute_similarities,
    describe_vertices,
    find_paths_over_containers,
    find_predicates,
    is_decided_unasked,
    label_terms,
    n3,
    number_candidates,
    patterns_to_sparql,
    retrieve_candidates,
    shorten,
    tell_rows_apart,
    union_clause,
    values_clause,
)
from kgwb.systems.triad.generalist import RelationTerm, ask_in_attempt, fill_template, list_mentions
from kgwb.systems.triad.records import (
    Choice,
    Faults,
    Filled,
    Phase,
    Queries,
    Relation,
    Triplet,
    Triplets,
)
from kgwb.systems.triad.settings import TriadSettings

Option = Candidate | Relation | Filled
"""What the model chooses from: vertices, relations, or queries."""


class ChoiceReply(Reply):
    """The numbers of what is chosen, best first, after why."""

    reason: str
    numbers: list[StrictInt]

    @property
    def chosen(self) -> Sequence[int]:
        """The keys of what is chosen: numbers, which begin at 1."""
        return self.numbers

    def describe_unknown(self, key: object, options: Sized) -> str:
        """Return what is wrong with a number that no option has."""
        return f"there is no number {key}; they go from 1 to {len(options)}"


class UrisReply(Reply):
    """The URIs that are chosen, the most likely first."""

    uris: list[str]
    reason: ClassVar = ""

    @property
    def chosen(self) -> Sequence[str]:
        """The keys of what is chosen: URIs, without the white space and angle brackets around them."""
        return [uri.strip().removeprefix("<").removesuffix(">") for uri in self.uris]

    def describe_unknown(self, key: object, options: Sized) -> str:
        """Return what is wrong with a URI that no option has."""
        return f"{key!r} is not in the list"


class ChosenQueryReply(Reply):
    """The query that is chosen, as the list has it."""

    sparql: str
    reason: ClassVar = ""

    @property
    def chosen(self) -> Sequence[str]:
        """The only key: the query with single spaces."""
        return [_normalize_space(self.sparql)]

    def describe_unknown(self, key: object, options: Sized) -> str:
        """Return what is wrong with a query that no option has."""
        return "this is none of the queries in the list"


def find_choice_problems(choice: Choice, offered: Any, *_: object) -> Iterator[str]:
    """Yield a problem for each chosen thing, in a choice that a person put in, that was not an option.

    ``offered`` is the first input of the step: the options, or the record that has them.
    """
    options = getattr(offered, "candidates", getattr(offered, "kept", offered))
    for option in choice.chosen:
        if option not in options:
            yield f"{option} is not one of the options"


# Choices by number, by URI, and by text


class ChoiceTask(NamedTuple):
    """What the model is to choose, and with which prompt."""

    prompt: str
    subject: str
    """What the choice is made for: the mention, the triplet, or "query"."""
    options: Mapping[Any, Sequence[Option]]
    """By the key that the model chooses: a number, a URI or a text."""
    reply_class: type[Any]
    """ChoiceReply, UrisReply or ChosenQueryReply."""
    min_choices: int
    max_choices: int


def number_options(options: Sequence[Option]) -> dict[int, list[Option]]:
    """Return options by their numbers, which begin at 1."""
    return {number: [option] for number, option in enumerate(options, 1)}


def group_by_uri(options: Sequence[Candidate | Relation]) -> dict[str, list[Option]]:
    """Return options by their URIs: a relation may be one in both directions."""
    by_uri: dict[str, list[Option]] = {}
    for option in options:
        by_uri.setdefault(str(option.iri), []).append(option)
    return by_uri


def choose(task: ChoiceTask, variables: JsonObject, failed: Faults, run: Run) -> Choice:
    """Ask the model to choose keys of options, and return the options that it chose, in its order.

    The keys must be different, existing ones, as many as the task says. ``variables`` are those of
    the prompt, among them the options as the model sees them. Raises InvalidReplyError if no reply
    is valid.
    """

    def find_problem(reply: Any) -> str:
        """Return a problem if a key is no option's, occurs twice, or if they are too few or too many; else ""."""
        chosen = reply.chosen
        for key in chosen:
            if key not in task.options:
                return str(reply.describe_unknown(key, task.options))
        is_repeated = len(set(chosen)) < len(chosen)
        if is_repeated or not task.min_choices <= len(chosen) <= task.max_choices:
            return f"choose {task.min_choices} to {task.max_choices}, each once"
        return ""

    check = Check("among those offered", find_problem)
    reply = ask_in_attempt(task.prompt, variables, failed, task.reply_class, check, run)
    chosen = chain.from_iterable(task.options[key] for key in reply.chosen)
    return Choice(task.subject, tuple(chosen), reply.reason)


# Entities


@agent("entity_choice", subject="entity", check=find_choice_problems, kind="model")
def choose_entities(
    retrieved: RetrievedCandidates, entity: str, question: str, failed: Faults, run: Run
) -> Choice:
    """Choose K vertices for a mention, best first (Equation 5).

    The model chooses them from the candidates: at most K (setting ``entities``) and perhaps none,
    or exactly K with the setting ``exact_k``. It is not asked if there are no candidates. The first
    K are taken without it if ``ablation`` is "no_uri_choice", and the only candidate where
    ``unasked_choice`` says so. Raises InvalidReplyError if no reply is valid.
    """
    settings = TriadSettings.of_run(run)
    candidates = retrieved.candidates
    if not candidates:
        return Choice(entity, (), "no label holds these words")
    if settings.ablation == "no_uri_choice" or is_decided_unasked(candidates, settings):
        return Choice(entity, candidates[: settings.entities], "the labels most like it")

    by_uri = group_by_uri(candidates)
    most = settings.entities
    fewest = 0
    if settings.exact_k:
        most = min(most, len(by_uri))
        fewest = most
    variables: JsonObject = {"question": question, "entity": entity}
    if settings.entity_options == "uris":
        prompt = "triad/entity_choice_published"
        task = ChoiceTask(prompt, entity, by_uri, UrisReply, fewest, most)
        variables["uris"] = "\n".join(by_uri)
    else:
        by_number = number_options(candidates)
        task = ChoiceTask("triad/entity_choice", entity, by_number, ChoiceReply, fewest, most)
        variables["candidates"] = number_candidates(candidates)
    return choose(task, variables | {"most": most}, failed, run)


# Relations


@agent("relation_choice", subject="triplet", check=find_choice_problems, kind="model")
def choose_relations(
    relations: tuple[Relation, ...],
    triplet: Triplet,
    question: str,
    failed: Faults,
    run: Run,
) -> Choice:
    """Choose at most K relations of the graph for a triplet, best first (Equation 6).

    K is the setting ``relations``. The model chooses them, and may choose none. It is not asked if
    there are no relations. The first K are taken without it if ``ablation`` is "no_uri_choice".
    Raises InvalidReplyError if no reply is valid.
    """
    settings = TriadSettings.of_run(run)
    most = settings.relations
    subject = str(triplet)
    if not relations:
        return Choice(subject, (), "there is no relation around it")
    if settings.ablation == "no_uri_choice":
        return Choice(subject, relations[:most], "the names most like it")
    variables: JsonObject = {"question": question}
    if settings.relation_options == "uris":
        by_uri = group_by_uri(relations)
        task = ChoiceTask("triad/relation_choice_published", subject, by_uri, UrisReply, 0, most)
        variables |= {"entities": list(triplet.ends), "uris": "\n".join(by_uri)}
    else:
        by_number = number_options(relations)
        task = ChoiceTask("triad/relation_choice", subject, by_number, ChoiceReply, 0, most)
        numbered = _number_relations(relations, triplet)
        variables |= {"triplet": triplet.as_tuple, "relations": numbered}
    return choose(task, variables | {"most": most}, failed, run)


def _number_relations(relations: Sequence[Relation], triplet: Triplet) -> list[dict[str, object]]:
    """Return relations as a model sees them: number from 1, triple, and an example of what it leads to.

    The triple has subject, name and object in the direction of the relation. The key "leads to" is
    left out without an example. Relations of which all this is the same have their IRI, too.
    """
    numbered = []
    for number, relation in enumerate(relations, 1):
        first, last = _order_ends(triplet, relation.direction)
        shown: dict[str, object] = {"number": number, "triple": [first, relation.name, last]}
        if relation.example:
            shown["leads to"] = relation.example
        numbered.append(shown)
    tell_rows_apart(numbered, "iri", [str(relation.iri) for relation in relations])
    return numbered


def _order_ends(triplet: Triplet, direction: Direction) -> tuple[str, str]:
    """Return the ends of a triplet as subject and object of the graph's triple."""
    if direction == "in":
        return triplet.object, triplet.subject
    return triplet.ends


# The query


@agent("query_choice", check=find_choice_problems, kind="model")
def choose_query(queries: Queries, question: str, failed: Faults, run: Run) -> Choice:
    """Choose one of the queries that have a result (Equation 7).

    With the setting ``may_refuse_queries`` the model may choose none, and judges a single query
    too. Otherwise a single query is chosen without asking it, unless ``asks_about_single`` is on.
    ``failed`` has a reason for each earlier attempt; only their number counts here, as the number
    of the sample. The choice is empty if no query has a result. Raises InvalidReplyError if no
    reply is valid.
    """
    settings = TriadSettings.of_run(run)
    kept = queries.kept
    shows_results = settings.query_options == "results"
    may_refuse = settings.may_refuse_queries and shows_results
    if not kept or (len(kept) == 1 and not may_refuse and not settings.asks_about_single):
        return Choice("query", kept)
    variables: JsonObject = {"question": question}
    if not shows_results:
        by_text: dict[str, list[Option]] = {}
        for filled in kept:
            by_text.setdefault(_normalize_space(filled.query.sparql), [filled])
        prompt = "triad/query_choice_published"
        task = ChoiceTask(prompt, "query", by_text, ChosenQueryReply, 1, 1)
        variables["queries"] = "\n".join(by_text)
    else:
        fewest = 1
        prompt = "triad/query_choice"
        if may_refuse:
            fewest = 0
            prompt = "triad/query_choice_judgement"
        task = ChoiceTask(prompt, "query", number_options(kept), ChoiceReply, fewest, 1)
        variables |= {"queries": _number_queries(kept), "most": 1}
    return choose(task, variables, failed, run)


def _number_queries(queries: Sequence[Filled]) -> list[dict[str, object]]:
    """Return queries as a model sees them: number from 1, text with names, number of results, first results.

    An ASK has "answer", "yes" or "no", in place of the results. Queries of which all this is the
    same have their SPARQL, too.
    """
    numbered = []
    for number, query in enumerate(queries, 1):
        shown: dict[str, object] = {"number": number, "query": query.reads}
        if query.is_boolean:
            shown["answer"] = "yes" if query.rows else "no"
        else:
            shown["rows"] = query.rows
            shown["first"] = list(query.results)
        numbered.append(shown)
    tell_rows_apart(numbered, "sparql", [query.query.sparql for query in queries])
    return numbered


def _normalize_space(text: str) -> str:
    return " ".join(text.split())


TermsByEnd = Mapping[str, Sequence[Term]]
"""The vertices or values that each end of triplets may stand for, by the text of the end."""


def link_triplets(
    triplets: Triplets, question: str, failed: Faults, run: Run
) -> tuple[Choice, ...]:
    """Choose vertices for each mention, and then relations of the graph for each triplet, and return all choices.

    The choices for the mentions come first, then those for the triplets, in their order; if a
    mention has no vertex, there are none for the triplets. Triplets are linked outward from the
    mentions: those with a mention first, then those with an end that the relations of others lead
    to. If nothing leads to a triplet's ends, its relations are not looked for, and its choice is
    empty. ``failed`` says why each earlier attempt found no query. Asks the graph and the model.
    """
    mentions = list_mentions(triplets)
    terms: dict[str, Sequence[Term]] = {}
    entity_choices = []
    candidates_by_mention = run.map(retrieve_candidates, mentions)
    for mention, candidates in zip(mentions, candidates_by_mention, strict=True):
        choice = choose_entities(candidates, mention, question, failed, run)
        entity_choices.append(choice)
        vertices = []
        for option in choice.chosen:
            if isinstance(option, Candidate):
                vertices.append(option.iri)
        terms[mention] = tuple(vertices)
    if not all(terms.values()):
        return tuple(entity_choices)

    relation_choices: dict[Triplet, Choice] = {}
    waiting = list(triplets)
    while waiting:
        triplet = _find_nearest_triplet(waiting, mentions, terms)
        waiting.remove(triplet)
        known_ends = _select_ends(triplet, mentions) or _select_ends(triplet, terms)
        known_terms = {end: terms[end] for end in known_ends}
        if not any(known_terms.values()):
            reason = "nothing leads to its ends"
            relation_choices[triplet] = Choice(str(triplet), (), reason, was_looked_for=False)
            continue
        relations = find_relations(triplet, known_terms, run)
        choice = choose_relations(relations, triplet, question, failed, run)
        relation_choices[triplet] = choice
        terms |= sample_reached_terms(triplet, choice, terms, run)
    return (*entity_choices, *[relation_choices[triplet] for triplet in triplets])


def _find_nearest_triplet(
    triplets: Sequence[Triplet], mentions: Container[str], terms: TermsByEnd
) -> Triplet:
    """Return the triplet whose relations are chosen next.

    It is the first one with a mention, else the first with an end in ``terms``, else the first.
    """
    for known_ends in (mentions, terms):
        for triplet in triplets:
            if _select_ends(triplet, known_ends):
                return triplet
    return triplets[0]


def _select_ends(triplet: Triplet, ends: Container[str]) -> list[str]:
    """Return the ends of a triplet that are among ``ends``."""
    return [end for end in triplet.ends if end in ends]


@agent("relations", subject="triplet", kind="sparql")
def find_relations(triplet: Triplet, ends: TermsByEnd, run: Run) -> tuple[Relation, ...]:
    """Return the relations one hop around the known ends of a triplet (F_rs in Equation 6).

    ``ends`` has the terms of these ends. Blank nodes are left out, since a query cannot name them.
    A relation has the direction that the graph has, or always "out" with the setting
    ``as_written``. At most ``shown_relations`` are returned, the names most similar to the
    triplet's relation first, equals by IRI, with examples if ``relation_examples`` says so. No
    model is asked.
    """
    settings = TriadSettings.of_run(run)
    found: dict[tuple[URIRef, Direction], str] = {}
    for end, terms in ends.items():
        named_terms = [term for term in terms if not isinstance(term, BNode)]
        predicates = find_predicates(run.kg, *named_terms, keeps_all=settings.whole_graph)
        nearby = () if settings.whole_graph else predicates
        paths = find_paths_over_containers(run.kg, named_terms, nearby)
        for iri, direction in (*predicates, *paths):
            path = paths.get((iri, direction), "")
            if settings.as_written:
                found[iri, "out"] = path
            elif end == triplet.subject:
                found[iri, direction] = path
            else:
                found[iri, OPPOSITE_DIRECTION[direction]] = path
    if not found:
        return ()

    names = run.kg.names([iri for iri, _ in found])
    similarities = compute_similarities(triplet.relation, names.values(), run)
    relations = []
    for (iri, direction), path in found.items():
        name = names[iri]
        relations.append(Relation(iri, name, direction, similarities[name], path=path))
    relations.sort(key=lambda relation: (relation.iri, relation.direction == "in"))
    relations.sort(key=attrgetter("similarity"), reverse=True)
    best = relations[: settings.shown_relations]
    if settings.relation_examples and settings.relation_options == "triples":
        best = add_examples(best, triplet, ends, run)
    return tuple(best)


def sample_reached_terms(
    triplet: Triplet, choice: Choice, ends: TermsByEnd, run: Run
) -> TermsByEnd:
    """Return up to ``join_sample`` terms that the chosen relations lead to, by the triplet's unknown end.

    Unless exactly one end of the triplet is in ``ends`` and a relation was chosen, the mapping is
    empty. With the setting ``as_written`` relations are followed in both directions, since that of
    the template is not known yet. One query is sent.
    """
    settings = TriadSettings.of_run(run)
    known_ends = _select_ends(triplet, ends)
    if len(known_ends) != 1 or not choice.chosen:
        return {}
    [known] = known_ends
    [unknown] = [end for end in triplet.ends if end != known]
    forward_direction = "in"
    if known == triplet.subject:
        forward_direction = "out"
    patterns = []
    for relation in choice.chosen:
        if not isinstance(relation, Relation):
            continue
        predicate = relation.path or n3(relation.iri)
        is_forward = relation.direction == forward_direction
        if settings.as_written or is_forward:
            patterns.append(f"?_v {predicate} ?_x")
        if settings.as_written or not is_forward:
            patterns.append(f"?_x {predicate} ?_v")
    named_terms = []
    for term in ends[known]:
        if not isinstance(term, BNode):
            named_terms.append(term)
    where = f"{values_clause('?_v', named_terms)} {union_clause(patterns)}"
    limit = settings.join_sample
    result = run.kg.select(f"SELECT DISTINCT ?_x WHERE {{ {where} }} LIMIT {limit}")
    reached = [term for (term,) in result.rows if term is not None]
    return {unknown: tuple(reached)}


MAX_EXAMPLE_CHARS = 60
Reached = dict[tuple[URIRef, Direction], Term]
"""A term that each relation leads to, by predicate and direction of the triplet."""


def add_examples(
    relations: Sequence[Relation], triplet: Triplet, ends: Mapping[str, Sequence[Term]], run: Run
) -> list[Relation]:
    """Return copies of relations with an example of what each leads to from the known ends of a triplet.

    ``ends`` has the terms of these ends. An example is a name with its types, or a value; it is
    empty if the relation leads nowhere from them. If both ends are named in the question, relations
    that lead to a literal are left out. Asks the graph.
    """
    reached: Reached = {}
    for end, terms in ends.items():
        named_terms = [term for term in terms if not isinstance(term, BNode)]
        found = _find_reached(relations, named_terms, end == triplet.subject, run)
        reached = {**found, **reached}
    shown = _describe_terms(reached.values(), run)
    are_named = not any(end.startswith("?") for end in triplet.ends)
    with_examples = []
    for relation in relations:
        term = reached.get((relation.iri, relation.direction))
        if isinstance(term, Literal) and are_named:
            continue
        example = ""
        if term is not None:
            example = shown[term]
        with_examples.append(replace(relation, example=example))
    return with_examples


def _find_reached(
    relations: Iterable[Relation], terms: Sequence[URIRef | Literal], is_subject: bool, run: Run
) -> Reached:
    """Return, by predicate and direction, the first term that each relation leads to from some terms.

    First is the smallest in the order of SPARQL, where a vertex goes before a value. ``is_subject``
    says whether the terms are those of the triplet's subject. One query is sent for each direction
    that a relation has. Relations that lead nowhere are missing.
    """
    reached: Reached = {}
    for direction in ("out", "in"):
        predicates = [each.iri for each in relations if each.direction == direction]
        if not predicates or not terms:
            continue
        is_forward = is_subject == (direction == "out")
        pattern = "?x ?p ?v"
        if is_forward:
            pattern = "?v ?p ?x"
        where = f"{values_clause('?v', terms)} {values_clause('?p', predicates)} {pattern}"
        group = f"SELECT ?p (MIN(?x) AS ?first) WHERE {{ {where} }} GROUP BY ?p"
        for predicate, first in run.kg.select(group).rows:
            if isinstance(predicate, URIRef) and first is not None:
                reached[predicate, direction] = first
    return reached


def _describe_terms(terms: Iterable[Term], run: Run) -> dict[Term, str]:
    """Return the text of each term: the name of an IRI with its types in brackets, or the value of a literal.

    A text is cut at MAX_EXAMPLE_CHARS characters. Names and types are asked of the graph.
    """
    labels = label_terms(terms, run)
    iris = [term for term in labels if isinstance(term, URIRef)]
    descriptions = describe_vertices(run.kg, iris)
    described = {}
    for term, label in labels.items():
        text = label
        if isinstance(term, URIRef) and descriptions[term].types:
            text = f"{label} ({', '.join(descriptions[term].types)})"
        described[term] = shorten(text, MAX_EXAMPLE_CHARS)
    return described


MAX_COMBINATIONS = 20_000
"""Combinations that are made before they are sorted by rank."""
MAX_SHOWN_VALUES = 3
"""Values of a query that a model and a person see."""
MAX_DIAGNOSED_QUERIES = 3
"""Queries without a result that are examined, and named in the reason."""
MAX_DESCRIPTION_CHARS = 80
"""Characters of a vertex's description that a model sees in a query."""


@agent("queries", kind="sparql")
def build_queries(
    template: str, triplets: Triplets, linked: tuple[Choice, ...], run: Run
) -> Queries:
    """Fill the template with each combination of options, and run the queries (Equation 7).

    ``linked`` has a choice for each mention, then for each triplet. Combinations come best first,
    by the sum of their options' ranks; at most ``query_limit`` are run. Queries without a result
    are set apart. If no query has one and they are ASKs, the first is kept: its answer is "no". Of
    several queries of the same text the first is kept, and with the setting ``merge_results`` also
    of several with the same results.
    """
    settings = TriadSettings.of_run(run)
    limit = settings.query_limit
    combinations = combine_options(linked)
    if len(combinations) > limit:
        run.note(f"{len(combinations)} candidate queries; the first {limit} were run (query_limit)")
    by_text: dict[str, Filled] = {}
    terms_by_text: dict[str, tuple[Term, ...]] = {}
    for options in combinations[:limit]:
        query = _fill_query(template, triplets, options, settings)
        sparql = query.query.sparql
        if sparql not in by_text:
            terms = fetch_terms(sparql, run)
            names = tuple(label_terms(terms, run).values())
            by_text[sparql] = replace(query, results=names[:MAX_SHOWN_VALUES], rows=len(terms))
            terms_by_text[sparql] = terms
    queries = list(by_text.values())

    answered = [query for query in queries if query.rows]
    if settings.merge_results:
        answered = _merge_by_result(answered, terms_by_text)
    unanswered = [query for query in queries if not query.rows]
    if queries and not answered and queries[0].is_boolean:
        # A yes-or-no question without a match has an answer: "no".
        answered = queries[:1]
        unanswered = queries[1:]
    heads = (*list_mentions(triplets), *map(str, triplets))
    return Queries(template, heads, tuple(answered), tuple(unanswered))


def combine_options(choices: Sequence[Choice]) -> list[list[Option]]:
    """Return every combination of one option of each choice, sorted by the sum of the options' ranks.

    Combinations of one sum are in lexicographic order of the ranks. Only the first MAX_COMBINATIONS
    in lexicographic order are made, since their number grows exponentially. A choice without
    options leaves no combination.
    """
    ranks_of_choices = []
    for choice in choices:
        ranks_of_choices.append(range(len(choice.chosen)))
    rank_combinations = islice(product(*ranks_of_choices), MAX_COMBINATIONS)
    combinations = []
    for ranks in sorted(rank_combinations, key=sum):
        options = []
        for choice, rank in zip(choices, ranks, strict=True):
            options.append(choice.chosen[rank])
        combinations.append(options)
    return combinations


def _merge_by_result(
    queries: Sequence[Filled], terms_by_text: Mapping[str, Sequence[Term]]
) -> list[Filled]:
    """Return, of each group of queries with the same set of result terms, the first query.

    ``terms_by_text`` has the terms by SPARQL text. Which of them is chosen makes no difference to
    the answer.
    """
    first_by_terms: dict[frozenset[Term], Filled] = {}
    for query in queries:
        terms = frozenset(terms_by_text[query.query.sparql])
        first_by_terms.setdefault(terms, query)
    return list(first_by_terms.values())


def _fill_query(
    template: str, triplets: Triplets, options: Sequence[Option], settings: TriadSettings
) -> Filled:
    """Return a template filled with an option for each mention and triplet; the query is not run.

    A triple has the direction of its relation in the graph, or with the setting ``as_written`` that
    of the template. The result also has the query as a model sees it: with names in place of IRIs,
    and vertices with their types and the beginning of their description (MAX_DESCRIPTION_CHARS).
    """
    terms = []
    descriptions = []
    predicates: list[RelationTerm] = []
    names: list[RelationTerm] = []
    relations = []
    for option in options:
        if isinstance(option, Candidate):
            description = option.description[:MAX_DESCRIPTION_CHARS]
            details = (option.name, *option.types, description)
            descriptions.append(", ".join(filter(None, details)))
            terms.append(n3(option.iri))
        elif isinstance(option, Relation):
            direction = None if settings.as_written else option.direction
            relations.append(option)
            predicates.append((option.path or n3(option.iri), direction))
            names.append((f"<{option.name}>", direction))

    fills_all = settings.free_templates
    sparql = fill_template(template, triplets, terms, predicates, fills_all=fills_all)
    bracketed = [f"<{description}>" for description in descriptions]
    readable = fill_template(template, triplets, bracketed, names, fills_all=fills_all)
    parts = analyze_query(sparql)
    relation_names = tuple(relation.name for relation in relations)
    query = CandidateQuery(sparql, parts.patterns, relation_names, 1.0, parts.filters)
    slots = (*descriptions, *map(str, relations))
    return Filled(query, slots, readable, (), 0)


def fetch_terms(sparql: str, run: Run) -> tuple[Term, ...]:
    """Run a query, and return the distinct terms of its result, in the order of the rows.

    A true ASK has the term true. Returns nothing for a false ASK, for a count of 0, and if the
    graph cannot run the query or takes too long, which is noted on the step. Other GraphErrors are
    raised.
    """
    kind = analyze_query(sparql).kind
    try:
        if kind == "boolean":
            if run.kg.ask(sparql):
                return (Literal(True),)
            return ()
        rows = run.kg.select(sparql).rows
    except (QueryError, GraphTimeoutError) as error:
        run.note(f"a query could not be run: {error.message}")
        return ()
    terms = dict.fromkeys(cell for cell in chain.from_iterable(rows) if cell is not None)
    if kind == "count" and list(map(str, terms)) == ["0"]:
        return ()
    return tuple(terms)


def diagnose_fault(queries: Queries, choice: Choice | None, run: Run) -> tuple[Phase, str]:
    """Return the phase at fault if no query was chosen, and why, in words that a model sees.

    If the decision-maker refused those with a result (``choice``), it is "parsing". Otherwise the
    graph is asked for the bare triples of the first MAX_DIAGNOSED_QUERIES queries without a result:
    if it has those of one of them, the fault is in the rest of the template ("construction"), else
    in the chosen vertices and relations ("linking").
    """
    if choice is not None:
        shown = "; ".join(filled.name for filled in queries.kept[:MAX_DIAGNOSED_QUERIES])
        return "parsing", f"no query answers the question ({choice.reason}): {shown}"
    examined = queries.empty[:MAX_DIAGNOSED_QUERIES]
    for filled in examined:
        triples = patterns_to_sparql(filled.query.patterns)
        if fetch_terms(f"ASK {{ {triples} }}", run):
            return "construction", f"the triples of {filled.reads} hold, but it has no result"
    readable = "; ".join(filled.reads for filled in examined)
    return "linking", f"no result: {readable}"
