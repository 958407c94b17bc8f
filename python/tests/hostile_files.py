"""Small files that no tool would write, for every reader of Python: changes of good ones that follow from a number.

`attack(number)` gives one file to one reader and returns what went wrong, None where all is well: the reader takes
the file, or refuses it by a `UserError`; no other error, not more than `MOST_SECONDS` of CPU, and what it returns
fits the tables that it goes into. Verbs are attacked by recording/hostile_recordings.py and hostile_inputs.py.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sysdock.checkup.accounting import find_process
from sysdock.checkup.hashed_names import read_key
from sysdock.checkup.job_table import find_job
from sysdock.checkup.load import load_tables
from sysdock.checkup.ratio import JobTimes
from sysdock.checkup.site import read_site
from sysdock.checkup.threshold import decide, survey
from sysdock.checkup.time_output import read_time_output
from sysdock.checkup.user_input import Given
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.library.catalog import ChartTemplate
from sysdock.library.experiments import parse_experiment
from sysdock.library.header import parse
from sysdock.library.page import parse_page
from sysdock.library.tables import parse_table
from sysdock.recording import Recording

ROOT = Path(__file__).resolve().parents[2]
MOST_SECONDS = 5.0
_LONGEST = 1 << 20


class Hangs(BaseException):
    """A reader took longer than it may; no reader catches it."""


@dataclass(frozen=True)
class Reader:
    """Who reads: `read` gets the path of a file called `name`; `seeds` are good ones, text unless `is_binary`."""

    word: str
    name: str
    seeds: tuple[bytes, ...]
    read: Callable[[Path], object]
    is_binary: bool = False


# What each reader does with a file, beyond reading it.


def _manifest(path: Path) -> None:
    recording = Recording.open(path.parent)
    for table in recording.tables:
        recording.rows(table), recording.lost(table), recording.bytes_on_disk(table), recording.parts(table)
    _ = (recording.families, recording.sources, recording.ended_by, recording.clock, recording.lost_events)
    _ = (recording.has_clock, recording.has_durations, recording.started_ns, recording.damage())
    recording.verify(recording.tables)


def _sql(kind: str) -> Callable[[Path], None]:
    def read(path: Path) -> None:
        analysis = parse(path, "x/x", kind)
        for status, variant, lang in analysis.says.texts:
            analysis.says.template(status, variant, lang)
        _ = analysis.typed_sql

    return read


def _page(path: Path) -> None:
    page = parse_page(path)
    for heading in page.sections:
        page.first_paragraph(heading)
    for example in page.examples:
        # As its cells go into tables.
        for row in (row for rows in example.rows.values() for row in rows):
            assert all(isinstance(name, str) for name in row), "a cell without a column"


def _experiment(path: Path) -> None:
    experiment = parse_experiment(path, "x/x")
    if len(experiment.parameters) < 4:
        _ = [case for case, _ in zip(experiment.cases(), range(100), strict=False)]


def _chart(path: Path) -> None:
    _ = ChartTemplate("x", path).title


def _load(name: str, pair: bool = False) -> Callable[[Path], None]:
    def read(path: Path) -> None:
        given: Any = (path, path) if pair else (path,) if name == "sar" else path
        for table, rows in load_tables(Given(**{name: given})).items():
            for row in rows:
                _fits(table, row)

    return read


def _fits(table: str, row: dict[str, Any]) -> None:
    """Refuses a row with a value that its column cannot hold."""
    for column in _library().table(table).columns:
        value = row[column.name]
        kinds: dict[str, tuple[type, ...]] = {"VARCHAR": (str,), "BOOLEAN": (bool,), "DOUBLE": (int, float)}
        assert value is None or isinstance(value, kinds.get(column.sql_type, (int,))), (column.name, value)
        bits = 31 if column.sql_type == "INTEGER" else 63
        assert not isinstance(value, int) or abs(value) < 1 << bits, f"{column.name} has too many bits"
        if isinstance(value, str):
            value.encode()


@cache
def _library() -> Library:
    return Library()


def _job(find: Callable[[Path], JobTimes]) -> Callable[[Path], None]:
    def read(path: Path) -> None:
        _fits("job_times", find(path).row())

    return read


def _survey(path: Path) -> None:
    decide(survey([path]))


# Good files.


def _files(pattern: str, most: int) -> tuple[bytes, ...]:
    """Some files of the checkout, the same each time."""
    found = sorted(path for path in ROOT.glob(pattern) if path.stat().st_size < 20_000)
    return tuple(path.read_bytes() for path in found[:: max(1, len(found) // most)][:most])


def _given(*names: str) -> tuple[bytes, ...]:
    return tuple((ROOT / "testdata/checkup" / name).read_bytes() for name in names)


def _good_manifest() -> bytes:
    part = {"file": "calls/part-0000.parquet", "rows": 2, "bytes": 7, "sha256": "0" * 64}
    clock = {"kind": "epoch", "resolution_ns": 1000, "has_durations": True, "durations": "elapsed"}
    clock |= {"includes_tracer": True, "stamps": "entry", "note": None}
    source = {"path": "a.log", "offset_ns": 0, "bytes": 9, "lines": 2, "temporary": False}
    capture = {"recorder": "strace", "unit": "lines", "total": 2, "understood": 2, "lost": 0, "clock": clock}
    capture |= {"options": ["-f"], "families": [{"family": "calls", "missing": None}], "sources": [source]}
    capture |= {"counts": {"x": 1}, "issues": {"y": 1}, "complete": True, "ended_by": "end of input"}
    tables = {"calls": {"rows": 2, "lost": 0, "parts": [part]}, "paths": {"rows": 0, "lost": 0, "parts": []}}
    manifest = {"format_version": 4, "tool": {"name": "sysdock", "version": "0.1.0"}, "command": "ls"}
    manifest |= {"directory": "/", "host": "box", "started_ns": 1, "duration_ns": 2, "exit_code": 0}
    return json.dumps(manifest | {"complete": True, "captures": [capture], "tables": tables}).encode()


_JOBS = (
    b"job,user,system,real,cores,assistant_cores,ended\nior,51.023,0,18:20,3,2,2025-03-01T00:00:00\n"
    b'hpl,"29,663,089 ms",0,16:40,34,2,\n',
    b"JobID|User|UserCPU|SystemCPU|Elapsed|AllocCPUS|End\n7|a|00:51.023|00:01.000|1-00:18:20|3|2025-03-01T00:00:00\n",
    b"Job ID\tUser CPU (ms)\tReal time [s]\n1\t320\t1204.94\n",
)
_SITE = (
    b'[ratio]\nthreshold = 0.1\nmethod = "computed"\nrecords = 1200\n\n[rates."/work"]\n'
    b"read_bytes_s = 1.2e9\nwrite_bytes_s = 0.9e9\n"
)


@cache
def readers() -> tuple[Reader, ...]:
    """All of them."""
    acct = _given("pacct")
    return (
        Reader("manifest", "recording.json", (_good_manifest(),), _manifest),
        Reader("analysis", "x.sql", _files("knowhow/analyses/*/*.sql", 12), _sql("analysis")),
        Reader("rule", "x.sql", _files("knowhow/rules/*/*.sql", 12), _sql("rule")),
        Reader("page", "x.md", _files("knowhow/*/*/*.md", 12), _page),
        Reader("table", "x.toml", _files("knowhow/tables/*.toml", 12), parse_table),
        Reader("experiment", "x.toml", _files("knowhow/experiments/*/*.toml", 6), _experiment),
        Reader("chart", "x.json", _files("knowhow/charts/*.json", 8), _chart),
        Reader("nfsstat", "x", _given("nfsstat.after", "rpc-nfs.after"), _load("nfsstat", pair=True)),
        Reader("llite", "x", _given("llite.after"), _load("llite", pair=True)),
        Reader("proc-io", "x", _given("proc-io.txt"), _load("proc_io")),
        Reader("sysstat", "x", _given("sadf.json", "sar-b.txt", "sar-d.txt"), _load("sar")),
        Reader("time", "x", _files("testdata/checkup/*time*", 4), _job(read_time_output)),
        Reader("acct", "x", acct, _job(lambda path: find_process(path, "sh")), is_binary=True),
        Reader("acct, first", "x", tuple(each[:64] for each in acct), _job(_only_process), is_binary=True),
        Reader("jobs", "x", _JOBS, _job(lambda path: find_job(path, None))),
        Reader("survey", "x", (*_JOBS, *acct), _survey, is_binary=True),
        Reader("site", "x", (_SITE,), read_site),
        Reader("key", "x", (b"0123456789abcdef" * 4 + b"\n",), read_key),
    )


def _only_process(path: Path) -> JobTimes:
    return find_process(path, None)


# Changes.

_DIGITS = (
    "9" * 5000,
    "9" * 400,
    str(1 << 63),
    str(1 << 64),
    "-1",
    "0",
    "1e999",
    "1e308",
    "nan",
    "inf",
    "-inf",
)
_VALUES = (
    *_DIGITS,
    "null",
    "true",
    "[]",
    "{}",
    '""',
    "[[]]",
    '{"": 1}',
    "'x'",
    '"\\ud800"',
    "\u0663",
    "\u00b2",
)
_PIECES = (
    *_VALUES,
    *(
        "[" * 3000,
        "{" * 3000,
        '{"a":' * 3000,
        "(" * 3000,
        "x" * 200_000,
        " " * 50_000,
        ":" * 5000,
        "-" * 30_000,
    ),
    *(
        "\0",
        "\x1c",
        "\x85",
        "\u2028",
        "\ud7ff",
        "\ufeff",
        "\r",
        "\r\n",
        "\n",
        "\t",
        '"',
        "'",
        "`",
        "```\n",
        "|",
        "\\",
    ),
    *(
        "= > -.",
        "> ...",
        "%",
        "9" * 30_000 + "%",
        ",",
        ";",
        "#",
        "--",
        "```params\n",
        "a = ",
        "```rows calls\n",
    ),
)


def _of_bytes(chance: random.Random, data: bytes) -> bytes:
    out = bytearray(data or b"x")
    for _ in range(chance.choice((1, 2, 8, 40))):
        out[chance.randrange(len(out))] = chance.randrange(256)
    return bytes(out)


def _of_length(chance: random.Random, data: bytes) -> bytes:
    at, other = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
    return chance.choice(
        (data[:at], data[at:], data[:at] + data[other:], data[:other] + data[at:], data * 50)
    )


def _of_a_piece(chance: random.Random, data: bytes) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(_PIECES).encode("utf-8", "surrogatepass") + data[at:]


def _of_a_word(chance: random.Random, data: bytes) -> bytes:
    """A number or a word in it becomes something else."""
    words = list(re.finditer(rb'"[^"\n]*"|[\w.+-]+', data))
    if not words:
        return data
    word = chance.choice(words)
    return data[: word.start()] + chance.choice(_PIECES).encode("utf-8", "surrogatepass") + data[word.end() :]


def _of_lines(chance: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    for _ in range(chance.choice((1, 3))):
        if lines:
            at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
            lines[at:at] = chance.choice(([], [lines[other]], [lines[other]] * 300))
            del lines[chance.randrange(len(lines))]
    return b"".join(lines)


def _of_json(chance: random.Random, data: bytes) -> bytes:
    """A member is replaced or left out, where it is JSON."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return _of_a_word(chance, data)
    places = _places(content)
    if not places:
        return data
    holder, key = chance.choice(places)
    if chance.random() < 0.2:
        del holder[key]
        return json.dumps(content).encode()
    holder[key] = "\x02"
    return json.dumps(content).replace('"\\u0002"', chance.choice(_VALUES)).encode("utf-8", "surrogatepass")


