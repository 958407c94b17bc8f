"""Load of the machine, against readings of /proc by the command itself and what a loop device was given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from recorders import Recorder, recorder_or_skip

Query = Callable[[Path, str], list[tuple]]

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
# Reads the same files before and behind 2.2 s in which it computes, and a file.
READER = """
import json, time
def read():
    stat = dict((words[0], words[1:]) for words in map(str.split, open("/proc/stat")))
    paging = dict(map(str.split, open("/proc/vmstat")))
    return {
        "user": int(stat["cpu"][0]), "system": int(stat["cpu"][2]), "softirq": int(stat["cpu"][6]),
        "ctxt": int(stat["ctxt"][0]), "processes": int(stat["processes"][0]),
        "pgfault": int(paging["pgfault"]), "pgmajfault": int(paging["pgmajfault"]),
    }
begin = read()
until = time.monotonic() + 2.2
while time.monotonic() < until:
    sum(range(1000))
print(json.dumps([begin, read()]))
"""


@dataclass(frozen=True)
class Run:
    """A recording of the reader, and what it read."""

    rec: Path
    begin: dict[str, int]
    end: dict[str, int]


@pytest.fixture(scope="module")
def kernel(native: Path) -> Recorder:
    return recorder_or_skip(native, "kernel")


@pytest.fixture(scope="module")
def run(kernel: Recorder, tmp_path_factory: pytest.TempPathFactory) -> Run:
    rec = tmp_path_factory.mktemp("system") / "rec"
    done = kernel.record(rec, sys.executable, "-c", READER, recorder_options=("--what", "io,system"))
    assert (done.returncode, done.stderr) == (0, "")
    return Run(rec, *json.loads(done.stdout))


def values(run: Run, query: Query, metric: str, where: str = "object IS NULL") -> list[float]:
    sql = f"SELECT value FROM system_metrics WHERE metric = '{metric}' AND {where} ORDER BY ts_ns"
    return [value for (value,) in query(run.rec, sql)]


def test_it_is_read_at_the_start_each_second_and_at_the_end(run: Run, query: Query) -> None:
    sql = "SELECT ts_ns FROM system_metrics WHERE metric = 'ctxt' ORDER BY ts_ns"
    times = [ns for (ns,) in query(run.rec, sql)]
    assert len(times) >= 4
    assert all(0.9e9 < after - before < 2e9 for before, after in pairwise(times[:-1]))


@pytest.mark.parametrize(
    "metric", ["user", "system", "softirq", "ctxt", "processes", "pgfault", "pgmajfault"]
)
def test_counters_are_those_that_the_command_reads(run: Run, query: Query, metric: str) -> None:
    """The first reading is before the command's own, the last behind it."""
    found = values(run, query, metric)
    scale = TICK_NS if metric in ("user", "system", "softirq") else 1
    assert found == sorted(found)
    assert found[0] <= run.begin[metric] * scale <= run.end[metric] * scale <= found[-1]


def test_times_of_all_cpus_add_up_to_the_time_that_passed(run: Run, query: Query) -> None:
    [(ns, cpu_ns)] = query(
        run.rec,
        """SELECT max(span), sum(grown) FROM (SELECT max(value) - min(value) AS grown, max(ts_ns) - min(ts_ns) AS span
        FROM system_metrics WHERE source = 'cpu' AND object IS NULL AND unit = 'ns' GROUP BY metric)""",
    )
    cpus = os.cpu_count() or 1
    assert cpu_ns == pytest.approx(ns * cpus, rel=0.02, abs=8 * cpus * TICK_NS)


def test_cpus_add_up_to_the_machine(run: Run, query: Query) -> None:
    [(one, many)] = query(
        run.rec,
        """SELECT sum(value) FILTER (object IS NULL), sum(value) FILTER (object IS NOT NULL)
        FROM system_metrics WHERE source = 'cpu' AND metric IN ('user', 'system')""",
    )
    readings = len(values(run, query, "ctxt"))
    # The sums of the kernel are rounded, and it reads the CPUs one after another.
    assert one == pytest.approx(many, abs=readings * 4 * (os.cpu_count() or 1) * TICK_NS)


def test_pressure_is_there_or_said_to_be_missing(run: Run, query: Query) -> None:
    is_there = Path("/proc/pressure/io").exists()
    for of in ("cpu", "memory", "io"):
        where = f"source = 'pressure' AND object = '{of}'"
        assert bool(values(run, query, "some", where)) == is_there
        assert bool(values(run, query, "missing", where)) != is_there


def test_the_control_group_has_the_time_of_its_command(run: Run, query: Query) -> None:
    usage = values(run, query, "usage", "source = 'cgroup'")
    if not usage:
        pytest.skip("the command has no control group of its own here")
    [(cpu_ns,)] = query(run.rec, "SELECT sum(user_ns + system_ns)::BIGINT FROM processes")
    assert usage[-1] - usage[0] == pytest.approx(cpu_ns, rel=0.05, abs=3 * TICK_NS)


def test_a_disk_is_given_what_the_command_writes(kernel: Recorder, tmp_path: Path, query: Query) -> None:
    (tmp_path / "image").write_bytes(bytes(16 << 20))
    made = subprocess.run(["losetup", "--find", "--show", tmp_path / "image"], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no loop device can be made: {made.stderr.strip()}")
    device = made.stdout.strip()
    try:
        words = ["dd", "if=/dev/zero", f"of={device}", "bs=1M", "count=8", "oflag=direct", "status=none"]
        # A disk that nobody has used has no row yet at the start.
        subprocess.run([*words[:-2], "oflag=direct", "status=none"], check=True)
        done = kernel.record(tmp_path / "rec", *words, recorder_options=("--what", "io,system"))
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
    assert (done.returncode, done.stderr) == (0, "")
    where = f"object = '{Path(device).name}'"
    run = Run(tmp_path / "rec", {}, {})
    written = values(run, query, "written_bytes", where)
    assert written[-1] - written[0] == 8 << 20


def test_the_analyses_have_the_same_numbers(run: Run, query: Query, open_session: Callable) -> None:
    session = open_session(run.rec)

    def rows(name: str) -> list[dict]:
        result = session.run(name)
        names = [column.name for column in result.columns]
        return [dict(zip(names, row, strict=True)) for row in result.rows()]

    load = {(row["source"], row["object"], row["metric"]): row for row in rows("system/load")}
    found = values(run, query, "pgfault")
    assert load["paging", None, "pgfault"]["total"] == found[-1] - found[0]
    steps = rows("system/over_time")
    assert len(steps) == len(found) - 1
    parts = ("user", "system", "irq", "iowait", "steal", "idle")
    assert all(sum(step[part] for part in parts) == pytest.approx(100, abs=0.1) for step in steps)


def test_it_can_be_left_out(kernel: Recorder, tmp_path: Path, manifest: Callable) -> None:
    kernel.record(tmp_path / "rec", "true", recorder_options=("--what", "io"))
    assert "system_metrics" not in manifest(tmp_path / "rec")["tables"]
    assert {"family": "system", "missing": {"code": "capture/not_requested"}} in manifest(tmp_path / "rec")[
        "families"
    ]
