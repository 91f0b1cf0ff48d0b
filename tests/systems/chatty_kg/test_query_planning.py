"""Query planning: from a QIR to an answer, or to why there is none."""

from small import (
    answer_of,
    boats_asked,
    qir,
)

from kgwb.systems.chatty_kg.records import QIR

OLDEST = qir(
    "?boat | type | boat",
    "?boat | passengers | ?n",
    target="?boat",
    beyond=["the largest: an order by ?n"],
)


def test_the_rest_is_answered_once_a_person_takes_the_part_out() -> None:
    run, _ = boats_asked("Which boat is the largest?", OLDEST)
    qir_record = run["qir"].output
    run.override("qir", QIR(qir_record.facts[:1], qir_record.target)).go()
    assert answer_of(run).labels == ("Brisk", "Gale", "Mary")
