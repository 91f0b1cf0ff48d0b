"""``kgwb pack``: results as an archive that opens anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kgwb.cli.arguments import PositiveInt, option, positional
from kgwb.text import pluralize


@dataclass(kw_only=True)
class PackCommand:
    """pack results, runs, prompts, settings and the graph into an archive, an RO-Crate"""

    folders: list[Path] = positional("DIR", "folder of kgwb bench --out")
    to: Path = option("FILE", "the archive to write (default: artifact.zip)", Path("artifact.zip"))
    license: str = option(
        "IRI", "licence of the results, such as https://spdx.org/licenses/CC-BY-4.0", ""
    )
    max_graph_mb: PositiveInt = option("MB", "leave out a larger graph (default: 50)", 50)

    def run(self) -> None:
        """Write the archive, and print its path and what is not in it.

        Raises what ``pack_results`` raises.
        """
        from kgwb.bench.exports import pack_results

        packed = pack_results(
            self.folders, self.to, license_iri=self.license, max_graph_mb=self.max_graph_mb
        )
        print(f"{packed.path}: {pluralize(packed.file_count, 'file')}")
        for sentence in packed.left_out:
            print(f"  left out: {sentence}")
