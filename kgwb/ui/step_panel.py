"""What the person can do with one step: run it, edit it, and ask the graph about its output.

The cell of an agent and the debugger are such panels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from kgwb.background import run_in_thread
from kgwb.errors import GraphError, InputError, SettingError
from kgwb.kg.queries import count_degrees
from kgwb.llm.base import ChatModel
from kgwb.run.agents import agent_of_key
from kgwb.run.models import MAX_TIMES, open_model
from kgwb.run.prompts import messages_from_text
from kgwb.run.sampled import sample_step
from kgwb.run.steps import Step
from kgwb.show import explain
from kgwb.show.form import add_or_remove_row
from kgwb.show.output_form import OutputForm, choose_option, update_derived_fields
from kgwb.show.prompt_form import estimate_tokens
from kgwb.show.records import MAX_DEGREE
from kgwb.show.terms import declare_known_prefixes, readable_query
from kgwb.show.thing_predicates import predicate_of_event, result_name, values_of
from kgwb.text import pluralize
from kgwb.ui.live import Event, argument_of, form_of, read_name, typed_text
from kgwb.ui.step_view import SampleState, StepView


class EditedQuery(NamedTuple):
    """A query of a step's output, as it was edited."""

    number: int
    """Its position among the queries of the output."""
    sparql: str


