"""Texts beside the graph: the passages of documents (RAGonite, section 2.6).

They are fused and cited like the passages of the graph. What they say is text, and no triple.
"""

from __future__ import annotations

import codecs
import hashlib
import importlib
import json
import os
import re
import sqlite3
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from kgwb.build import (
    SettingError,
    check_regular_file,
    list_first,
    pluralize,
    shorten,
)
from kgwb.systems.ragonite.database import insert_passage, read_schema, write_schema
from kgwb.systems.ragonite.database_file import Extension

DOCUMENTS_SQL = "CREATE TABLE _documents (passage INTEGER PRIMARY KEY, file TEXT, place TEXT)"
"""The table with the file of each passage that comes from a document."""
MAX_KEPT_FOLDERS = 8
"""Folders whose documents are kept: those that questions are asked over at one time."""
FolderState = tuple[tuple[str, int, int], ...]
"""The path, the size and the time of change of every file in a folder."""


def open_documents(folder: str) -> Extension:
    """Return the documents in a folder as an extension of the database.

    They are read again if a file has changed. Raises what ``read_documents`` raises.
    """
    documents = _read_in_state(folder, _state_of(folder))
    add = partial(add_documents, documents.texts)
    notes = []
    if documents.skipped_files:
        number = pluralize(len(documents.skipped_files), "file")
        names = list_first(documents.skipped_files)
        notes.append(f"{number} of {folder} not read, for the format is not known: {names}")
    return Extension("documents", folder, documents.identity, add, tuple(notes))


@lru_cache(maxsize=MAX_KEPT_FOLDERS)
def _read_in_state(folder: str, state: FolderState) -> Documents:
    """Return the documents in a folder; those of a state that was read before are kept."""
    return read_documents(folder)


def _state_of(folder: str) -> FolderState:
    """Return the state of the files in a folder; empty for one that is not there."""
    states = []
    for place, _, names in os.walk(Path(folder).expanduser()):
        for name in names:
            path = Path(place, name)
            status = path.lstat()
            states.append((str(path), status.st_size, status.st_mtime_ns))
    return tuple(sorted(states))


def add_documents(texts: Iterable[DocumentText], connection: sqlite3.Connection) -> None:
    """Add texts to the passages of a database, and to its index of words.

    A passage has the file, the place and the heading as its title, and no triples.
    """
    connection.execute(DOCUMENTS_SQL)
    schema = read_schema(connection)
    number = schema.passages
    for text in texts:
        title = f"{text.file}, {text.place}"
        if text.heading:
            title = f"{title}: {text.heading}"
        insert_passage(connection, number, title, text.text)
        row = (number, text.file, text.place)
        connection.execute("INSERT INTO _documents VALUES (?, ?, ?)", row)
        number += 1
    write_schema(connection, replace(schema, document_passages=number - schema.passages))


MAX_FILE_BYTES = 4_000_000
"""The greatest size of one file."""
MAX_TEXT_CHARS = 900
"""Characters of one text. A longer paragraph is divided."""
MAX_TEXTS = 20_000
"""Texts of all files of a folder."""
MAX_SHOWN_NAME_CHARS = 120
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""The encodings that a file may have, by the bytes that it then begins with; else it is UTF-8."""
MARKDOWN_HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*")
MARKDOWN_FENCE = re.compile(r"\s*(```|~~~)")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
HIDDEN_TAGS = frozenset(("script", "style", "template", "noscript"))
"""The tags whose content a page does not show."""
INLINE_TAGS = frozenset(
    "a abbr b bdi bdo cite code em font i kbd mark q s small span strong sub sup u".split()
)
"""The tags that do not end a paragraph."""
HEADING_TAGS = frozenset(("title", "h1", "h2", "h3", "h4", "h5", "h6"))


class DocumentText(NamedTuple):
    """A text of a file: a paragraph, or a part of a long one."""

    file: str
    """The path in the folder, with "/" between its parts."""
    place: str
    """Where the text begins: "line 12", or "page 3" of a PDF."""
    heading: str
    """The heading above it, or the title of its entry; empty if there is none."""
    text: str


class Documents(NamedTuple):
    """The texts of a folder."""

    texts: tuple[DocumentText, ...]
    """In the order of the files' paths, and of the places in a file."""
    identity: str
    """A hash of the paths and the contents of the files."""
    skipped_files: tuple[str, ...]
    """The paths of the files that are in none of the formats of READERS."""


