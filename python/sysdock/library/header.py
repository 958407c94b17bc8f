"""Reads analyses and rules: a header of `--` lines with a closed list of keys, then one SELECT.

The format is described in docs/reference/knowhow-files.md.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from sysdock.errors import UserError, did_you_mean
from sysdock.library.rule_shape import KNOWN_COLUMNS, RULE_COLUMNS, Column, Sentences, parse_sentences
from sysdock.sentences import Prose, languages

KEYS = (
    "needs",
    "uses",
    "else",
    "param",
    "column",
    *(f"{key}_{lang}" for key in ("heads", "texts") for lang in languages()[1:]),
    "sums",
    "match",
    "chart",
    "says",
    "evidence",
    "at_least",
    "portable",
    "question",
    "reads",
    "tags",
    "was",
)
TAGS = (
    "calls",
    "bytes",
    "time",
    "size",
    "errors",
    "files",
    "offsets",
    "processes",
    "metadata",
    "disk",
    "cpu",
    "locks",
    "jobs",
)
# Names that an `at_least:` line may use besides tables [ns]: the duration of the recording, and that of all
# threads together, which no sum of times over threads exceeds.
TIMES = ("duration", "thread_time")
TYPES = ("BIGINT", "INTEGER", "DOUBLE", "VARCHAR", "BOOLEAN")

_PARENTHESIS = re.compile("[()]")
_KEY_LINE = re.compile(r"([a-z_]+):(?:\s+(.*))?$")
_COLUMN = re.compile(r"([a-z][a-z0-9_]*)\s+([A-Z]+)\s+(\S.*)$")
_PARAM = re.compile(
    r"([a-z][a-z0-9_]*)\s+([A-Z]+)\s*=\s*('(?:[^']|'')*'|[^\s']+)"
    r"(?:\s+>\s*(-?[0-9]+(?:\.[0-9]+)?))?\s+(\S.*)$"
)
# The name of a question about dumps, and its title.
_QUESTION = re.compile(r"[a-z][a-z0-9-]* \S")
# The engine takes the square of the depth to parse it.
_DEEPEST = 100
# A match begins at the first blank only: else a long row of blanks takes quadratic time.
_UNIT = re.compile(r"(?<!\s)\s*\[([^\[\]]+)\](\.?)$")


@dataclass(frozen=True)
class Param:
    """A parameter of an analysis, bound as `$name`; `default` has the Python type of `type`, or is None.

    `above`: values must be greater than that.
    """

    name: str
    type: str
    default: Any
    text: str
    unit: str | None = None
    above: float | None = None


@dataclass(frozen=True)
class ChartLine:
    """A `chart:` line: the name of a template and what it is to show."""

    template: str
    options: dict[str, str]


@dataclass(frozen=True)
class AtLeast:
    """An `at_least:` line: a rule finds nothing in a recording with less of `quantity` than all of `params`.

    `quantity`: a table, of which the rows count, or one of `TIMES`. `params`: names of parameters; the
    smallest of their values counts.
    """

    quantity: str
    params: tuple[str, ...]


@dataclass(frozen=True)
class Analysis:
    """One question or rule: its header, its SQL (without header and final semicolon), and its two files.

    `otherwise`: the analysis that answers where a recording lacks a table that this one needs.
    `question`: the name by which it is asked about a crash dump, and the title of that question; `reads`:
    the parts of the dump that are read for it.
    """

    id: str
    kind: str
    title: str
    text: str
    needs: tuple[str, ...]
    uses: tuple[str, ...]
    otherwise: str | None
    params: tuple[Param, ...]
    columns: tuple[Column, ...]
    sums: tuple[str, ...]
    match: tuple[str, ...]
    charts: tuple[ChartLine, ...]
    says: Sentences
    evidence: str | None
    at_least: tuple[AtLeast, ...]
    portable: bool
    tags: tuple[str, ...]
    was: tuple[str, ...]
    sql: str
    sql_path: Path
    page_path: Path
    question: tuple[str, str] | None = None
    reads: tuple[str, ...] = ()

    @property
    def typed_sql(self) -> str:
        """The SQL with each parameter cast to its type, so that plain values may be bound.

        For SQL that comes with sysdock, in which no string looks like a parameter.
        """
        types = {param.name: param.type for param in self.params}
        if not types:
            return self.sql
        return re.sub(
            rf"\$({'|'.join(types)})\b", lambda found: f"CAST(${found[1]} AS {types[found[1]]})", self.sql
        )


def convert(text: str, type_: str) -> Any:
    """The value that `text` states for a parameter of SQL type `type_`; ValueError where it does not fit."""
    if type_ in ("BIGINT", "INTEGER"):
        bits = 63 if type_ == "BIGINT" else 31
        value = int(text)
        if not -(1 << bits) <= value < (1 << bits):
            raise ValueError("out of range")
        return value
    if type_ == "DOUBLE":
        number = float(text)
        if not math.isfinite(number):
            raise ValueError("not a finite number")
        return number
    if type_ == "BOOLEAN":
        if text.lower() not in ("true", "false"):
            raise ValueError("not true or false")
        return text.lower() == "true"
    return text


def parse(sql_path: Path, id_: str, kind: str) -> Analysis:
    """Reads one `.sql` file of `kind` analysis or rule; a UserError names file and line of a mistake."""
    header, body, length = read_header(sql_path, "--", KEYS)
    if not body:
        raise header.error(length, "there is no SELECT after the header")
    if _depth(body) > _DEEPEST:
        raise header.error(length + 1, f"parentheses are nested deeper than {_DEEPEST}")
    return header.finish(id_, kind, body.rstrip("; \n\t"))


def read_header(path: Path, mark: str, keys: Sequence[str]) -> tuple[Header, str, int]:
    """The lines at the begin of a file that start with `mark`, the text after them, and how many they are.

    UserError: the file cannot be read, or a line is none of a header with these keys.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot be read: {error}", place=str(path)) from None
    header = Header(path, keys)
    length = 0
    for line in lines:
        if not line.startswith(mark):
            break
        length += 1
        header.take(length, line[len(mark) :].strip())
    return header, "\n".join(lines[length:]).strip(), length


