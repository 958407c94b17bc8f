"""Reads the Markdown page of an analysis or a rule: its titles, sections and examples.

States while reading lines: in prose, in a fenced block, in a table. A `strace` block starts an example,
`rows TABLE` and `params` blocks add to it, and the next table is its result.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sysdock.entries import parse_toml
from sysdock.errors import UserError
from sysdock.sentences import Prose, fact, languages, say

# Headings that the page of a rule has in each language, as `knowhow/sentences/pages.toml` names them.
RULE_HEADINGS = ("what_it_finds", "why_it_matters", "example", "what_to_do", "when_to_ignore_it")
# Under this one, a page says why a finding is so sure: `- medium: why.`; of a variant `- medium.write:`
HOW_SURE = "how_sure_it_is"
WHAT_TO_DO = "what_to_do"

MOST_EXAMPLES = 100
_ITEM = re.compile(r"-\s+([a-z_0-9]+(?:\.[a-z_0-9]+)?):\s+(\S.*)$")
_FENCE = re.compile(r"(`{3,}|~{3,})\s*([^`]*)$")
_RULE_LINE = re.compile(r"\|?(\s*:?-+:?\s*\|)*\s*:?-+:?\s*\|?$")
# First characters of a fence, a heading or a table.
_MARKS = {"`", "~", "#", "|"}
_ESCAPES = {"\\": "\\", "|": "|", "n": "\n", "r": "\r", "t": "\t"}


@dataclass
class Example:
    """A log, rows of tables that no log has, parameters, and the table that the SQL makes of them.

    `expected_rows` holds cells as written (None for an empty one). `line_no` is where the log's block begins;
    `table_lines` is the half-open range of the table's lines, from 1, or None where there is no table.
    """

    log_text: str
    params: dict[str, Any]
    expected_columns: list[str]
    expected_rows: list[list[str | None]]
    line_no: int
    table_lines: tuple[int, int] | None = None
    insert_at: int = 0
    rows: dict[str, list[dict[str, str]]] = field(default_factory=dict)


@dataclass
class Page:
    """A page: titles and opening words by language, sections by heading, and its examples."""

    titles: Prose
    sections: dict[str, str]
    examples: list[Example]
    texts: Prose = field(default_factory=lambda: Prose({"en": ""}))
    path: Path = field(default_factory=Path)

    @property
    def title(self) -> str:
        """The title in the language of names."""
        return say(self.titles, languages()[0])

    @property
    def text(self) -> str:
        """The opening words in the language of names."""
        return say(self.texts, languages()[0])

    def section(self, name: str) -> Prose | None:
        """The text below a heading, by language; None if there is none in any."""
        found = {lang: self.sections.get(heading(name, lang), "").strip() for lang in languages()}
        found = {lang: text for lang, text in found.items() if text}
        return Prose(found) if found else None

    def first_paragraph(self, name: str) -> Prose | None:
        """First paragraph below a heading, as one line without emphasis marks; None where there is none."""
        section = self.section(name)
        texts = section.texts if section else {}
        found = {lang: one_line(text.split("\n\n")[0]) for lang, text in texts.items()}
        return Prose(found) if any(found.values()) else None

    def advice(self, variant: str | None) -> Prose | None:
        """What to do about a finding of that variant: its item `- VARIANT: ...`, else the first paragraph."""
        first = self.first_paragraph(WHAT_TO_DO)
        items = {lang: self._items(WHAT_TO_DO, lang).get(variant or "") for lang in languages()}
        own = {lang: text[0].upper() + one_line(text)[1:] for lang, text in items.items() if text}
        return Prose({**(first.texts if first else {}), **own}) if own else first

    def clauses(self, lang: str = "en") -> dict[str, str]:
        """Why findings are so sure, by certainty (`high`) or certainty and variant (`medium.write`)."""
        return {name: one_line(text).rstrip(".。") for name, text in self._items(HOW_SURE, lang).items()}

    def _items(self, section: str, lang: str) -> dict[str, str]:
        """The items `- name: ...` of a list below a heading."""
        found: dict[str, str] = {}
        name = None
        for line in self.sections.get(heading(section, lang), "").splitlines():
            if match := _ITEM.match(line):
                name = match[1]
                found[name] = match[2]
            elif name and line.startswith(" "):
                found[name] += "\n" + line
            else:
                name = None
        return found

    def how_sure(self, certainty: str | None, variant: str | None) -> Prose | None:
        """Why a finding of that certainty and variant is so sure, a clause; None where the page is silent."""
        if certainty is None:
            return None
        found = {}
        for lang in languages():
            clauses = self.clauses(lang)
            if text := clauses.get(f"{certainty}.{variant}", clauses.get(certainty)):
                found[lang] = text
        return Prose(found) if found else None


def heading(name: str, lang: str) -> str:
    """A heading that sysdock reads of a page, in a language of the page."""
    return say(fact(f"pages/{name}"), lang)


def one_line(text: str) -> str:
    """A paragraph without line breaks and marks of emphasis."""
    words = " ".join(line.strip() for line in text.splitlines())
    # Japanese has no blanks between words: a line break there is not one either.
    words = re.sub(r"(?<=[\u3000-\u9fff\uff00-\uffef]) (?=[\u3000-\u9fff\uff00-\uffef])", "", words)
    return words.replace("`", "").replace("**", "")


def parse_page(path: Path) -> Page:
    """Reads a page; a UserError names the place of a mistake."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except FileNotFoundError:
        raise UserError(
            "there is no page", "every analysis and rule has one of the same stem", str(path)
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot be read: {error}", place=str(path)) from None
    return _Reader(path, lines).read()


def _by_language(parts: list[str]) -> Prose:
    """Parts of a page, which are in the order of the languages; the rest of them are not read."""
    return Prose({lang: part for lang, part in zip(languages(), parts, strict=False) if part or lang == "en"})


class _Reader:
    """Walks over the lines of one page."""

    def __init__(self, path: Path, lines: list[str]) -> None:
        self.path = path
        self.lines = lines
        self.at = 0
        self.titles: list[str] = []
        self.texts: list[list[str]] = []
        self.sections: dict[str, list[str]] = {}
        self.examples: list[Example] = []

    def error(self, line: int, fact: str, hint: str | None = None) -> UserError:
        return UserError(fact, hint, f"{self.path}:{line}")

    def read(self) -> Page:
        target: list[str] = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            start = self.at
            if line[:1] not in _MARKS:
                # Prose, most of a page.
                self.at += 1
            elif fence := _FENCE.match(line):
                self.block(fence)
            elif line.startswith("# "):
                self.titles.append(line[2:].strip())
                target = []
                self.texts.append(target)
                self.at += 1
                continue
            elif line.startswith("## "):
                target = self.sections.setdefault(line[3:].strip(), [])
                self.at += 1
                continue
            elif self.is_table():
                self.table()
            else:
                self.at += 1
            target.extend(self.lines[start : self.at])
        if not self.titles:
            raise self.error(1, "the page has no title", "begin it with `# Title`")
        texts = ["\n".join(text).strip() for text in self.texts]
        return Page(
            titles=_by_language(self.titles),
            sections={heading: "\n".join(body).strip() for heading, body in self.sections.items()},
            examples=self.examples,
            texts=_by_language(texts),
            path=self.path,
        )

    def block(self, fence: re.Match[str]) -> None:
        """Reads a fenced block and leaves `at` on the line after it."""
        marks, words = fence.group(1), fence.group(2).split()
        start = self.at
        self.at += 1
        while self.at < len(self.lines) and self.lines[self.at].strip() != marks:
            self.at += 1
        if self.at == len(self.lines):
            raise self.error(start + 1, "the block is not closed")
        body = self.lines[start + 1 : self.at]
        self.at += 1
        name = words[0] if words else ""
        if name == "strace":
            log = "\n".join(body) + "\n" if body else ""
            self.begin_example(log, start + 1)
        elif name in ("params", "rows"):
            self.add_block(words, body, start + 1)

    def begin_example(self, log: str, line_no: int) -> None:
        """Adds an example. `sysdock check` runs each: their number is what a small page costs."""
        if len(self.examples) == MOST_EXAMPLES:
            raise self.error(line_no, f"the page has more than {MOST_EXAMPLES} examples", "split it")
        self.examples.append(Example(log, {}, [], [], line_no, None, self.at))

    def add_block(self, words: list[str], body: list[str], line_no: int) -> None:
        """Adds a `params` or `rows TABLE` block to the last example."""
        name = words[0]
        is_next = self.examples and not self.examples[-1].table_lines
        if name == "rows" and not is_next:
            # The example is of a recording that no log makes, such as a scan of a disk.
            self.begin_example("", line_no)
        elif not is_next:
            raise self.error(line_no, f"a `{name}` block without a `strace` or `rows` block before it")
        example = self.examples[-1]
        example.insert_at = self.at
        if name == "rows":
            if len(words) != 2:
                raise self.error(line_no, "a `rows` block names one table", "```rows TABLE")
            example.rows[words[1]] = self.rows(body, line_no)
            return
        try:
            example.params = parse_toml("\n".join(body))
        except ValueError as error:
            raise self.error(line_no, f"not `name = value`: {error}") from None

    def rows(self, body: list[str], line_no: int) -> list[dict[str, str]]:
        """Reads rows of a table: CSV, the names of the columns in the first line."""
        try:
            rows = list(csv.DictReader(body))
        except csv.Error as error:
            raise self.error(line_no, f"not rows of CSV: {error}") from None
        if any(None in row for row in rows):
            raise self.error(line_no, "a row has more cells than the first line has names")
        return rows

    def is_table(self) -> bool:
        if not self.lines[self.at].startswith("|") or self.at + 1 == len(self.lines):
            return False
        return bool(_RULE_LINE.match(self.lines[self.at + 1].strip()))

    def table(self) -> None:
        """Reads a table; it belongs to the last example if that has none yet."""
        start = self.at
        while self.at < len(self.lines) and self.lines[self.at].startswith("|"):
            self.at += 1
        if not self.examples or self.examples[-1].table_lines:
            return
        example = self.examples[-1]
        example.expected_columns = [cell or "" for cell in cells(self.lines[start])]
        example.table_lines = (start + 1, self.at + 1)
        for number in range(start + 2, self.at):
            row = cells(self.lines[number])
            if len(row) != len(example.expected_columns):
                raise self.error(
                    number + 1, f"{len(row)} cells under {len(example.expected_columns)} columns"
                )
            example.expected_rows.append(row)


def cells(line: str) -> list[str | None]:
    r"""Cells of a table line, as `cell_text` writes them; None for an empty one.

    `\|`, `\n`, `\r`, `\t` and `\\` are undone.
    """
    line = line.strip().removeprefix("|")
    if "\\" not in line:
        parts = line.split("|")
        return [part.strip(" ") or None for part in (parts if parts[-1].strip() else parts[:-1])]
    parts, word, chars = [], "", iter(line)
    for char in chars:
        if char == "\\":
            following = next(chars, "")
            word += _ESCAPES.get(following, char + following)
        elif char == "|":
            parts.append(word)
            word = ""
        else:
            word += char
    if word.strip():
        parts.append(word)
    return [part.strip(" ") or None for part in parts]


def cell_text(value: Any) -> str:
    """A value as it is written in a page: an empty cell is NULL, `''` the empty string."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".")
    text = str(value)
    for plain, escaped in (("\\", "\\\\"), ("|", "\\|"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = text.replace(plain, escaped)
    return text if text.strip(" ") else f"'{text}'"