class Paragraph(NamedTuple):
    """Lines of a file that belong together, each with its number from 1."""

    heading: str
    lines: Sequence[tuple[int, str]]


def read_documents(folder: str) -> Documents:
    """Return the texts of the files in a folder and the folders in it.

    Hidden files and folders are left out, and folders that are links. A file in an unknown format
    is named in the result.

    Raises SettingError, which names the file, if there is no such folder, or nothing to read in
    it; if a file cannot be opened, has more than MAX_FILE_BYTES or an unknown encoding, or is
    not valid in its format; and if there are more than MAX_TEXTS texts.
    """
    root = Path(folder).expanduser()
    texts: list[DocumentText] = []
    skipped = []
    digest = hashlib.sha256()
    for path in _list_files(root):
        name = path.relative_to(root).as_posix()
        # A name that is no UTF-8 could be neither stored nor shown.
        name = name.encode("utf-8", "replace").decode()
        reader = READERS.get(path.suffix.lower())
        if reader is None:
            skipped.append(name)
            continue
        content = _read_bytes(path, name)
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
        unit = "line"
        if reader is read_pdf:
            unit = "page"
        texts += _make_texts(name, reader(name, content), unit)
        if len(texts) > MAX_TEXTS:
            raise SettingError(
                f"the documents in {folder} have more than {MAX_TEXTS:,} paragraphs",
                hint="name a smaller folder with the setting documents",
            )
    if not texts:
        formats = ", ".join(sorted(READERS))
        raise SettingError(
            f"the folder of documents {folder} has no text",
            hint=f"name a folder with files of these kinds: {formats}",
        )
    return Documents(tuple(texts), digest.hexdigest(), tuple(skipped))


