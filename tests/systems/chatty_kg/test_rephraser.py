"""The rephraser: what it sees of the dialogue."""

from small import alone

from kgwb.run.answers import Context, Turn
from kgwb.systems.chatty_kg.chat import rephrase_question
from kgwb.systems.chatty_kg.records import RephrasedQuestion

SPOKEN = Context(
    (
        Turn("Who directed Dune?", ("Denis Villeneuve",), entities=("Dune",)),
        Turn("Where was he born?", ("Gentilly",), standalone="Where was Denis Villeneuve born?"),
    )
)


def test_the_rephraser_sees_answers_entities_and_standalone_forms() -> None:
    reply = {"rephraser": {"question": "In which \n country?"}}
    rephrased, _, model = alone(lambda run: rephrase_question("In which?", SPOKEN, run), reply)
    assert rephrased == RephrasedQuestion("In which country?", "In which?")
    first, second = SPOKEN.turns
    assert model.requests[0].variables["dialogue"] == [
        {"question": first.question, "answers": ["Denis Villeneuve"], "about": ["Dune"]},
        {"question": second.standalone, "answers": ["Gentilly"], "about": []},
    ]
