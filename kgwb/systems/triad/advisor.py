"""Triad's advisor: it answers from the graph, else from the model's own knowledge (section 3.3)."""

from __future__ import annotations

from dataclasses import replace

import rdflib

from kgwb.build import (
    Answer,
    CandidateQuery,
    Check,
    Reply,
    Run,
    Triples,
    Value,
    agent,
    analyze_query,
    count_in_graph,
    count_values,
    doubt_counted_text,
    find_row_support,
    is_amount,
    make_row_values,
    read_values,
)
from kgwb.systems.triad.generalist import ask_until_valid, prompt_of_guidelines
from kgwb.systems.triad.records import KIND_BY_ANSWER_TYPE, AnswerType
from kgwb.systems.triad.settings import TriadSettings


class KnowledgeReply(Reply):
    """One fact from memory, or True or False; "" if it does not know."""

    answer: str
    """One fact, or "True" or "False"; "" if it does not know."""


@agent("answer", kind="sparql")
def build_answer(query: CandidateQuery, asked: AnswerType, run: Run) -> Answer:
    """Run the chosen query, and return its values with the triples that support them (Equation 8).

    The answer is a truth value if the query is an ASK, or if yes or no is asked for: whether there
    are rows. It is the number of rows if a count is asked for, unless all values are numbers; the
    graph counts them if their result was cut. A truth value or number has the support of all rows;
    "no" has none. Otherwise the values are the rows, of which a query of several columns makes a
    table. Empty rows are neither values nor counted. The answer has the query, and display names.
    Raises the GraphErrors of the query.
    """
    sparql = query.sparql
    answer = Answer(KIND_BY_ANSWER_TYPE[asked], queries=(sparql,))
    truth: bool | None = None
    triples: Triples = ()
    if analyze_query(sparql).kind == "boolean":
        truth = run.kg.ask(sparql)
        if truth:
            triples = find_row_support(sparql, (), (), run).get((), ())
    else:
        result = run.kg.select(sparql)
        values = make_row_values(sparql, result.variables, result.rows, run)
        titles = result.variables if len(result.variables) > 1 else ()
        answer = replace(answer, values=tuple(values), columns=titles)
        triples = answer.support
        if asked == "yes or no":
            truth = bool(result.rows)
    terms = [value.term for value in answer.values]
    if truth is not None:
        total = Value(rdflib.Literal(truth), str(truth).lower(), triples)
        answer = replace(answer, kind="boolean", values=(total,), columns=())
    answer = read_values(run.kg, answer, merges_forms=TriadSettings.of_run(run).merges_forms)
    are_amounts = all(is_amount(term, run.question) for term in terms)
    if answer.kind != "count" or are_amounts:
        return answer
    counted = doubt_counted_text(count_values(answer), set(terms))
    if not result.cut:
        return counted
    rows = f"SELECT DISTINCT * WHERE {{ {{ {sparql} }} }}"
    return count_in_graph(counted, f"SELECT (COUNT(*) AS ?_n) WHERE {{ {{ {rows} }} }}", run.kg)


@agent("own_knowledge", kind="model")
def answer_from_own_knowledge(question: str, asked: AnswerType, reason: str, run: Run) -> Answer:
    """Ask the model to answer without the graph, and mark its answer as not grounded (section 3.3).

    The prompt is that of the type of answer: for a truth value, or for a single fact, which may be
    a number. With ``ablation`` "boolean_fallback" the model is asked for truth values only.
    ``reason`` says why the graph gave no answer, and is kept in the answer, which has no value if
    the model gave none or was not asked. A fact is the vertex that the search of labels finds first
    for it, if it finds any, with the setting ``links_own_answers``.
    """
    is_boolean = asked == "yes or no"
    kind = KIND_BY_ANSWER_TYPE[asked]
    if not is_boolean and TriadSettings.of_run(run).ablation == "boolean_fallback":
        return Answer(kind, reason=reason)

    def find_problem(reply: KnowledgeReply) -> str:
        """Return what is wrong with a truth value in a reply, or ""."""
        if is_boolean and reply.answer not in ("True", "False"):
            return "say True or False"
        return ""

    subtask = "triad/own_knowledge_truth" if is_boolean else "triad/own_knowledge_fact"
    prompt = prompt_of_guidelines(subtask, run)
    check = Check("True or False", find_problem)
    reply = ask_until_valid(prompt, {"question": question}, KnowledgeReply, run, check)
    text = ""
    if reply:
        text = reply.answer.strip()
    if not text:
        return Answer(kind, reason=reason)
    value = _make_value(text, asked)
    if asked == "select" and TriadSettings.of_run(run).links_own_answers:
        for hit in run.kg.search(text, 1).hits:
            value = Value(hit.iri, text)
    return Answer(kind, (value,), reason=reason, ungrounded=True)


def _make_value(text: str, asked: AnswerType) -> Value:
    """Return the model's text as a value of the type that was asked for.

    For yes or no it is true only for "True". For a count it is a number if the text has only digits
    and commas. Everything else is a plain text.
    """
    if asked == "yes or no":
        return Value(rdflib.Literal(text == "True"), text.lower())
    digits = text.replace(",", "")
    if asked == "count" and digits.isdecimal():
        return Value(rdflib.Literal(int(digits)), digits)
    return Value(rdflib.Literal(text), text)
