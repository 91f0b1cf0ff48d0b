"""RAGonite's database: hostile texts remain values, and a hostile query reads only the tables."""

from __future__ import annotations

import json
import re
from pathlib import Path

from page import record_html
from ragonite import FINISH, RAGONITE, cited, passages, ragonite, script, sql
from small import films
from tables import read_table

from hostile.corpus import IRIS, QUOTES, texts
from hostile.runs import Page, bundles, graph
from hostile.test_surveys import assert_quoted
from kgwb.disk import cache_dir
from kgwb.kg.embeddings import Embeddings
from kgwb.llm import Scripted
from kgwb.systems.ragonite.database_file import open_database

ATTACKS = (
    *read_table(Path(__file__).with_name("attacks.jsonl")),
    "SELECT 'x' LIKE '" + "%a" * 10_000 + "'",
    "SELECT " + "(" * 3_000 + "1" + ")" * 3_000,
)
SETTINGS = RAGONITE.settings(sql_timeout_s=2)


def test_a_query_can_only_read_the_tables() -> None:
    database = open_database(films(), SETTINGS, Embeddings("lexical"))
    [path] = cache_dir().glob("ragonite-*.sqlite")
    before = path.read_bytes()
    for attack in (*ATTACKS, *QUOTES):
        assert database.execute_sql(attack, SETTINGS).error, attack[:200]
        assert database.execute_sql("SELECT count(*) FROM film", SETTINGS).rows == (("4",),)
        assert path.read_bytes() == before, attack[:200]
    assert not (cache_dir() / "x").exists()


def test_hostile_labels_and_literals_remain_values() -> None:
    """In tables, in passages, in prompts and on the page."""
    for number, bundle in enumerate(bundles(texts(200))):
        words = tuple(f"INJECTED {text}" for text in bundle)
        kg = graph(words, IRIS[number % len(IRIS)])
        asked = sql("SELECT * FROM novel"), passages(words[0]), FINISH
        model = Scripted(script(*asked, answer=cited((words[4], 2), text=words[1])))
        run = ragonite(model, "Who?", kg=kg).go()
        assert model.call_count() == 4
        for table in run.output("ragonite").tables:
            rows = open_database(kg, SETTINGS, run.embeddings).execute_sql(
                f"SELECT * FROM {table.name}", SETTINGS
            )
            assert rows.error == ""
        for request in model.requests:
            for name in {"schema", "sources"} & request.variables.keys():
                shown = request.variables[name]
                assert_quoted(re.sub(r"^\[\d+\] sql: .*$|\[\d+\]|…", "", shown, flags=re.MULTILINE))
            assert_quoted(json.dumps(request.variables.get("earlier")))
        for step in run.steps:
            assert Page(record_html(step.output)).odd == []
