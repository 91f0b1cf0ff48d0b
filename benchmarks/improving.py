"""What ``kgwb improve`` finds, and for how many calls: eight hidden faults, and a list of 40 changes.

    python benchmarks/improving.py          measure, and print the tables
    python benchmarks/improving.py page     measure, and write them into docs/how-to/my-prompts.md

A pipeline of four agents asks a scripted model, which lacks one of eight instructions: without it,
it decides wrongly wherever a question has the trait that the instruction is about. The model that
proposes is a list of 40 instructions in an order drawn by a seed; it adds the next one to the prompt
that it is shown. Eight of them help, each against one of the faults, eight harm, and 24 change
nothing but a few replies by chance, as any change of a prompt does. Both programs have the same
list: ``kgwb improve``, for the agent that the ladder blames most, and GEPA by itself, which executes
the whole pipeline for each question, with all four prompts or told the agent. Nothing is asked of
a server.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import gepa
import rdflib
from gepa.core.adapter import EvaluationBatch
from rdflib import RDFS, URIRef
from table import write_between

import kgwb
from kgwb.bench import Benchmark, BenchSetup, Budget, Results, locate_losses
from kgwb.bench.comparisons import ResultsComparison, compare_with_each
from kgwb.bench.figures import LoadedResults
from kgwb.bench.improve import PromptSearch, find_best
from kgwb.bench.lab import TEST_SLICE, RetryExperiment
from kgwb.bench.questions import BenchQuestion
from kgwb.bench.results import compute_answer_f1
from kgwb.build import (
    Answer,
    GoldDecisions,
    GoldQuery,
    LinkedIris,
    Reply,
    Run,
    Rung,
    System,
    Value,
    agent,
)
from kgwb.kg.embeddings import Embeddings
from kgwb.llm import Scripted
from kgwb.llm.base import ChatRequest
from kgwb.run.answers import Dialogue, Question
from kgwb.run.ask import ask
from kgwb.run.models import recorded_messages
from kgwb.run.prompts import Prompts
from kgwb.show.tables import Table

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "my-prompts.md"
BEGIN = "<!-- made by benchmarks/improving.py -->"
END = "<!-- end -->"
EX = "http://example.org/"
RELATIONS = ("born in", "lives in", "trained at", "employed by", "buried in", "honoured by")
TRAITS = ("titled", "passive", "poet", "younger", "abroad", "former", "several", "recent")
"""What a question can have; a fault, and a harmful instruction, each concern one of them."""
AGENTS = ("reader", "entity", "relation", "writer")
FAULTS = [(AGENTS[number // 2], trait) for number, trait in enumerate(TRAITS)]
"""The agent and the trait of each fault."""
HELPING = [f"Mind what a {trait} question needs." for trait in TRAITS]
HARMING = [f"Do not care whether a question is {trait}." for trait in TRAITS]
NEUTRAL = [f"Work with care, as rule {number} of the house says." for number in range(24)]
CHANGES = [*HELPING, *HARMING, *NEUTRAL]
MOST_CALLS = 4000
"""What GEPA by itself may use in each world."""
TRAIT_SHARE = 0.3
CHANCE = 0.02
"""How often a reply is wrong by chance; with each change of a prompt other ones are."""


def _prompt(purpose: str, variables: str, reply: str) -> str:
    header = (
        f"purpose: {purpose}\nstrategy: none\nvariables: {variables}\nreply: {reply}\nsource: ours"
    )
    inputs = "\n".join(f"{name}: {{{{{name}}}}}" for name in variables.split(", "))
    return f"---\n{header}\n---\n[system]\n{purpose}\n\n[user]\n{inputs}\n"


PROMPTS = {
    "scripted/reader": _prompt("Read whose what is asked for.", "question", "Reading"),
    "scripted/entity": _prompt("Choose whom the name means.", "question, bearers", "Choice"),
    "scripted/relation": _prompt("Choose the predicate.", "question, words, predicates", "Choice"),
    "scripted/writer": _prompt("Choose the values that answer.", "question, values", "Choices"),
}


class Reading(Reply):
    name: str
    words: str


class Choice(Reply):
    chosen: str


class Choices(Reply):
    chosen: tuple[str, ...]


@agent("reader", kind="model")
def read(question: str, run: Run) -> Reading:
    return ask("scripted/reader", {"question": question}, Reading, run)


@agent("entity", kind="model")
def choose_entity(question: str, name: str, run: Run) -> str:
    rows = run.kg.select(f'SELECT ?x WHERE {{ ?x <{RDFS.label}> "{name}" }} ORDER BY ?x').rows
    bearers = [str(row[0]) for row in rows]
    return ask("scripted/entity", {"question": question, "bearers": bearers}, Choice, run).chosen


@agent("relation", kind="model")
def choose_relation(question: str, words: str, run: Run) -> str:
    predicates = [_predicate(relation) for relation in RELATIONS]
    variables = {"question": question, "words": words, "predicates": predicates}
    return ask("scripted/relation", variables, Choice, run).chosen


@agent("look_up", kind="sparql")
def look_up(entity: str, predicate: str, run: Run) -> tuple[str, ...]:
    rows = run.kg.select(f"SELECT ?x WHERE {{ <{entity}> <{predicate}> ?x }} ORDER BY ?x").rows
    return tuple(str(row[0]) for row in rows)


@agent("writer", kind="model")
def choose_values(question: str, values: tuple[str, ...], run: Run) -> tuple[str, ...]:
    variables = {"question": question, "values": list(values)}
    return ask("scripted/writer", variables, Choices, run).chosen


def answer(question: Question, dialogue: Dialogue, run: Run) -> Answer:
    reading = read(question.text, run)
    entity = choose_entity(question.text, reading.name, run)
    predicate = choose_relation(question.text, reading.words, run)
    values = look_up(entity, predicate, run)
    kept = choose_values(question.text, values, run)
    return Answer("list", tuple(Value(URIRef(value), value) for value in kept))


def _rung(agent_name: str, gold_value: Callable[[Run, GoldQuery], Any]) -> Any:
    """Return a rung that puts a value in at an agent, unless the agent decided so."""

    def make(run: Run, gold: GoldQuery) -> Rung | None:
        value = gold_value(run, gold)
        step = run.steps_by_key.get(agent_name)
        if step is None or step.output == value:
            return None
        return Rung(agent_name, {agent_name: value})

    return make


def _gold_reading(run: Run, gold: GoldQuery) -> Reading:
    _, predicate, _ = gold.patterns[0]
    return Reading(name=run["reader"].output.name, words=gold.names[predicate])


LADDER = {
    "reading": _rung("reader", _gold_reading),
    "entity": _rung("entity", lambda run, gold: gold.patterns[0][0][1:-1]),
    "relation": _rung("relation", lambda run, gold: gold.patterns[0][1][1:-1]),
    "values": _rung("writer", lambda run, gold: run["look_up"].output),
}
NOTHING: frozenset[str] = frozenset()
SYSTEM = System(
    "scripted",
    answer,
    [read, choose_entity, choose_relation, look_up, choose_values],
    gold=GoldDecisions(LADDER, lambda run: LinkedIris(NOTHING, NOTHING, NOTHING, NOTHING)),
    prompts=PROMPTS,
)


def _predicate(relation: str) -> str:
    return EX + relation.replace(" ", "_")


@dataclass
class World:
    """Questions, a graph, and a model with one fault."""

    number: int
    """The fault it has, and the seed of all that is drawn."""
    size: int
    """How many questions each part has."""
    changes: Sequence[str] = field(default_factory=lambda: CHANGES)
    has_fault: bool = True
    trait_share: float = TRAIT_SHARE

    def __post_init__(self) -> None:
        chance = random.Random(self.number)
        self.order = chance.sample(self.changes, len(self.changes))
        graph = self.graph = rdflib.Graph()
        for relation in RELATIONS:
            graph.add((URIRef(_predicate(relation)), RDFS.label, rdflib.Literal(relation)))
        self.questions: list[BenchQuestion] = []
        self.gold: dict[str, tuple[str, str, str, set[str]]] = {}
        """Name, relation, entity and traits by the question."""
        for number in range(2 * self.size):
            name, relation = f"Person {number}", chance.choice(RELATIONS)
            bearers = [f"{EX}p{number}a", f"{EX}p{number}b"]
            for bearer in bearers:
                graph.add((URIRef(bearer), RDFS.label, rdflib.Literal(name)))
                for each in RELATIONS:
                    for value in range(3):
                        place = f"{bearer}/{each.replace(' ', '_')}/{value}"
                        graph.add((URIRef(bearer), URIRef(_predicate(each)), URIRef(place)))
            entity = chance.choice(bearers)
            traits = {trait for trait in TRAITS if chance.random() < self.trait_share}
            text = f"Where is {name} {relation}? ({', '.join(sorted(traits))})"
            self.gold[text] = name, relation, entity, traits
            sparql = f"SELECT ?x WHERE {{ <{entity}> <{_predicate(relation)}> ?x }}"
            place = f"{entity}/{relation.replace(' ', '_')}"
            question = BenchQuestion(
                id=f"q{number:03}",
                question=text,
                sparql=sparql,
                answers=tuple(f"{place}/{value}" for value in range(3)),
                split="dev" if number % 2 else "test",
            )
            self.questions.append(question)
        self.kg = kgwb.open_kg(graph)
        self.model = Scripted(self._reply, name=f"scripted:world{self.number}")

    def _reply(self, request: ChatRequest) -> dict[str, Any]:
        """Return the reply of the model: right, but for its fault, for harm and for chance."""
        name = request.task.partition("/")[2]
        question = request.variables["question"]
        person, relation, entity, traits = self.gold[question]
        said = request.messages[0].content
        present = [change for change in self.changes if change in said]
        agent_at_fault, trait = FAULTS[self.number % len(FAULTS)]
        lacks = HELPING[self.number % len(FAULTS)] not in said
        is_wrong = self.has_fault and name == agent_at_fault and trait in traits and lacks
        for harm, harmed in zip(HARMING, TRAITS, strict=True):
            is_wrong |= harm in said and harmed in traits
        drawn = random.Random(f"{self.number} {name} {question} {present}").random()
        is_wrong |= drawn < CHANCE
        variables = request.variables
        if name == "reader":
            words = _other(RELATIONS, relation) if is_wrong else relation
            return {"name": person, "words": words}
        if name == "entity":
            bearers = variables["bearers"]
            return {"chosen": _other(bearers, entity) if is_wrong else entity}
        if name == "relation":
            wanted = _predicate(variables["words"])
            return {"chosen": _other(variables["predicates"], wanted) if is_wrong else wanted}
        return {"chosen": variables["values"][is_wrong:]}

    def proposer(self) -> Callable[[str], str]:
        """Return a function from the text that asks for a changed prompt to the reply: the list of changes."""
        given: Counter[str] = Counter()

        def propose(text: str) -> str:
            prompt = text.split("```")[1].strip()
            purpose = prompt.split("\n")[1]
            change = self.order[given[purpose] % len(self.order)]
            given[purpose] += 1
            changed = prompt.replace("\n\n[user]", f"\n{change}\n\n[user]")
            return f"```\n{changed}\n```"

        return propose

    def part(self, split: str) -> list[BenchQuestion]:
        return [question for question in self.questions if question.split == split]

    def ask(self, question: BenchQuestion, texts: Mapping[str, str]) -> Run:
        """Return a run of the whole pipeline with these prompts; nothing is reused."""
        run = Run(
            SYSTEM,
            question.question,
            kg=self.kg,
            models=self.model,
            prompts=Prompts(texts=dict(texts)),
            embeddings=Embeddings("lexical"),
        )
        return run.go()

    def score_on_test(self, texts: Mapping[str, str]) -> float:
        """Return the share of the test part that is right with these prompts."""
        questions = self.part("test")
        right = 0
        for question in questions:
            right += (
                compute_answer_f1(self.ask(question, texts).answer, question.answers or ()) == 1
            )
        return right / len(questions)


def _other(values: Sequence[str], value: str) -> str:
    """Return the value after one of several."""
    return values[(values.index(value) + 1) % len(values)]


class Outcome(NamedTuple):
    """What a search found."""

    agent: str
    texts: Mapping[str, str]
    claims: bool
    """Whether a prompt is said to be better beyond chance on the test part."""
    found: bool
    """Whether it is, and has the instruction that the model lacks."""
    measuring: int
    """Model calls to measure the dev part and to find out which agent lost each answer."""
    searching: int
    """Model calls of ``kgwb improve``: proposals, questions, and the test part."""
    candidates: int


def improve(world: World, folder: Path) -> Outcome:
    """Measure a world, and improve the agent that the ladder blames most."""
    workbench = kgwb.Workbench(
        world.kg, world.model, system=SYSTEM, embeddings=Embeddings("lexical")
    )
    setup = BenchSetup.from_workbench(workbench)
    results = Results(folder, setup.to_config(world.questions))
    Benchmark(setup, results, save_runs=True).run(world.questions)
    dev = world.part("dev")
    losses = locate_losses(setup, results, dev)
    dev_ids = {question.id for question in dev}
    calls = sum(row["model_calls"] for row in results.rows.values() if row["id"] in dev_ids)
    measuring = calls + sum(loss["model_calls"] for loss in losses)
    [(blamed, _)] = Counter(loss["agent"] for loss in losses if loss["agent"]).most_common(1)
    experiment = RetryExperiment(folder, kg=world.kg, model=world.model, system=SYSTEM)
    propose = world.proposer()
    proposer = Scripted(lambda request: propose(request.messages[-1].content), name="scripted:list")
    budget = Budget({"model_calls": 10**6})
    search = PromptSearch(experiment, blamed, proposer, budget, (), 1, lambda line: None)
    search.run(len(world.changes))
    earlier = experiment.earlier_results
    judged = [candidate for candidate in search.candidates if candidate.is_judged]
    comparisons = compare_with_each(earlier, [LoadedResults.read(each.folder) for each in judged])
    best = find_best(comparisons)
    texts: Mapping[str, str] = {}
    found = claims = False
    if best is not None:
        winner = judged[comparisons.index(best)]
        texts = winner.texts
        tested = experiment.get_results_folder(winner.setup, winner.name, is_test=True)
        everything = (["all"], [TEST_SLICE])
        questions = experiment.choose_questions(*everything)
        sample = experiment.sample(*everything)
        experiment.ask_again(winner.setup, questions, tested, sample=sample, budget=budget)
        tested_comparison = ResultsComparison(earlier, LoadedResults.read(tested))
        claims = find_best([tested_comparison]) is not None
        helping = HELPING[world.number % len(FAULTS)]
        agent_at_fault, _ = FAULTS[world.number % len(FAULTS)]
        found = claims and helping in texts.get(f"scripted/{agent_at_fault}", "")
    searching = int(budget.used["model_calls"])
    return Outcome(blamed, texts, claims, found, measuring, searching, len(search.candidates))


class WholePipeline:
    """The adapter for GEPA by itself: each question executes the whole pipeline."""

    propose_new_texts = None

    def __init__(self, world: World) -> None:
        self.world = world
        self.calls = 0
        self.history: list[tuple[int, dict[str, str]]] = []
        """The calls at which a prompt became the best on dev, and the prompts."""

    def evaluate(
        self, batch: list[BenchQuestion], candidate: dict[str, str], capture_traces: bool = False
    ) -> Any:
        runs = [self.world.ask(question, candidate) for question in batch]
        self.calls += sum(run.totals.model_calls for run in runs)
        pairs = zip(runs, batch, strict=True)
        scores = [compute_answer_f1(run.answer, each.answers or ()) for run, each in pairs]
        trajectories = list(zip(batch, runs, strict=True))
        return EvaluationBatch(outputs=runs, scores=scores, trajectories=trajectories)

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: Any, components_to_update: list[str]
    ) -> Any:
        examples: dict[str, list[dict[str, Any]]] = {}
        for name in components_to_update:
            examples[name] = []
            for question, run in eval_batch.trajectories:
                step = run.steps_by_key[name.partition("/")[2]]
                examples[name].append(
                    {
                        "Inputs": recorded_messages(step.model_calls[-1])[-1].content,
                        "Generated Outputs": step.model_calls[-1].result.text,
                        "Feedback": f"The right answer is {question.answers}.",
                    }
                )
        return examples

    def on_valset_evaluated(self, event: Any) -> None:
        """Keep the prompts that are the best so far; a callback of GEPA."""
        if event["is_best_program"]:
            self.history.append((self.calls, event["candidate"]))

    def best_at(self, calls: int) -> Mapping[str, str]:
        """Return the prompts that were the best after so many calls."""
        return [texts for at, texts in self.history if at <= calls][-1]


class _NoLog:
    def log(self, message: str) -> None:
        pass


def search_by_gepa(world: World, names: Sequence[str], most_calls: int) -> WholePipeline:
    """Let GEPA search by itself, with its default settings, until so many calls were made."""
    adapter = WholePipeline(world)
    dev = world.part("dev")
    propose = world.proposer()

    def reflect(prompt: Any) -> str:
        adapter.calls += 1
        return propose(prompt)

    gepa.optimize(
        seed_candidate={name: PROMPTS[name] for name in names},
        trainset=dev,
        valset=dev,
        adapter=adapter,
        reflection_lm=reflect,
        stop_callbacks=[lambda state: adapter.calls >= most_calls],
        callbacks=[adapter],
        logger=_NoLog(),
        seed=world.number,
    )
    return adapter


def measure(size: int = 60) -> list[dict[str, Any]]:
    """Measure all eight worlds, and return a row for each."""
    rows = []
    for number in range(len(FAULTS)):
        world = World(number, size)
        with tempfile.TemporaryDirectory() as folder:
            outcome = improve(world, Path(folder))
        calls = outcome.measuring + outcome.searching
        each = len(world.part("dev")) * len(AGENTS)
        whole = search_by_gepa(world, list(PROMPTS), MOST_CALLS)
        told = search_by_gepa(world, [f"scripted/{outcome.agent}"], 2 * calls)
        row = {
            "fault": f"{FAULTS[number][0]}, {FAULTS[number][1]}",
            "blamed": outcome.agent,
            "found": outcome.found,
            "calls": calls,
            "share of all": calls / (each * len(world.changes)),
            "share of tried": calls / (each * (outcome.candidates + 1)),
            "before": world.score_on_test({}),
            "kgwb": world.score_on_test(outcome.texts),
        }
        row["gepa"] = world.score_on_test(whole.best_at(calls))
        row["gepa, twice"] = world.score_on_test(whole.best_at(2 * calls))
        row["gepa, most"] = world.score_on_test(whole.best_at(whole.calls))
        row["told"] = world.score_on_test(told.best_at(calls))
        row["told, twice"] = world.score_on_test(told.best_at(told.calls))
        rows.append(row)
    return rows


def make_tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return the table of what was found, and the one of both programs side by side."""
    found = Table(
        (
            "hidden fault",
            "blamed",
            "found",
            "calls",
            "of all for 40 changes",
            "of all for those tried",
        ),
        [
            (
                row["fault"],
                row["blamed"],
                "yes" if row["found"] else "no",
                f"{row['calls']:,}",
                f"{row['share of all']:.1%}",
                f"{row['share of tried']:.1%}",
            )
            for row in rows
        ],
    )
    names = ("before", "kgwb", "gepa", "gepa, twice", "gepa, most", "told", "told, twice")
    cells = [(row["fault"], *(f"{row[name]:.2f}" for name in names)) for row in rows]
    means = [f"{sum(row[name] for row in rows) / len(rows):.2f}" for name in names]
    header = (
        "right on the test part",
        "before",
        "kgwb improve",
        "GEPA, as many calls",
        "twice as many",
        f"with {MOST_CALLS:,}",
        "GEPA told the agent, as many",
        "twice as many",
    )
    return [found, Table(header, [*cells, ("mean", *means)])]


def main() -> None:
    """Measure, print the tables, and write them into the page if that is wanted."""
    tables = make_tables(measure())
    print(*tables, sep="\n\n")
    if sys.argv[1:] == ["page"]:
        text = "\n\n".join(table.to_format("markdown").strip() for table in tables)
        write_between(text, PAGE, BEGIN, END)


if __name__ == "__main__":
    main()