def _depth(sql: str) -> int:
    """The depth of nested parentheses, also within its texts."""
    steps = accumulate(1 if parenthesis == "(" else -1 for parenthesis in _PARENTHESIS.findall(sql))
    return max(steps, default=0)


def _prose(texts: dict[str, str] | None) -> Prose | None:
    return Prose(texts) if texts else None


class Header:
    """Collects header lines; knows the file for its error messages."""

    def __init__(self, path: Path, keys: Sequence[str] = KEYS) -> None:
        self.path = path
        self.prose: list[str] = []
        self.lines: dict[str, list[tuple[int, str]]] = {key: [] for key in keys}
        self.in_keys = False

    def error(self, line: int, fact: str, hint: str | None = None) -> UserError:
        return UserError(fact, hint, f"{self.path}:{line}")

    def take(self, number: int, line: str) -> None:
        match = _KEY_LINE.match(line)
        if match:
            key, value = match.group(1), (match.group(2) or "").strip()
            if key not in self.lines:
                hint = did_you_mean(key, self.lines, f"the keys are {', '.join(self.lines)}")
                raise self.error(number, f"unknown header key `{key}`", hint)
            if not value:
                raise self.error(number, f"`{key}:` says nothing")
            self.in_keys = True
            self.lines[key].append((number, value))
        elif not self.in_keys:
            self.prose.append(line)
        elif line:
            raise self.error(
                number,
                "a header line without a key",
                "title and description stand before the first key; each line after that begins with its key",
            )

    def title(self, mark: str) -> str:
        """The title in its first line."""
        if not self.prose or not self.prose[0]:
            raise self.error(1, "the first line is not a title", f"begin the file with `{mark} Title`")
        return self.prose[0].rstrip(".")

    @property
    def text(self) -> str:
        """The text below the title, as one line."""
        return " ".join(line for line in self.prose[1:] if line)

    def finish(self, id_: str, kind: str, body: str) -> Analysis:
        title = self.title("--")
        params = tuple(self.param(*line) for line in self.lines["param"])
        columns = tuple(self.column(*line) for line in self.lines["column"])
        if kind == "rule":
            columns = self.rule_columns(columns)
        elif not columns:
            raise self.error(1, "no `column:` line", "describe each column of the result in its order")
        self.unique("param", [p.name for p in params])
        self.unique("column", [c.name for c in columns])
        columns = self.headed(columns)
        return Analysis(
            id=id_,
            kind=kind,
            title=title,
            text=self.text,
            needs=self.words("needs", required=True),
            uses=self.words("uses"),
            otherwise=self.single("else"),
            params=params,
            columns=columns,
            sums=self.sums(columns),
            match=self.match(columns),
            charts=tuple(self.chart(*line) for line in self.lines["chart"]),
            says=self.sentences(columns, params),
            evidence=self.single("evidence"),
            at_least=tuple(self.least(*line, params) for line in self.lines["at_least"]),
            portable=self.portable(),
            tags=self.tags(),
            was=self.words("was"),
            sql=body,
            sql_path=self.path,
            page_path=self.path.with_suffix(".md"),
            **self.of_dump(),
        )

    def of_dump(self) -> dict[str, Any]:
        """What makes it a question about crash dumps."""
        question, reads = self.single("question"), self.words("reads")
        if bool(question) != bool(reads):
            line = next(number for key in ("question", "reads") for number, _ in self.lines[key])
            raise self.error(line, "`question:` and `reads:` belong together", "-- reads: tasks, stacks")
        if question and not _QUESTION.match(question):
            raise self.error(
                self.lines["question"][0][0],
                "it is not a name and a title",
                "-- question: hung Tasks that hang",
            )
        return {"question": tuple(question.split(" ", 1)) if question else None, "reads": reads}

    def single(self, key: str) -> str | None:
        found = self.lines[key]
        if len(found) > 1:
            raise self.error(found[1][0], f"`{key}:` stands twice")
        return found[0][1] if found else None

    def words(self, key: str, required: bool = False) -> tuple[str, ...]:
        found = [word.strip() for _, value in self.lines[key] for word in value.split(",")]
        if required and not found:
            raise self.error(1, f"no `{key}:` line", "name the tables that the SQL reads: `-- needs: calls`")
        return tuple(word for word in found if word)

    def headed(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        """The columns with the headings of `heads_LANGUAGE:`, and the descriptions of `texts_LANGUAGE:`."""
        names = {column.name for column in columns}
        heads: dict[str, dict[str, str]] = {}
        texts: dict[str, dict[str, str]] = {}
        for lang in languages()[1:]:
            for line, value in self.lines[f"heads_{lang}"]:
                for pair in value.split(","):
                    name, head = self.translated(line, pair, "heading", names)
                    heads.setdefault(name, {})[lang] = head
            # A line each, as they may hold commas.
            for line, value in self.lines[f"texts_{lang}"]:
                name, text = self.translated(line, value, "text", names)
                texts.setdefault(name, {})[lang] = text
        return tuple(
            # `replace` would take three times as long; there are a thousand columns in all rules.
            Column(c.name, c.type, c.unit, c.text, _prose(heads.get(c.name)), _prose(texts.get(c.name)))
            for c in columns
        )

    def translated(self, line: int, pair: str, what: str, names: set[str]) -> tuple[str, str]:
        """A column and its heading or text in another language."""
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not equals or not text:
            raise self.error(line, f"`{pair.strip()}` is not name={what}", f"write `calls={what}`")
        if name not in names:
            raise self.error(line, f"`{name}` is not a column", "name columns as `column:` does")
        return name, text

    def sums(self, columns: tuple[Column, ...]) -> tuple[str, ...]:
        """Columns that add up over rows and time, and may be given per unit of work."""
        numbers = {column.name for column in columns if column.type in ("BIGINT", "INTEGER", "DOUBLE")}
        sums = self.words("sums")
        for name in sums:
            if name not in numbers:
                line = self.lines["sums"][0][0]
                raise self.error(
                    line, f"`{name}` is not a column with numbers", "name columns as `column:` does"
                )
        return sums

    def match(self, columns: tuple[Column, ...]) -> tuple[str, ...]:
        """Columns by whose values `sysdock compare` finds a row again in another recording."""
        names = self.words("match")
        for name in names:
            line = self.lines["match"][0][0]
            if name not in {column.name for column in columns}:
                raise self.error(line, f"`{name}` is not a column", "name columns as `column:` does")
            has_rates = any(column.type == "DOUBLE" for column in columns)
            if not has_rates and not self.words("sums"):
                raise self.error(line, "nothing adds up", "say with `sums:` which columns do")
        return names

    def tags(self) -> tuple[str, ...]:
        tags = self.words("tags")
        for tag in tags:
            if tag not in TAGS:
                line = self.lines["tags"][0][0]
                raise self.error(line, f"unknown tag `{tag}`", f"the tags are {', '.join(TAGS)}")
        return tags

    def portable(self) -> bool:
        value = self.single("portable") or "true"
        if value not in ("true", "false"):
            raise self.error(self.lines["portable"][0][0], f"`portable: {value}` is neither true nor false")
        return value == "true"

    def rule_columns(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        """The columns of a rule: the fixed ones, then whatever its sentences and its evidence need."""
        if not columns:
            return RULE_COLUMNS
        expected = [(c.name, c.type) for c in RULE_COLUMNS]
        if [(c.name, c.type) for c in columns[: len(expected)]] != expected:
            shape = ", ".join(f"{name} {type_}" for name, type_ in expected)
            line = self.lines["column"][0][0]
            raise self.error(
                line, "the columns are not those of a rule", f"a rule returns {shape}, then others"
            )
        for (line, _), column in zip(self.lines["column"], columns, strict=True):
            wanted = KNOWN_COLUMNS.get(column.name, column.type)
            if column.type != wanted:
                raise self.error(line, f"column {column.name} is {column.type}", f"in a rule it is {wanted}")
        return columns

    def sentences(self, columns: tuple[Column, ...], params: tuple[Param, ...]) -> Sentences:
        says, wrong = parse_sentences(self.lines["says"])
        if wrong:
            codes = ", ".join(languages())
            hint = (
                f"write `says: finding en  Text.`, with status, language ({codes}) and text, each pair once"
            )
            raise self.error(wrong[0], f"not a sentence: {wrong[1]}", hint)
        known = {column.name for column in columns} | {param.name for param in params}
        for name in sorted(says.names() - known):
            line = next(line for line, text in self.lines["says"] if re.search(rf"\{{{name}[:?}}]", text))
            raise self.error(
                line,
                f"{{{name}}} is neither a column nor a parameter",
                did_you_mean(name, known, f"there are {', '.join(sorted(known))}"),
            )
        return says

    def unique(self, key: str, names: list[str]) -> None:
        for index, name in enumerate(names):
            if name in names[:index]:
                raise self.error(self.lines[key][index][0], f"{key} `{name}` stands twice")

    def known_type(self, line: int, type_: str) -> str:
        if type_ not in TYPES:
            raise self.error(line, f"unknown type {type_}", f"the types are {', '.join(TYPES)}")
        return type_

    def column(self, line: int, value: str) -> Column:
        match = _COLUMN.match(value)
        if not match:
            hint = "write `column: name TYPE   Text [unit].`"
            raise self.error(line, f"not a column: {value}", hint)
        text, unit = _split_unit(match.group(3))
        return Column(match.group(1), self.known_type(line, match.group(2)), unit, text)

    def param(self, line: int, value: str) -> Param:
        match = _PARAM.match(value)
        if not match:
            hint = (
                "write `param: name TYPE = default   Text [unit].`, with `> 0` after the default for a bound"
            )
            raise self.error(line, f"not a parameter: {value}", hint)
        name, type_, literal, bound, prose = match.groups()
        self.known_type(line, type_)
        if literal.startswith("'"):
            literal = literal[1:-1].replace("''", "'")
            default: Any = literal
        elif literal.upper() == "NULL":
            default = None
        else:
            default = literal
        if default is not None:
            try:
                default = convert(literal, type_)
            except ValueError:
                raise self.error(line, f"the default `{literal}` is not a {type_}") from None
        above = None
        if bound is not None:
            if type_ not in ("BIGINT", "INTEGER", "DOUBLE"):
                raise self.error(line, f"a {type_} has no bound", "leave out `> ...`")
            above = float(bound)
            if default is not None and default <= above:
                raise self.error(line, f"the default `{literal}` is not greater than {bound}")
        text, unit = _split_unit(prose)
        return Param(name, type_, default, text, unit, above)

    def least(self, line: int, value: str, params: tuple[Param, ...]) -> AtLeast:
        quantity, _, rest = value.partition(" ")
        names = tuple(name.strip() for name in rest.split(","))
        numbers = [param.name for param in params if param.type in ("BIGINT", "INTEGER", "DOUBLE")]
        for name in names:
            if name not in numbers:
                hint = "write `at_least: calls min_calls`, with a table or a time and parameters"
                raise self.error(line, f"`{name}` is not a numeric parameter", hint)
        return AtLeast(quantity, names)

    def chart(self, line: int, value: str) -> ChartLine:
        try:
            template, *pairs = shlex.split(value)
        except ValueError as error:
            raise self.error(line, f"not a chart line: {error}") from None
        options = {}
        for pair in pairs:
            key, equals, option = pair.partition("=")
            if not equals:
                raise self.error(line, f"`{pair}` is not key=value", "write `chart: bars x=call y=calls`")
            options[key] = option
        return ChartLine(template, options)


def _split_unit(text: str) -> tuple[str, str | None]:
    """Takes `[unit]` off the end of a sentence."""
    match = _UNIT.search(text)
    if not match:
        return text, None
    return text[: match.start()] + match.group(2), match.group(1)
