"""Profiles of callgrind as recordings, held against what callgrind_annotate says of the same file."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fork_server
import pytest
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Recording

HERE = Path(__file__).parent
SMALL = """# callgrind format
version: 1
pid: 4711
cmd: /usr/bin/bc -l sums
positions: line
events: Ir Dr Dw
summary: 350 30 20

ob=(1) /usr/bin/bc
fl=(1) bc.c
fn=(1) main
10 100 10 5
cob=(2) /usr/lib/libc.so.6
cfi=(2) memcpy.c
cfn=(2) memcpy
calls=5 0
12 50 5 10
cfn=(3) parse
calls=1 30
13 200 15 5

fn=(3)
30 120 9 4
cfn=(3)
calls=3 30
31 90 4 2
+1 80 6 1

ob=(2)
fl=(2)
fn=(2)
7 50 5 10
totals: 350 30 20
"""
BY_IMAGE = """
    SELECT path, mode, sum(steps)::BIGINT FROM function_totals JOIN traced_functions USING (function_id)
    JOIN images USING (image_id) GROUP BY ALL ORDER BY ALL
"""
OWN = """
    SELECT name, sum(steps)::BIGINT FROM function_totals JOIN traced_functions USING (function_id)
    GROUP BY name HAVING sum(steps) > 0
"""
INCLUSIVE = """
    SELECT name, sum(steps_inclusive)::BIGINT FROM function_totals JOIN traced_functions USING (function_id)
    GROUP BY name HAVING count(steps_inclusive) = count(*) AND count(*) = 1
