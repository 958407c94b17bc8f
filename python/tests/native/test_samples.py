"""Samples of what threads are at, against the CPU time that the program itself measured for each of its phases."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from recorders import Recorder, recorder_or_skip
from scenes import build
from sysdock.analysis import Session, diagnosis
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.recording.manifest import NOT_REQUESTED

Query = Callable[[Path, str], list[tuple]]

PERIOD_NS = 1_000_000_000 // 999
# An interrupt, and what the kernel does after it, is the work of others: much of it where the machine is busy.
NOT_INTERRUPTED = """NOT EXISTS (SELECT 1 FROM stacks AS k WHERE k.stack_id = s.kernel_stack_id
    AND (k.function LIKE 'asm_sysvec_%' OR k.function = 'asm_common_interrupt'))"""


@dataclass(frozen=True)
class Phase:
    """What the program said of a phase."""

    from_ns: int
    until_ns: int
    cpu_ns: int
    user_ns: int
    line: int


@pytest.fixture
def kernel(native: Path) -> Recorder:
    return recorder_or_skip(native, "kernel")


@pytest.fixture
def folder(scene: Callable[[str], Path]) -> Path:
    return scene("hot_spots")


@pytest.fixture
def phases(folder: Path) -> dict[str, Phase]:
    lines = [line.split() for line in (folder / "said").read_text().splitlines()]
    return {words[1]: Phase(*map(int, words[2:])) for words in lines}


def _is_near(number: int, expected: float) -> bool:
    """Within five standard deviations of counting, and what begins and ends with a phase."""
    return abs(number - expected) <= 5 * math.sqrt(expected) + 3


@pytest.mark.parametrize("name", ["add", "mix", "touch", "copy"])
def test_samples_add_up_to_the_cpu_time(
    folder: Path, phases: dict[str, Phase], query: Query, name: str
) -> None:
    phase = phases[name]
    sql = f"SELECT count(*) FROM samples WHERE ts_ns BETWEEN {phase.from_ns} AND {phase.until_ns}"
    [(number,)] = query(folder / "rec", sql)
    # What interrupts take is charged to nobody, or to the thread.
    assert _is_near(number, phase.cpu_ns / PERIOD_NS) or number == pytest.approx(
        phase.cpu_ns / PERIOD_NS, rel=0.1
    )


@pytest.mark.parametrize(
    ("name", "function", "in_kernel", "call"),
    [
        ("add", "add", False, None),
        ("mix", "mix_one", False, None),
        ("touch", "touch", True, None),
        ("copy", "copy", True, "read"),
    ],
)
def test_nearly_all_are_at_the_line_that_takes_the_time(
    folder: Path,
    phases: dict[str, Phase],
    query: Query,
    name: str,
    function: str,
    in_kernel: bool,
    call: str | None,
) -> None:
    phase = phases[name]
    sql = f"""SELECT count(*), count(*) FILTER (WHERE f.function = '{function}'),
            count(*) FILTER (WHERE f.function = '{function}' AND s.in_kernel = {in_kernel}
                AND s.call IS NOT DISTINCT FROM {f"'{call}'" if call else "NULL"})
        FROM samples AS s
        LEFT JOIN (SELECT stack_id, min_by(function, frame) AS function FROM stacks
            WHERE object LIKE '%/hot_spots' GROUP BY stack_id) AS f USING (stack_id)
        WHERE s.ts_ns BETWEEN {phase.from_ns} AND {phase.until_ns} AND {NOT_INTERRUPTED}"""
    [(number, there, alike)] = query(folder / "rec", sql)
    # The rest looks at the clock. Where a function is a part of another, the loop around it belongs to
    # the other, and the processor decides which of the two instructions a timer sees more often.
    assert there >= (0.5 if name == "mix" else 0.75) * number
    # The memory is given back by a call.
    assert alike >= (0.6 if name == "touch" else 0.9) * there
    lines = f"""SELECT DISTINCT regexp_extract(source, ':([0-9]+)$', 1)::INTEGER FROM stacks
        WHERE function = '{function}' AND source IS NOT NULL"""
    assert any(abs(line - phase.line) <= 1 for (line,) in query(folder / "rec", lines))


def test_the_kernel_names_its_functions(folder: Path, phases: dict[str, Phase], query: Query) -> None:
    phase = phases["touch"]
    sql = f"""SELECT count(*), count(*) FILTER (WHERE functions LIKE '%handle_mm_fault%' AND functions LIKE '%asm_exc_page_fault%')
        FROM samples AS s JOIN (SELECT stack_id, string_agg(function, ' ') AS functions FROM stacks
            WHERE object = '[kernel]' GROUP BY stack_id) AS f ON f.stack_id = s.kernel_stack_id
        WHERE s.call IS NULL AND s.ts_ns BETWEEN {phase.from_ns} AND {phase.until_ns}"""
    [(number, faults)] = query(folder / "rec", sql)
    # The way in and out of a fault has no such function.
    assert faults >= 0.5 * number > 20
    assert query(
        folder / "rec", "SELECT count(*) FROM stacks WHERE object = '[kernel]' AND address IS NOT NULL"
    ) == [(0,)]


def test_nothing_is_lost_and_all_is_named(folder: Path, manifest: Callable, query: Query) -> None:
    stated = manifest(folder / "rec")
    assert (stated["lost_events"], stated["complete"]) == (0, True)
    [(number, bare)] = query(
        folder / "rec",
        "SELECT count(*), count(*) FILTER (WHERE stack_id IS NULL) FROM samples WHERE NOT in_kernel",
    )
    assert bare <= 0.01 * number
    unnamed = "SELECT count(*) FROM samples s JOIN stacks t USING (stack_id) WHERE t.frame = 0 AND function LIKE '[%'"
    # Between the start of the program and the event that reports it, which takes longer in an emulated guest.
    assert query(folder / "rec", unnamed)[0][0] <= 0.03 * number


WORK = """
import time
def often():
    return sum(i * i for i in range(1000))