def _places(value: Any) -> list[tuple[Any, Any]]:
    """All members of objects and lists: their holder and their key."""
    pairs = list(
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [place for key, inner in pairs for place in ((value, key), *_places(inner))]


_CHANGES = (_of_bytes, _of_length, _of_a_piece, _of_a_word, _of_a_word, _of_lines, _of_json, _of_json)


def change(chance: random.Random, data: bytes, is_binary: bool = False) -> bytes:
    """A good file with one to four changes, of 1 MiB at most."""
    for _ in range(chance.choice((1, 1, 2, 4))):
        changes = _CHANGES[:2] if is_binary and chance.random() < 0.7 else _CHANGES
        data = chance.choice(changes)(chance, data)[:_LONGEST]
    return data


def content(number: int) -> tuple[Reader, bytes]:
    """Reader and file `number`; the same for the same number."""
    chance = random.Random(number)
    reader = readers()[number % len(readers())]
    data = change(chance, chance.choice(reader.seeds), reader.is_binary)
    if chance.random() < 0.03:
        data = gzip.compress(data, 1, mtime=0)
        data = _of_bytes(chance, data) if chance.random() < 0.5 else data
    return reader, data


def attack(number: int, folder: Path) -> str | None:
    """Gives file `number` to its reader, in an existing folder; returns what went wrong."""
    reader, data = content(number)
    return read(reader, data, folder)


def read(reader: Reader, data: bytes, folder: Path) -> str | None:
    """Gives a file to a reader; returns what went wrong."""
    path = folder / reader.name
    path.write_bytes(data)
    try:
        with _limited():
            reader.read(path)
    except UserError as error:
        return None if error.fact and str(error) else "an error without a word"
    except Hangs:
        return f"{reader.word}: more than {MOST_SECONDS} s of CPU"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__}: {error}"[:120]
        return f"{reader.word}: {said} ({Path(last.filename).name}:{last.lineno})"
    return None


@contextmanager
def _limited() -> Iterator[None]:
    """Ends what takes too much time of the processor, where it runs Python at all."""

    def end(*_: object) -> None:
        raise Hangs

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