class StepPanel(StepView):
    """A step, and its events: a ``do_`` method for each."""

    # Running

    def do_run(self, event: Event) -> None:
        """Submit an execution up to the end of the step that is shown."""
        self.selected_section = ""
        self.session.run_to(self.key)

    def do_anew(self, event: Event) -> None:
        """Submit an execution up to the step that is shown, in which its calls are made again."""
        self.selected_section = ""
        self.session.refresh(self.key)

    def do_restore(self, event: Event) -> None:
        """Remove the value that was put in for the step, and submit an execution up to the step."""
        self.session.restore(self.key)

    def do_cancel(self, event: Event) -> None:
        """Cancel the question to the graph and the command on the run."""
        self.graph_worker.cancel()
        self.session.cancel()

    def do_section(self, event: Event) -> None:
        """Show the section that the event's ``arg`` names."""
        self.selected_section = argument_of(event)

    def do_which(self, event: Event) -> None:
        """Show the step of the event's ``arg``. Raises SettingError for no such agent."""
        self.requested_key = self._checked_key(event)
        self.selected_section = ""

    def _checked_key(self, event: Event) -> str:
        """Return the step or agent that an event names. Raises SettingError for no such agent."""
        key = argument_of(event)
        self.run.system.agent_spec(key)
        return key

    def do_command(self, event: Event) -> str:
        """Do what a form or a button of the system's views asks for, and run the step again.

        The event's ``arg`` is the name of one of the system's commands. Returns what came of it.
        Raises SettingError for an unknown command, for a run that can only be read, and while
        something is executed, and what the command raises.
        """
        name = argument_of(event)
        command = self.run.system.commands.get(name)
        if command is None or self.run.read_only:
            raise SettingError(
                f"this run has no command {name!r}", hint="use a button of this cell"
            )
        self.session.require_idle()
        result = command(self.run, form_of(event))
        self.session.edit_settings(**result.settings)
        self.session.go(self.key)
        return result.message

    # The prompt

    def do_draft(self, event: Event) -> None:
        """Keep what is being typed into the template as the draft of the step's prompt."""
        self.prompt_editor.keep_draft(self.key, event["value"])

    def do_try(self, event: Event) -> None:
        """Use the edited prompt in this run, and submit an execution up to the step.

        For an agent without a prompt file, the edited messages are sent. A result put in by hand is
        removed, and the draft discarded. The reply is shown below the buttons, so that the person's
        place in the page stays. Raises PromptError if the agent cannot use the prompt.
        """
        key = self.key
        step = self.step
        if self.prompt_editor.own_messages(step) is not None:
            text = typed_text(form_of(event)["template"])
            self.session.edit_messages(key, text)
        else:
            prompt = self.prompt_editor.edited_prompt(key, event)
            self.session.edit_prompt(prompt.name, prompt.text)
        self.prompt_editor.discard_draft(key)
        self.selected_section = "prompt"
        self.tries[key] += 1
        if step is not None and step.origin == "by hand":
            self.session.restore(key)
        else:
            self.session.go(key)

    def do_reply(self, event: Event) -> None:
        """Put in the typed reply for a model call, and submit an execution up to the step."""
        form = form_of(event)
        self._edit_reply(typed_text(form["reply"]), int(form["number"]))

    def do_take_back(self, event: Event) -> None:
        """Take back the reply that was put in for a model call; the event's ``arg`` is its number."""
        self._edit_reply(None, int(event["arg"]))

    def _edit_reply(self, text: str | None, number: int) -> None:
        """Put in a reply, or take it back with None, and submit an execution up to the step."""
        key = self.key
        self.session.edit_reply(key, text, number)
        self.selected_section = "attempts"
        self.session.go(key)

    def do_again(self, event: Event) -> None:
        """Ask the first model call of the step again, as often as typed, with the typed messages.

        It is for a run that can only be read. Each of the typed models is asked, on the worker's
        thread; the new replies are shown below the form at the end. Raises SettingError without a
        model or with something else than a number, PromptError for messages without roles, and
        UnknownModelError.
        """
        step = self._shown_step()
        results = self.results_of(step)
        results.typed_models = read_name(event, "model")
        results.typed_times = read_name(event, "times")
        names = results.typed_models.replace(",", " ").split()
        if not names:
            raise SettingError(
                "nothing was asked: no model is named", hint="type a model, such as openai:gpt-4o"
            )
        times = results.typed_times
        if not times.isdecimal():
            raise SettingError(
                f"the number of times cannot be {times!r}", hint="type a whole number, such as 3"
            )
        models = [open_model(name) for name in names]
        text = typed_text(form_of(event)["template"])
        messages = messages_from_text(text)
        self.prompt_editor.keep_draft(self.key, text)

        def ask() -> None:
            """Ask the call again, and keep the replies. A cancel leaves the call on its thread."""
            ask_again = partial(self.run.ask_again, step.key, models, messages=messages)
            results.new_replies = run_in_thread(
                partial(ask_again, times=int(times)), poll=self._stop_if_graph_cancelled
            )

        self.graph_worker.submit("asking the model", ask)

    # One call, many times

    def do_sample_cost(self, event: Event) -> None:
        """Estimate what asking the step as often as typed takes. Nothing is asked."""
        self._read_sample_form(event)

    def do_sample(self, event: Event) -> None:
        """Ask the model of the step as often as typed, with the draft of its prompt.

        The decisions that the replies lead to are shown below the form. The run does not change, and
        nothing after the step is asked. Raises SettingError for another number, PromptError for a
        prompt that the agent cannot use, and UnknownModelError.
        """
        key = self.key
        state, models = self._read_sample_form(event)
        prompt = self.prompt_editor.edited_prompt(key, {})
        prompts = self.run.prompts.with_text(prompt.name, prompt.text)
        times = int(state.typed_times)
        ask = partial(
            sample_step,
            self.run,
            key,
            models,
            times,
            prompts=prompts,
            check=self._stop_if_graph_cancelled,
        )

        def work() -> None:
            """Ask the call as often as typed, and keep the decisions."""
            state.sample = run_in_thread(ask, poll=self._stop_if_graph_cancelled)

        self.graph_worker.submit(f"asking: {state.cost}", work)

    def _read_sample_form(self, event: Event) -> tuple[SampleState, list[ChatModel]]:
        """Keep what was typed into the form of the sample; return its state and the models to ask.

        The state has the cost as a text. Without a typed name the model is the agent's own. Raises
        SettingError for another number than 1 to MAX_TIMES, or without a model, and
        UnknownModelError.
        """
        key = self.key
        state = self.sample_states.setdefault(key, SampleState())
        state.typed_models = read_name(event, "sample_models")
        state.typed_times = read_name(event, "sample_times")
        if not state.typed_times.isdecimal() or not 1 <= int(state.typed_times) <= MAX_TIMES:
            raise SettingError(
                f"the number of times cannot be {state.typed_times!r}",
                hint=f"type 1 to {MAX_TIMES}",
            )
        names = state.typed_models.replace(",", " ").split()
        models = [open_model(name) for name in names]
        own_model = self.run.model_for(agent_of_key(key))
        if not models and own_model is not None:
            models = [own_model]
        if not models:
            raise SettingError(
                "nothing was asked: no model is named", hint="type a model, such as openai:gpt-4o"
            )
        calls = int(state.typed_times) * len(models)
        state.cost = pluralize(calls, "call")
        request = self.prompt_editor.drafted_request(key)
        if request is not None:
            tokens = calls * estimate_tokens(request)
            state.cost += f", about {tokens:,} tokens and the replies"
        return state, models

    def do_take_sample(self, event: Event) -> None:
        """Put in one of the decisions as the step's output, and run up to the step.

        The event's ``arg`` is its position. Nothing is done without such a decision.
        """
        sample = self.sample_states.setdefault(self.key, SampleState()).sample
        position = int(event["arg"])
        if sample is None or not 0 <= position < len(sample.decisions):
            return
        self.session.replace(self.key, sample.decisions[position].output)
        self.selected_section = ""

    def do_save(self, event: Event) -> str:
        """Write the edited prompt to its file, and use it in this run.

        The file is in the folder of the form, if the form asks for one. Returns a message with the
        path. The draft is discarded. Raises PromptError if the agent cannot use the prompt, or the
        file cannot be written.
        """
        prompt = self.prompt_editor.edited_prompt(self.key, event)
        form = form_of(event)
        folder = typed_text(form.get("folder", "")).strip()
        path = self.session.save_prompt(prompt.name, prompt.text, folder)
        self.prompt_editor.discard_draft(self.key)
        if folder:
            return f"saved to {path}; Workbench(..., prompts={folder!r}) uses it"
        return f"saved to {path}; the next run uses it"

    def do_revert(self, event: Event) -> None:
        """Put the template of the prompt's file into the editor. Raises PromptError without one."""
        self.prompt_editor.revert(self.key)

    # The output

    def do_take(self, event: Event) -> None:
        """Put in the output with the option that was clicked, and run up to the step.

        The event's ``arg`` is the position of the option. Nothing is done if the step chose it
        itself. Raises OverrideError for a position that is not one of an option.
        """
        step = self._shown_step()
        position = int(event["arg"])
        value = choose_option(step, position)
        if value != step.output:
            self.session.replace(self.key, value)

    def do_apply(self, event: Event) -> None:
        """Put in the values of the form as the step's output, and run up to the step.

        Raises OverrideError for wrong values; they stay in the form then.
        """
        step = self._keep_typed_form(event)
        results = self.results_of(step)
        form = OutputForm(step)
        value = form.parse(form_of(event))
        self.session.replace(self.key, value)
        results.typed_form = None
        self.selected_section = ""
        self.revision += 1

    def do_more(self, event: Event) -> None:
        """Add a row to a list of the form; for the event "less", remove one.

        The event's ``arg`` is the path of the list, or of the row to remove. What was typed is
        kept. Raises OverrideError if the path is not one of a list.
        """
        step = self._keep_typed_form(event)
        results = self.results_of(step)
        field = OutputForm(step).field
        path = argument_of(event)
        is_removal = event["do"] == "less"
        results.typed_form = add_or_remove_row(field, form_of(event), path, remove=is_removal)
        self.revision += 1

    do_less = do_more

    def _keep_typed_form(self, event: Event) -> Step:
        """Keep the values of the form, and return the step that it belongs to."""
        step = self._shown_step()
        results = self.results_of(step)
        results.typed_form = form_of(event)
        return step

    # Questions to the graph

    def _ask_graph(self, question: str, ask: Callable[..., Any], *arguments: Any) -> None:
        """Submit a question to the graph, and keep the reply under the question's name.

        ``ask`` gets the graph and the arguments, and returns the reply. A cancel leaves the graph
        working on its thread. Raises InputError in a replay.
        """
        step = self._shown_step()
        graph = self.run.unrecorded_graph
        if graph is None:
            raise InputError(
                "the graph cannot be searched: this run is a replay without a graph",
                hint="open the run with its graph: kgwb.load_run(path, kg=kgwb.open_kg(...))",
            )

        def work() -> None:
            """Ask the graph, and keep the reply with the step."""
            reply = run_in_thread(
                partial(ask, graph, *arguments), poll=self._stop_if_graph_cancelled
            )
            results = self.results_of(step)
            results.graph_results[question] = reply

        self.graph_worker.submit("asking the graph", work)

    def _stop_if_graph_cancelled(self) -> None:
        """Raise GraphError if the person has cancelled the question to the graph."""
        if self.graph_worker.cancelled:
            raise GraphError(
                "the search was not finished: you cancelled the query",
                hint="the server may still work on it until its time limit; wait until then before you search again",
            )

    def do_where(self, event: Event) -> None:
        """Ask where the vertices of a typed name or IRI are among the candidates.

        The reply is shown below the candidates.

        Raises InputError if nothing was typed.
        """
        form = event["form"]
        name = str(form.get("name", "")).strip()
        if not name:
            raise InputError(
                "nothing was searched: the search field is empty",
                hint="type a name or an IRI into it",
            )
        output = self._shown_step().output
        limit = self.run.settings.v_limit
        self._ask_graph("where", explain.locate_vertices, name, output, limit)

    def do_degrees(self, event: Event) -> None:
        """Ask for the degree of each candidate."""
        candidates = self._shown_step().output.candidates
        iris = [candidate.iri for candidate in candidates]
        self._ask_graph("degrees", count_degrees, iris, MAX_DEGREE)

    def do_examples(self, event: Event) -> None:
        """Ask the graph for triples of the step's fact with one of its predicates.

        The event's ``arg`` is the position of the predicate. The reply is shown below it. Raises
        InputError in a replay.
        """
        position = int(event["arg"])
        output = self._shown_step().output
        predicate = output.predicates[position]
        self._ask_graph(
            f"examples {position}",
            explain.find_examples,
            output.fact.ends,
            predicate.iri,
            predicate.direction,
            self.session.all_steps,
        )

    def do_values(self, event: Event) -> None:
        """Ask the graph for the values of a predicate that a thing of a refused question has.

        The event's ``arg`` has the positions of the thing and of its predicate. The reply is shown
        below the predicates. Raises InputError if they are not shown any more.
        """
        things = self.things_of(self._shown_step().output) or self.things_of(self.run.answer)
        thing, predicate = predicate_of_event(things, argument_of(event))
        self._ask_graph(result_name(thing, predicate), values_of, thing.iri, predicate)

    def do_query(self, event: Event) -> None:
        """Execute a query as it was edited on the graph, and keep its result, or why it was refused."""
        query = self._edited_query(event)
        self._ask_graph(f"query {query.number}", explain.try_query, query.sparql)

    def do_why(self, event: Event) -> None:
        """Ask the graph which pattern of a query, as it was edited, leaves it without rows.

        The event's ``arg`` is the number of the query.
        """
        query = self._edited_query(event)
        question = f"why {query.number}"
        steps = self.session.all_steps
        self._ask_graph(question, explain.explain_empty_query, query.sparql, steps)

    def do_use(self, event: Event) -> None:
        """Put in the output with the edited query. Nothing is done if the query was not changed.

        The run is executed up to the step then. Raises QueryError if the query is not conjunctive
        or asks for something else.
        """
        query = self._edited_query(event)
        output = self._shown_step().output
        queries = list(output.queries)
        original = queries[query.number]
        if query.sparql == original.sparql:
            return
        queries[query.number] = explain.edit_candidate_query(original, query.sparql)
        edited = replace(output, queries=tuple(queries))
        value = update_derived_fields(edited)
        self.session.replace(self.key, value)

    def _edited_query(self, event: Event) -> EditedQuery:
        """Return the query that an event names by its number, with the text typed in its place.

        A query is shown with prefixes and line breaks; if that text was not changed, the query
        itself is returned. Prefixes that the page or the graph knows are declared in it.
        """
        number = int(event["arg"])
        step = self._shown_step()
        queries = explain.queries_in(step.output)
        query = queries[number]
        context = self._context_of(step)
        shown = readable_query(query, context)
        form = form_of(event)
        typed = typed_text(form.get("sparql", ""))
        if typed in ("", shown):
            return EditedQuery(number, query)
        return EditedQuery(number, declare_known_prefixes(typed, context))