def seldom():
    return sum(i * i for i in range(1000))
end = time.thread_time() + 0.6
while time.thread_time() < end:
    often(); often(); often(); seldom()
"""


def test_functions_of_python_are_those_that_run(kernel: Recorder, tmp_path: Path, query: Query) -> None:
    (tmp_path / "work.py").write_text(WORK)
    done = kernel.record(
        tmp_path / "rec", sys.executable, tmp_path / "work.py", recorder_options=("--freq", "999")
    )
    assert done.returncode == 0, done.stderr
    sql = """SELECT f.function, count(DISTINCT s.ts_ns) FROM samples AS s JOIN stacks AS f USING (stack_id)
        WHERE f.function IN ('often', 'seldom') GROUP BY ALL"""
    found = dict(query(tmp_path / "rec", sql))
    all_of_them = found["often"] + found["seldom"]
    assert all_of_them > 200
    assert _is_near(found["often"], 0.75 * all_of_them) or found["often"] == pytest.approx(
        0.75 * all_of_them, rel=0.1
    )


def test_a_number_of_samples_that_cannot_be(native: Path, tmp_path: Path) -> None:
    for words, said in [
        (["--freq", "0"], "not a number from 1 to 9999"),
        (["--freq", "often"], "not a number from 1 to 9999"),
        (["--freq", "99", "--with", "strace"], "strace records system calls of commands only"),
    ]:
        done = subprocess.run(
            [native, "record", *words, "-o", tmp_path / "rec", "--", "true"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert said in done.stderr
        assert not (tmp_path / "rec").exists()


def test_families_that_are_not_named_are_not_recorded(
    kernel: Recorder, tmp_path: Path, manifest: Callable
) -> None:
    done = kernel.record(tmp_path / "rec", "true", recorder_options=("--what", "io,sched"))
    assert done.returncode == 0
    states = {state["family"]: state["missing"] for state in manifest(tmp_path / "rec")["families"]}
    assert (states["sched"], states["cpu"]) == (None, NOT_REQUESTED)
    assert "samples" not in manifest(tmp_path / "rec")["tables"]


def test_functions_that_a_program_made_have_the_names_that_it_gives(
    kernel: Recorder, tmp_path: Path, query: Query
) -> None:
    """As Node.js and Java write them for profilers; behind them stands who called them."""
    build("jitted", tmp_path)
    done = kernel.record(tmp_path / "rec", tmp_path / "programs" / "jitted")
    assert (done.returncode, done.stderr) == (0, "")
    map_of_perf = Path(done.stdout.strip())
    map_of_perf.unlink()
    rows = query(
        tmp_path / "rec",
        "SELECT s.stack_id, list(s.function ORDER BY s.frame) FROM stacks AS s JOIN samples AS m USING (stack_id) "
        "GROUP BY m.ts_ns, s.stack_id",
    )
    made = [functions for _, functions in rows if functions[0] == "made_while_it_ran"]
    assert len(made) > 0.5 * len(rows)
    # In its first and last instructions a function has no frame of its own.
    called = [functions for functions in made if functions[1:3] == ["call_made", "main"]]
    assert len(called) > 0.9 * len(made)
    objects = query(
        tmp_path / "rec", "SELECT DISTINCT object FROM stacks WHERE function = 'made_while_it_ran'"
    )
    assert objects == [(str(map_of_perf),)]


def test_rules_divide_the_time_as_the_kernel_counted_it(folder: Path, query: Query) -> None:
    """One thread that is on a CPU nearly all the time: it works alone, in its own code or in the kernel."""
    [(cpu_ns,)] = query(folder / "rec", "SELECT max(user_ns + system_ns) FROM processes")
    library = Library(Path(__file__).parents[3] / "knowhow")
    with Session(Recording.open(folder / "rec"), library) as session:
        rules = ("time/serial", "time/user_code", "time/kernel_work")
        found = [finding for rule in rules for finding in diagnosis.judge(session, library.rule(rule))]
    alone_ns, user_ns, kernel_ns = (finding.cost_ns or 0 for finding in found)
    # A guest's kernel does not count what its host took meanwhile.
    of_host = "SELECT max(value) - min(value) FROM system_metrics WHERE metric = 'steal' AND object IS NULL"
    [(stolen_ns,)] = query(folder / "rec", of_host)
    # It counts what it does for sysdock after the last sample, and before the first one.
    assert -0.05 * cpu_ns <= alone_ns - cpu_ns <= 0.05 * cpu_ns + stolen_ns
    sampled = round((user_ns + kernel_ns) / PERIOD_NS)
    assert any(_is_near(sampled, ns / PERIOD_NS) for ns in (cpu_ns, min(alone_ns, cpu_ns + stolen_ns)))
