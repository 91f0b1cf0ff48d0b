"""What looks like TeX or markup is shown letter for letter, wherever the page around typesets mathematics."""

from __future__ import annotations

from browser.harness import Site

MARKUP = "<img src='http://example.invalid/x.png'> <script>throw Error('ran')</script>"
TEX = (
    r"from $5 to $10, \(a\), \[b\], $$c$$, \begin{align}d\end{align}, $\color{white}{e}$ " + MARKUP
)
MADE = rf'''
import kgwb, rdflib
from IPython.display import HTML
from kgwb.llm import Scripted
tex = r"{TEX}"
turtle = f"""
@prefix : <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:arrival a :Film ; rdfs:label "Arrival" ; :director :denis . :Film rdfs:label "Film {{tex}}" .
:denis rdfs:label "Denis {{tex}}" . :director rdfs:label "director {{tex}}" .
""".replace("\\", "\\\\")
qir = {{"entities": ["Arrival"], "unknowns": ["?person"], "target": "?person", "question_type": "list",
    "beyond": [],
    "triples": [{{"subject": "Arrival", "predicate": f"director {{tex}}", "object": "?person"}}]}}
selection = {{"reasoning": f"because {{tex}}", "predicates": [f"director {{tex}}"]}}
model = Scripted({{"chatty_kg/qir": qir, "chatty_kg/predicate_selection": selection}})
kg = kgwb.open_kg(rdflib.Graph().parse(data=turtle, format="turtle"))
workbench = kgwb.Workbench(kg, model)
first = kgwb.Workbench(kg, model).begin(f"Who directed Arrival? {{tex}}").go()
second = workbench.begin(f"Who made Arrival? {{tex}}").go()
'''
SHOWN = {
    "first": ("Who directed Arrival?", "Denis"),
    "second['qir']": ("director",),
    "first.diff(second)": ("Who directed Arrival?", "Who made Arrival?"),
    "workbench.chat()": (),
    "workbench.debug()": ("Who made Arrival?", "Denis"),
    "workbench.subgraph()": (),
    "workbench.cell('predicate_selection')": ("director",),
}
"""Cells, and the words that stand before the text in each."""


def test_tex_is_shown_letter_for_letter(site: Site) -> None:
    with site.visit(site.server.write("tex.ipynb", MADE, *SHOWN, "HTML('<p>$x$</p>')")) as page:
        page.run_all()
        page.cell("<p>$x$").show().output.locator(
            "mjx-container"
        ).wait_for()  # the page does typeset
        for view in ("Answer", "Subgraph", "Compare"):
            page.cell("workbench.debug()").tab(view)
        page.cell("workbench.debug()").tab("Step")
        subgraph = page.cell("workbench.subgraph()")
        subgraph.tab("Interactive").show().frame().locator("canvas").wait_for()
        subgraph.tab("Table").wait(f"Denis {TEX}")
        page.cell(len(SHOWN)).show().tab("Edit as a form").wait("Use this result")
        page.cell(len(SHOWN)).tab("Result")
        for place_of, (code, words) in enumerate(SHOWN.items(), 1):
            shown = page.cell(place_of)
            for word in words:
                shown.wait(f"{word} {TEX}")
            assert shown.output.locator("mjx-container").count() == 0, code