"""
Import = Callable[..., subprocess.CompletedProcess[str]]


def fetch(folder: Path, sql: str) -> list[Any]:
    with Session(Recording.open(folder), Library()) as session:
        return session.fetch(sql)


@pytest.fixture
def imported(native: Path, tmp_path: Path) -> Import:
    """Imports files into the folder `rec`."""

    def run(*files: Path | str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        words = [str(native), "import", *options, "-o", str(tmp_path / "rec"), *map(str, files)]
        return subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)

    return run


@pytest.fixture
def profile(tmp_path: Path) -> Callable[..., Path]:
    """A profile that callgrind makes of a program of this folder."""
    if not shutil.which("callgrind_annotate"):
        pytest.skip("valgrind is not installed (apt-get install valgrind)")

    def make(name: str, *options: str) -> Path:
        program, out = tmp_path / name.partition(".")[0], tmp_path / "callgrind.out"
        subprocess.run(["cc", "-g", "-O1", "-pthread", "-o", program, HERE / name], check=True)
        words = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *options, str(program)]
        subprocess.run(words, capture_output=True, check=False)
        return out

    return make


def stated(out: Path) -> int:
    """The instructions of all parts, as callgrind has summed them up."""
    return sum(int(number) for number in re.findall(r"^totals: (\d+)", out.read_text(), re.M))


def annotated(out: Path, *options: str) -> tuple[int, dict[str, list[int]]]:
    """The total that callgrind_annotate prints, and the numbers of each function."""
    words = [
        "callgrind_annotate",
        "--threshold=100",
        "--show-percs=no",
        "--show=Ir",
        "--auto=no",
        *options,
        str(out),
    ]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found = re.search(r"^ *([\d,]+) +PROGRAM TOTALS", said, re.M)
    assert found
    numbers: dict[str, list[int]] = defaultdict(list)
    # Code of another source file that was put into a function has a line of its own, without the program.
    for count, name in re.findall(r"^ *([\d,]+) +[^:\n]*:(.+?)(?: \[.*\])?$", said, re.M):
        numbers[name].append(int(count.replace(",", "")))
    return int(found[1].replace(",", "")), numbers


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--dump-instr=yes", "--collect-jumps=yes"),
        ("--dump-line=no", "--compress-strings=no", "--compress-pos=no"),
        ("--cache-sim=yes", "--branch-sim=yes"),
        ("--separate-recs=3",),
        ("--combine-dumps=yes", "--dump-every-bb=10000"),
    ],
    ids=["lines", "instructions", "plain", "caches", "recursion", "parts"],
)
def test_numbers_are_those_of_callgrind_annotate(
    profile: Callable[..., Path], imported: Import, tmp_path: Path, options: tuple[str, ...]
) -> None:
    out = profile("profiled.c", *options)
    done = imported(out)
    assert done.returncode == 0, done.stderr
    rec = tmp_path / "rec"
    total = stated(out)
    printed, own = annotated(out)
    # It reads one part (a second one it adds up wrongly); with caches, callgrind's own sums differ by a few.
    if not {"--combine-dumps=yes", "--cache-sim=yes"} & set(options):
        assert printed == total
    assert fetch(rec, "SELECT steps, steps_collapsed FROM traced_requests") == [(total, None)]
    assert fetch(rec, "SELECT sum(steps) FROM traced_tasks") == [(total,)]
    if "--combine-dumps=yes" not in options:
        assert dict(fetch(rec, OWN)) == {name: sum(steps) for name, steps in own.items() if any(steps)}
    manifest = json.loads((rec / "recording.json").read_text())
    assert manifest["captures"][0]["understood"] == total


def test_inclusive_steps_are_those_of_callgrind_annotate(
    profile: Callable[..., Path], imported: Import, tmp_path: Path
) -> None:
    out = profile("profiled.c", "--dump-line=no")
    assert imported(out).returncode == 0
    _, inclusive = annotated(out, "--inclusive=yes")
    here = dict(fetch(tmp_path / "rec", INCLUSIVE))
    assert {"main", "compare"} <= here.keys()
    # The largest number is that with all that was called.
    differ = {name for name, steps in here.items() if steps != max(inclusive[name])}
    # What calls itself has its inner calls twice in callgrind_annotate; callgrind marks it.
    assert {name for name in differ if not name.endswith("'2")} == set()
    assert all(here[name] < max(inclusive[name]) for name in differ)
    assert len(here) > 100


def test_sums_of_a_small_profile(imported: Import, tmp_path: Path) -> None:
    out = tmp_path / "small.gz"
    out.write_bytes(gzip.compress(SMALL.encode()))
    done = imported(out)
    assert done.returncode == 0, done.stderr
    rec = tmp_path / "rec"
    sql = "SELECT name, times, steps, steps_inclusive, loads, stores FROM function_totals"
    assert fetch(rec, f"{sql} JOIN traced_functions USING (function_id) ORDER BY name") == [
        ("main", None, 100, 350, 10, 5),
        ("memcpy", 5, 50, 50, 5, 10),
        ("parse", 4, 200, 200, 15, 5),
    ]
    assert fetch(rec, "SELECT pid, tgid, comm, steps FROM traced_tasks") == [(4711, 4711, "bc", 350)]
    assert fetch(rec, BY_IMAGE) == [("/usr/bin/bc", "user", 300), ("/usr/lib/libc.so.6", "library", 50)]
    assert fetch(rec, "SELECT count(*), count(start) FROM traced_functions") == [(3, 0)]
    backend = "SELECT value FROM environment WHERE section = 'trace' AND name = 'backend'"
    assert fetch(rec, backend) == [("callgrind",)]


def test_threads_are_tasks(profile: Callable[..., Path], imported: Import, tmp_path: Path) -> None:
    out = profile("threads.c", "--separate-threads=yes")
    # A thread that begins when another one has ended has its number.
    parts = sorted(tmp_path.glob("callgrind.out-*"))
    assert imported(*parts).returncode == 0
    rows = fetch(tmp_path / "rec", "SELECT pid IS NULL, tgid, steps FROM traced_tasks ORDER BY task_id")
    assert [unknown for unknown, *_ in rows] == [False, *[True] * (len(parts) - 1)]
    assert [steps for *_, steps in rows] == [annotated(part)[0] for part in parts]
    work = "SELECT task_id, times, steps FROM function_totals JOIN traced_functions USING (function_id)"
    found = fetch(tmp_path / "rec", f"{work} WHERE name = 'work' ORDER BY task_id")
    # The main thread calls it 5 times, two others 10 and 20 times.
    assert found[0][1] == 5
    assert sum(times for _, times, _ in found) == 35
    assert len(found) == len(parts) > 1
    assert len({steps // times for _, times, steps in found}) == 1
    # The file without threads is empty.
    shutil.rmtree(tmp_path / "rec")
    done = imported(out, *parts)
    assert done.returncode == 2
    assert "callgrind.out: is empty" in done.stderr


def test_questions_are_answered(imported: Import, tmp_path: Path) -> None:
    out = tmp_path / "callgrind.out"
    out.write_text(SMALL)
    done = fork_server.run("import", out, "-o", tmp_path / "rec")
    assert done.returncode == 0, done.stderr
    assert re.search(r"Steps by file .*\n +\S*bc +300 +25 +10 +1\n", done.stdout)
    with Session(Recording.open(tmp_path / "rec"), Library()) as session:
        functions = session.run("itrace/functions").rows()
        steps = session.run("itrace/steps").rows()
    assert [row[1:] for row in functions] == [
        ("parse", 4, None, 50.0, None, 200, 200, 57.14),
        ("main", None, None, None, None, 100, 350, 28.57),
        ("memcpy", 5, None, 10.0, None, 50, 50, 14.29),
    ]
    assert [row[3:] for row in steps] == [
        ("user", "/usr/bin/bc", 300, None, 85.71, 25, 10),
        ("library", "/usr/lib/libc.so.6", 50, None, 14.29, 5, 10),
    ]


def test_an_exported_trace_comes_back(imported: Import, tmp_path: Path) -> None:
    out = tmp_path / "exported"
    out.write_text(
        "# callgrind format\nversion: 1\ncreator: sysdock\npositions: line\nevents: Instructions\nsummary: 30\n\n"
        "ob=/usr/bin/a\nfl=???\nfn=(0) main\n0 10\ncob=/usr/bin/a\ncfn=(1) work\ncalls=2 0\n0 20\n\n"
        "ob=/usr/bin/a\nfl=???\nfn=(1) work\n0 20\n"
    )
    assert imported(out).returncode == 0
    assert fetch(tmp_path / "rec", BY_IMAGE) == [("/usr/bin/a", "user", 30)]


def test_what_is_damaged_is_said(imported: Import, tmp_path: Path) -> None:
    lines = SMALL.splitlines(keepends=True)
    at = lines.index("calls=5 0\n")
    damaged = {
        "".join([*lines[: at + 1], "12 5x\n", *lines[at + 2 :]]): f":{at + 2}: a number is expected",
        "".join([*lines[: at + 1], *lines[at + 2 :]]): f":{at + 2}: the costs of calls are missing",
        SMALL.replace("fn=(3)\n30", "fn=(9)\n30"): "(9) has no name before this line",
        SMALL.replace(
            "events: Ir Dr Dw", "events: Cycles"
        ): "has no numbers of instructions (Ir), but of Cycles",
        "# callgrind format\n": "a profile of callgrind without costs",
        SMALL.replace("version: 1", "version: 9"): "version 9 of the format is not known",
    }
    for text, words in damaged.items():
        (tmp_path / "damaged").write_text(text)
        done = imported(tmp_path / "damaged")
        assert done.returncode == 2
        assert words in done.stderr
        assert "hint: " in done.stderr
        assert not (tmp_path / "rec").exists()


def test_a_profile_that_was_cut_off_is_kept_and_said(imported: Import, tmp_path: Path) -> None:
    (tmp_path / "cut").write_text(SMALL[: SMALL.index("ob=(2)\n")])
    done = imported(tmp_path / "cut")
    assert done.returncode == 2
    assert "its functions have 300 instructions, and its total is 350" in done.stderr
    manifest = json.loads((tmp_path / "rec" / "recording.json").read_text())
    assert manifest["captures"][0]["ended_by"] == "input error"


def test_options_of_logs_and_other_files_are_refused(imported: Import, tmp_path: Path) -> None:
    (tmp_path / "one").write_text(SMALL)
    (tmp_path / "other").write_text("a text\n")
    done = imported(tmp_path / "one", options=("--align",))
    assert (done.returncode, "--align" in done.stderr) == (2, True)
    done = imported(tmp_path / "one", tmp_path / "other")
    assert (done.returncode, "other: no profile of callgrind" in done.stderr) == (2, True)