def _list_files(root: Path) -> Iterator[Path]:
    """Yield the files in a folder and in its folders, in the order of their paths.

    Raises SettingError if there is no such folder, or one cannot be opened.
    """
    if not root.is_dir():
        problem = "is not there"
        if root.exists():
            problem = "is a file"
        raise SettingError(
            f"the folder of documents {root} {problem}",
            hint="name an existing folder with the setting documents",
        )

    def refuse(error: OSError) -> None:
        raise SettingError(
            f"the folder {error.filename} cannot be read: {error.strerror}",
            hint="make it readable, or name another one with the setting documents",
        ) from error

    paths = []
    for place, folders, files in os.walk(root, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if not name.startswith("."):
                paths.append(Path(place, name))
    yield from sorted(paths, key=lambda path: path.relative_to(root).parts)


def _read_bytes(path: Path, name: str) -> bytes:
    """Return the content of a file. Raises SettingError if it is too large or cannot be read."""
    try:
        size = check_regular_file(path).stat().st_size
        if size > MAX_FILE_BYTES:
            raise SettingError(
                f"{_show(name)} has {size / 1e6:.1f} MB: a document has at most"
                f" {MAX_FILE_BYTES / 1e6:.0f} MB",
                hint="divide it, or move it out of the folder",
            )
        return path.read_bytes()
    except OSError as error:
        raise SettingError(
            f"{_show(name)} cannot be read: {error.strerror or error}",
            hint="make it readable, or move it out of the folder",
        ) from error


def _show(name: str) -> str:
    """Return the name of a file for a message: on one line, and not too long."""
    return shorten(" ".join(name.split()), MAX_SHOWN_NAME_CHARS)


def _decode(name: str, content: bytes) -> str:
    """Return the text of a file. Raises SettingError if it is neither UTF-8 nor marked as UTF-16."""
    encoding = "utf-8"
    for mark, marked_encoding in BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            encoding = marked_encoding
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        byte = content[error.start]
        raise SettingError(
            f"{_show(name)} is no {encoding.removesuffix('-sig').upper()}:"
            f" line {line} has the byte 0x{byte:02x}, which is no part of a character",
            hint="save it as UTF-8, or move it out of the folder",
        ) from error
    if "\0" in text:
        raise SettingError(
            f"{_show(name)} is not a text file: it contains NUL bytes (0x00)",
            hint="save it as UTF-8, or move it out of the folder",
        )
    return text


# From paragraphs to texts


def _make_texts(file: str, paragraphs: Iterable[Paragraph], unit: str) -> Iterator[DocumentText]:
    """Yield the texts of paragraphs, whose lines are numbered in ``unit``: "line" or "page"."""
    for paragraph in paragraphs:
        for number, text in _divide(paragraph.lines):
            yield DocumentText(file, f"{unit} {number}", _clean(paragraph.heading), _clean(text))


def _clean(text: str) -> str:
    """Return a text on one line, without zero bytes and without halves of characters."""
    one_line = " ".join(text.replace("\0", " ").split())
    return one_line.encode("utf-8", "replace").decode()


def _divide(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the text of numbered lines in parts of at most MAX_TEXT_CHARS, with their first lines.

    A part ends with a line, or else with a sentence, or else with a word.
    """
    text = ""
    start = 0
    for number, line in lines:
        for part in _divide_line(line.strip()):
            if text and len(text) + 1 + len(part) > MAX_TEXT_CHARS:
                yield start, text
                text = ""
            if not text:
                start = number
            text = f"{text} {part}".strip()
    if text:
        yield start, text


def _divide_line(line: str) -> list[str]:
    """Return a line in parts of at most MAX_TEXT_CHARS: sentences, or else words."""
    if len(line) <= MAX_TEXT_CHARS:
        return [line]
    parts = []
    for sentence in SENTENCE_END.split(line):
        parts += textwrap.wrap(sentence, MAX_TEXT_CHARS)
    return parts


# The formats


def read_plain(file: str, content: bytes) -> Iterator[Paragraph]:
    """Return the paragraphs of a plain text: lines between empty lines."""
    return _split_lines(_decode(file, content), lambda line: None)


def read_markdown(file: str, content: bytes) -> Iterator[Paragraph]:
    """Return the paragraphs of a Markdown text, each with the heading above it.

    A heading is a line that begins with "#", outside of a block of code. Headings directly below
    each other are one: "Reviews: Music". One at the end, without a paragraph below it, is a text
    itself.
    """
    is_code = False

    def find_heading(line: str) -> str | None:
        nonlocal is_code
        if MARKDOWN_FENCE.match(line):
            is_code = not is_code
        found = None
        if not is_code:
            found = MARKDOWN_HEADING.fullmatch(line.strip())
        if found:
            return found[1]
        return None

    return _split_lines(_decode(file, content), find_heading)


def _split_lines(text: str, find_heading: Callable[[str], str | None]) -> Iterator[Paragraph]:
    """Yield the paragraphs between empty lines and headings.

    ``find_heading`` returns the heading that a line is; None for any other line.
    """
    heading = ""
    heading_line = 0  # 0 once there is a paragraph below the heading
    run: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        found = find_heading(line)
        if line.strip() and found is None:
            run.append((number, line))
            heading_line = 0
            continue
        if run:
            yield Paragraph(heading, run)
            run = []
        if found is not None:
            joined = found
            if heading_line:
                joined = _join_headings(heading, found)
            if heading_line and len(joined) > MAX_TEXT_CHARS:
                yield Paragraph("", [(heading_line, heading)])
                joined = found
                heading_line = number
            heading = joined
            heading_line = heading_line or number
    if run:
        yield Paragraph(heading, run)
    elif heading_line:
        yield Paragraph("", [(heading_line, heading)])


def _join_headings(above: str, below: str) -> str:
    """Return two headings, of which one stands directly below the other, as one; equal ones once."""
    if above.strip() == below.strip():
        return below
    return f"{above}: {below}"


class PageParser(HTMLParser):
    """Collects the paragraphs that a page shows, with the numbers of their lines."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.paragraphs: list[Paragraph] = []
        self._heading = ""
        self._has_paragraph = True
        """Whether there is a paragraph below the heading."""
        self._lines: dict[int, str] = {}
        """The text of the present paragraph by line."""
        self._hidden_tag = ""
        """The tag whose content is left out at present."""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if not self._hidden_tag and tag in HIDDEN_TAGS:
            self._hidden_tag = tag
        if tag not in INLINE_TAGS:
            self.end_paragraph()

    def handle_endtag(self, tag: str) -> None:
        if tag == self._hidden_tag:
            self._hidden_tag = ""
        if tag in HEADING_TAGS:
            self._add_heading(" ".join(self._lines.values()))
            self._lines = {}
        elif tag not in INLINE_TAGS:
            self.end_paragraph()

    def _add_heading(self, heading: str) -> None:
        """Make a heading the present one, behind the one directly above it unless both are too long."""
        joined = heading
        if self._heading and not self._has_paragraph:
            joined = _join_headings(self._heading, heading)
        self._heading = joined if len(joined) <= MAX_TEXT_CHARS else heading
        self._has_paragraph = False

    def handle_data(self, data: str) -> None:
        if self._hidden_tag:
            return
        first_line, _ = self.getpos()
        for number, line in enumerate(data.split("\n"), first_line):
            self._lines[number] = self._lines.get(number, "") + line

    def end_paragraph(self) -> None:
        """Keep the lines since the last paragraph as the next one, if there are any."""
        lines = []
        for number, line in self._lines.items():
            if line.strip():
                lines.append((number, line))
        if lines:
            self.paragraphs.append(Paragraph(self._heading, lines))
            self._has_paragraph = True
        self._lines = {}


def read_html(file: str, content: bytes) -> list[Paragraph]:
    """Return the paragraphs that an HTML page shows, each with the heading above it."""
    parser = PageParser()
    parser.feed(_decode(file, content))
    parser.close()
    parser.end_paragraph()
    return parser.paragraphs


def read_json_lines(file: str, content: bytes) -> Iterator[Paragraph]:
    """Yield the texts of lines such as {"title": "...", "text": "..."}; the title may be missing.

    Raises SettingError for a line that is something else.
    """
    for number, line in enumerate(_decode(file, content).split("\n"), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        text = None
        if isinstance(entry, dict):
            text = entry.get("text")
        if not isinstance(text, str):
            raise SettingError(
                f"line {number} of {_show(file)} has no text",
                hint='write each line as {"title": "...", "text": "..."}',
            )
        lines = [(number, part) for part in text.split("\n")]
        yield Paragraph(str(entry.get("title") or ""), lines)


def read_pdf(file: str, content: bytes) -> list[Paragraph]:
    """Return the texts of the pages of a PDF.

    Raises SettingError if pypdf is not installed, or cannot read the file.
    """
    try:
        pypdf = importlib.import_module("pypdf")
    except ImportError as error:
        raise SettingError(
            f"{_show(file)} is a PDF, and pypdf is not installed",
            hint="install it: pip install 'kgwb[pdf]', or move the file out of the folder",
        ) from error
    paragraphs = []
    try:
        for number, page in enumerate(pypdf.PdfReader(BytesIO(content)).pages, 1):
            lines = page.extract_text().splitlines()
            paragraphs.append(Paragraph("", [(number, line) for line in lines]))
    except Exception as error:  # pypdf raises many kinds of errors for a damaged file
        raise SettingError(
            f"{_show(file)} cannot be read as a PDF: {error}",
            hint="save it as text, or move it out of the folder",
        ) from error
    return paragraphs


READERS: Mapping[str, Callable[[str, bytes], Iterable[Paragraph]]] = {
    ".txt": read_plain,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".html": read_html,
    ".htm": read_html,
    ".jsonl": read_json_lines,
    ".pdf": read_pdf,
}
"""The functions that read a file's content, by the ending of its name."""
