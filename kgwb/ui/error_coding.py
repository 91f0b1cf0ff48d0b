"""The widget of an error analysis: lost questions one after the other, each given a category."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kgwb.bench.judgements import (
    DEFAULT_SAMPLE_SIZE,
    Coding,
    ErrorAnalysis,
    add_coding,
    draw_sample,
    read_codings,
    read_sample,
    require_name,
    reserve_question,
)
from kgwb.bench.report import Report, name_values, render_answers, render_gold
from kgwb.errors import InputError
from kgwb.kg import Graph
from kgwb.llm.base import ChatModel
from kgwb.show.html import Html
from kgwb.ui.debugger import Debugger, debug_question
from kgwb.ui.live import Event, Live, Part, argument_of, form_of, render_page


class ErrorCoding(Live):
    """The widget in which a person gives the lost questions of a sample categories.

    It shows one question at a time, with its gold and its run in the debugger, and keeps each category
    at once. What other people say is shown only once nothing is left for the person: then the
    questions come that got different categories.
    """

    def __init__(
        self,
        folder: str | Path,
        coder: str,
        *,
        kg: Graph | str | None = None,
        model: ChatModel | str | None = None,
        sample: int = DEFAULT_SAMPLE_SIZE,
        **drawing: Any,
    ) -> None:
        """Open the error analysis of a results folder for one person.

        If no sample was drawn yet, one of ``sample`` questions is drawn; ``drawing`` are the further
        arguments of ``draw_sample``, such as ``seed``, ``slices``, ``categories`` and ``coders``. Otherwise
        these have no effect. ``coder`` names the person's file. ``kg`` and ``model`` are those of the
        debugger, by default the measured ones.

        Raises InputError for a coder without a name, if all questions are given to others, if the
        folder holds no results or no lost questions, and for a damaged file.
        """
        require_name(coder, "codes", "kgwb.ErrorCoding(FOLDER, 'ann')")
        self.coder = coder
        self.report = Report(folder)
        self.results = self.report.results[0]
        known_sample = read_sample(self.results)
        self.sample = known_sample or draw_sample(self.results, sample, **drawing)
        self.codings = read_codings(self.results, self.sample, coder)
        """What this person said, by question id."""
        self._kg = kg
        self._model = model
        self.others: dict[str, dict[str, Coding]] = {}
        """By the id of each question that came to be settled, what the others said of it, by person."""
        self.selected_id = self._find_next() or next(iter(self.codings), "")
        """The id of the question that is shown."""
        if not self.selected_id:
            raise InputError(
                f"no question of {folder} is left for {coder}: all are given to others",
                hint="wait until they have coded them: what is not coded within an hour is given again",
            )
        self.debugger: Debugger | None = None
        """Of the question that is shown; None if its run was not saved."""
        super().__init__()
        self._open_debugger()

    def children(self) -> Mapping[str, Part | None]:
        """Return the debugger of the question that is shown, if its run was saved."""
        return {"debugger": self.debugger}

    def _find_next(self) -> str:
        """Return the next question that is free for the person, else one to settle; "" if there is none.

        To settle is what the person and others gave different categories, until the person has seen
        those.
        """
        free_id = reserve_question(self.results, self.sample, self.coder)
        if free_id:
            return free_id
        analysis = ErrorAnalysis.read(self.results)
        for id_ in analysis.conflicts:
            if id_ in self.codings and not self.codings[id_].is_settled:
                said = {name: of[id_] for name, of in analysis.codings.items() if id_ in of}
                del said[self.coder]
                self.others[id_] = said
                return id_
        return ""

    def list_shown(self) -> list[str]:
        """Return the questions that the person may open: of those that are shared out, the person's own."""
        own = {*self.codings, self.selected_id}
        return [id_ for id_ in self.sample.ids if not self.sample.coders or id_ in own]

    def _open_debugger(self) -> None:
        """Open the question that is shown at the step to blame; without a saved run, nothing is."""
        if self.debugger is not None:
            self.debugger.close()
        try:
            self.debugger = debug_question(
                self.report, self.selected_id, kg=self._kg, model=self._model
            )
        except InputError:
            self.debugger = None
            return
        self.debugger.parent = self

    # The page

    def view(self) -> Html:
        """Render how far the person is, the question with its gold, the form, and the debugger."""
        return self._render(is_interactive=True)

    def render_static(self) -> Html:
        return self._render(is_interactive=False)

    def _render(self, *, is_interactive: bool) -> Html:
        row = self.results.rows[self.selected_id]
        names = name_values([row])
        debugger = Html()
        if is_interactive:
            debugger = self.render_child("debugger")
        return render_page(
            "error_coding.html",
            widget=self,
            is_interactive=is_interactive,
            answers=render_answers(row, names),
            gold=render_gold(row, names),
            loss=self.results.losses_by_id.get(self.selected_id, {}),
            debugger=debugger,
        )

    # Events

    def do_go(self, event: Event) -> None:
        """Show the question of the sample whose id is the event's ``arg``."""
        id_ = argument_of(event)
        if id_ in self.list_shown():
            self._show(id_)

    def do_code(self, event: Event) -> str:
        """Keep the category and the note of the form, and show the next question without a category.

        Returns a message if all have one. Raises InputError if no category was chosen.
        """
        form = form_of(event)
        category = form.get("category", "")
        if not category:
            raise InputError(
                "the coding was not saved: no category was chosen", hint="choose one of the list"
            )
        coding = add_coding(
            self.results,
            self.sample,
            self.coder,
            self.selected_id,
            category,
            form.get("note", ""),
            is_settled=self.selected_id in self.others,
        )
        self.codings[coding.id] = coding
        next_id = self._find_next()
        if not next_id:
            given = " or given to others" * bool(self.sample.coders)
            return f"All are coded{given}. The tables: kgwb errors {self.results.folder}"
        self._show(next_id)
        return ""

    def _show(self, id_: str) -> None:
        self.selected_id = id_
        self._open_debugger()

    def __repr__(self) -> str:
        """Return how many questions of the sample the person has coded."""
        return (
            f"ErrorCoding({self.results.name}: {self.coder} has coded {len(self.codings)} "
            f"of {len(self.sample.ids)})"
        )
