"""``kgwb export``: a saved run for other programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kgwb.cli.arguments import option, positional
from kgwb.text import mask_url


@dataclass(kw_only=True)
class ExportCommand:
    """export a saved run as a trace, to a file or to a server that shows traces, such as Phoenix"""

    to: str = option("openinference", "the form of the export (default)", "openinference")
    out: str = option(
        "FILE or ADDRESS",
        "OTLP JSON is written to a file; an address that begins with http gets OTLP "
        "(default: trace.json)",
        "trace.json",
    )
    system: str | None = option("SYSTEM", "the system of the run, if the file's name is not known")
    path: Path = positional("RUN", "a file of kgwb ask --save or Run.save")

    def run(self) -> None:
        """Replay the saved run, write its trace to a file or send it to a server, and print its id and place.

        Raises what ``load_run`` and ``Run.export`` raise.
        """
        from kgwb.run.systems import load_run

        run = load_run(self.path, system=self.system)
        trace_id = run.export(self.out, to=self.to)
        print(f"trace {trace_id}: {mask_url(self.out)}")
