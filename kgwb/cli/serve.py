"""``kgwb serve``: questions answered over HTTP, in the form of TEXT2SPARQL."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kgwb.bench import BenchSetup
from kgwb.bench.serve import ANY_DATASET, Text2SparqlServer
from kgwb.cli.arguments import PositiveInt, option, parse_assignments, warn_about_rules
from kgwb.cli.ask import QuestionArguments
from kgwb.errors import InputError
from kgwb.kg import is_endpoint_url
from kgwb.text import single_line


@dataclass(kw_only=True)
class ServeCommand(QuestionArguments):
    """The arguments of ``kgwb serve``, and its work."""

    kg: str = option("GRAPH", "RDF file or folder, endpoint URL, or the name of a sample", "")
    dataset: list[str] = option(
        "IRI=GRAPH",
        "answer questions on this dataset from this graph; --kg answers for all other datasets",
        [],
    )
    host: str = option("", "address to listen on (default: this machine)", "127.0.0.1")
    port: int = option("", "default: 8000; 0 takes a free one", 8000)
    workers: PositiveInt = option("N", "questions answered at the same time (default: 4)", 4)

    def run(self) -> None:
        """Open the graphs, print the address of each dataset, and answer HTTP requests until an interrupt.

        All datasets have the same system, model and settings. A graph that several datasets name is
        opened once. Raises InputError without a graph, or if the address cannot be used.
        """
        graphs = self._graphs_by_dataset()
        # With a dialect, the graph that it is for is opened first: an endpoint, if there is one.
        self.kg = max(graphs.values(), key=is_endpoint_url)
        workbench = self.make_workbench()
        opened = {self.kg: workbench.kg}
        for source in graphs.values():
            if source not in opened:
                opened[source] = self.open_graph(source)
        setup = BenchSetup.from_workbench(workbench)
        setups = {iri: replace(setup, kg=opened[source]) for iri, source in graphs.items()}
        address = (self.host, self.port)
        with Text2SparqlServer(address, setups, workers=self.workers) as server:
            warn_about_rules(workbench)
            for iri, setup in setups.items():
                dataset = iri or "every other dataset"
                text = single_line(f"answers for {dataset} from {setup.kg.source}")
                print(f"{server.url} {text}", flush=True)
            print("Ctrl+C stops it.", flush=True)
            server.serve_forever()

    def _graphs_by_dataset(self) -> dict[str, str]:
        """Return, by the IRI of each dataset, the text by which ``open_kg`` opens its graph.

        The graph of ``kg``, if given, is under the key ANY_DATASET, for all other datasets. Raises
        InputError if there is no graph, or a dataset is named twice.
        """
        graphs = parse_assignments(self.dataset, "IRI=GRAPH")
        if len(graphs) < len(self.dataset):
            given = [argument.partition("=")[0] for argument in self.dataset]
            twice = next(iri for iri in given if given.count(iri) > 1)
            raise InputError(
                f"--dataset names the dataset {twice} twice",
                hint="give each --dataset IRI=GRAPH once",
            )
        if self.kg:
            graphs[ANY_DATASET] = self.kg
        if not graphs:
            raise InputError(
                "the server was not started: no graph was named",
                hint="give --kg GRAPH, or --dataset IRI=GRAPH",
            )
        return graphs
