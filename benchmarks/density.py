"""Print the size and the density of a Python package, room by room.

A room is a file or a folder of the first level. A token is a name, a number, a string or an operator;
docstrings, comments, blank lines and indentation are not counted. A code line holds at least one token.

    python benchmarks/density.py [PACKAGE]
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
COUNTED_NAMES = ("NAME", "NUMBER", "STRING", "OP", "FSTRING_START", "FSTRING_MIDDLE")
COUNTED = {getattr(tokenize, name) for name in COUNTED_NAMES if hasattr(tokenize, name)}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
COLUMNS = ("tokens", "lines", "per line", "compr.", "cond.", "double")


@dataclass
class Size:
    """The size of some source code, and how often it uses the forms that make code dense."""

    tokens: int = 0
    code_lines: int = 0
    comprehensions: int = 0
    conditional_expressions: int = 0
    double_loops: int = 0
    """Comprehensions with more than one ``for``."""

    def add(self, other: Size) -> None:
        """Add the figures of other source code to these."""
        self.tokens += other.tokens
        self.code_lines += other.code_lines
        self.comprehensions += other.comprehensions
        self.conditional_expressions += other.conditional_expressions
        self.double_loops += other.double_loops

    def row(self) -> str:
        """Return the figures as columns; forms are counted for each 1,000 tokens."""
        tokens = max(1, self.tokens)
        figures = [
            f"{self.tokens:,}",
            f"{self.code_lines:,}",
            f"{self.tokens / max(1, self.code_lines):.1f}",
            f"{1000 * self.comprehensions / tokens:.1f}",
            f"{1000 * self.conditional_expressions / tokens:.1f}",
            f"{1000 * self.double_loops / tokens:.1f}",
        ]
        return "".join(f"{figure:>10}" for figure in figures)


def size_of(source: str) -> Size:
    """Measure the source code of one module."""
    size = Size()
    docstring_lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, COMPREHENSIONS):
            size.comprehensions += 1
            if len(node.generators) > 1:
                size.double_loops += 1
        elif isinstance(node, ast.IfExp):
            size.conditional_expressions += 1
        elif is_docstring(node):
            docstring_lines.update(range(node.lineno, node.end_lineno + 1))
    code_lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        line = token.start[0]
        if token.type in COUNTED and line not in docstring_lines:
            size.tokens += 1
            code_lines.add(line)
    size.code_lines = len(code_lines)
    return size


def is_docstring(node: ast.AST) -> bool:
    """Tell whether a node is a string that stands as a statement of its own."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return False
    return isinstance(node.value.value, str)


def main() -> None:
    """Print one line for each room of the package, and one for all of it."""
    package = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "kgwb"
    rooms: dict[str, Size] = defaultdict(Size)
    total = Size()
    for path in sorted(package.rglob("*.py")):
        size = size_of(path.read_text(encoding="utf-8"))
        rooms[path.relative_to(package).parts[0]].add(size)
        total.add(size)
    print(f"{'':24}" + "".join(f"{column:>10}" for column in COLUMNS))
    for room, size in rooms.items():
        print(f"{room:24}{size.row()}")
    print(f"{'in all':24}{total.row()}")
    if sys.version_info < (3, 12):
        print("Before Python 3.12 the inside of f-strings is not counted.")


if __name__ == "__main__":
    main()
