"""What is rare: more threads than a recorder expects, and CPUs that come and go."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from recorders import Recorder, recorder_or_skip
from sampling import sampled

Query = Callable[[Path, str], list[tuple]]
THREADS = sampled(4_000, 10_000)
# All threads are there at the same time; each lets the next one go.
MANY_THREADS = f"""
import threading
threading.stack_size(65536)
gate = threading.Lock()
def wait():
    with gate:
        pass
with gate:
    threads = [threading.Thread(target=wait) for _ in range({THREADS})]
    for thread in threads:
        thread.start()
for thread in threads:
    thread.join()
"""
CPU = Path("/sys/devices/system/cpu/cpu1/online")
# Threads that yield all the time meet the CPU that goes.
CPU_GOES = f"""
import os, threading, time
over = threading.Event()
def work():
    while not over.is_set():
        os.stat("/")
        time.sleep(0)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
def be_on(*cpus):
    # However busy they are: what is to be seen there runs there.
    os.sched_setaffinity(0, cpus)
    time.sleep(0.05)
be_on(0)
be_on(1)
be_on(0, 1)
for state in ("0", "1"):
    time.sleep(0.3)
    open({str(CPU)!r}, "w").write(state)
    print(time.time_ns(), flush=True)
be_on(1)
time.sleep(0.3)
over.set()
"""


@pytest.fixture
def kernel(native: Path) -> Recorder:
    return recorder_or_skip(native, "kernel")


@pytest.fixture
def cpu_comes_back() -> Iterator[None]:
    if not CPU.exists() or CPU.read_text() != "1\n":
        pytest.skip("there is no second CPU that could be taken off-line")
    try:
        CPU.write_text("1")
    except OSError as error:
        pytest.skip(f"CPUs cannot be taken off-line: {error}")
    try:
        yield
    finally:
        CPU.write_text("1")


def manifest(folder: Path) -> dict:
    found: dict = json.loads((folder / "recording.json").read_text())
    return found


def test_thousands_of_threads_are_all_there(kernel: Recorder, tmp_path: Path, query: Query) -> None:
    rec = tmp_path / "rec"
    kernel.record(rec, sys.executable, "-c", MANY_THREADS, recorder_options=("--what", "io,sched"))
    assert manifest(rec)["complete"]
    assert manifest(rec)["captures"][0]["lost"] == 0
    own = "FROM processes WHERE tid <> pid"
    assert query(rec, f"SELECT count(*), count(DISTINCT tid) {own}") == [(THREADS, THREADS)]
    # Each of them waited for the one that let them go.
    waited = "SELECT count(DISTINCT r.task_id) FROM run_states AS r JOIN processes AS p USING (task_id) "
    assert query(rec, f"{waited} WHERE p.tid <> p.pid AND r.call = 'futex'")[0][0] >= THREADS * 0.99


@pytest.mark.serial
@pytest.mark.usefixtures("cpu_comes_back")
def test_a_cpu_may_go_and_come_back(kernel: Recorder, tmp_path: Path, query: Query) -> None:
    rec = tmp_path / "rec"
    done = kernel.record(rec, sys.executable, "-c", CPU_GOES, recorder_options=("--what", "io,sched,system"))
    gone_ns, back_ns = map(int, done.stdout.split())
    assert manifest(rec)["complete"]
    assert manifest(rec)["captures"][0]["lost"] == 0
    cpus = "SELECT DISTINCT cpu FROM run_states WHERE cpu IS NOT NULL AND ts_ns + dur_ns"
    assert query(rec, f"{cpus} BETWEEN {gone_ns} AND {back_ns - 100_000_000}") == [(0,)]
    assert {cpu for (cpu,) in query(rec, f"{cpus} < {gone_ns}")} == {0, 1}
    # It has a ring all the time: what happens there later is recorded, too.
    assert (1,) in query(rec, f"{cpus} > {back_ns}")
