"""Verbs on recordings that were not made here: limits of the operating system, and what is reported to the user."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from make_recording import RecordingMaker, part_entry
from sysdock.own_files import own_root
from sysdock.recording.limits import MOST_SECONDS, limits_of_know_how
from waiting import children, cpu_s, is_running, wait_for

LIMITED = """
import os, resource, sys, time
from pathlib import Path
import sysdock.cli
from sysdock.cli import limited
from sysdock.recording import Recording, limits
sysdock.cli.owns_process = True
limits._LEAST_SECONDS = {seconds}
limited.go_on_in_child([Recording.open(Path(sys.argv[1]))])
{work}
"""
ENDLESS = """-- Endless
-- A question that is not answered within a week.
-- needs:  calls
-- column: n BIGINT Number.
SELECT count(*) AS n
FROM range(100000000) AS a, range(100000000) AS b
WHERE a.range * b.range % 7 = 3
"""


def run_limited(
    folder: Path, work: str, seconds: int = 20, switch: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs `work` within the limits of the recording, of which this test says the time."""
    code = LIMITED.format(work=work, seconds=seconds)
    return subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={name: value for name, value in os.environ.items() if name != "SYSDOCK_LIMITS"} | (switch or {}),
    )


def test_memory_and_time_are_those_of_the_limits(maker: RecordingMaker) -> None:
    work = "print(resource.getrlimit(resource.RLIMIT_DATA)[0], resource.getrlimit(resource.RLIMIT_CORE)[0])"
    assert run_limited(maker.make(), work).stdout == f"{2 << 30} 0\n"


def test_the_exit_status_is_that_of_the_verb(maker: RecordingMaker) -> None:
    assert run_limited(maker.make(), "sys.exit(1)").returncode == 1


def test_what_takes_too_long_is_stopped_and_said(maker: RecordingMaker) -> None:
    done = run_limited(maker.make(), "time.sleep(60)", seconds=1)
    assert "stopped (its time was over): a recording that was not made here may take 2,048 MB" in done.stderr
    assert "SYSDOCK_LIMITS=off" in done.stderr


def test_an_abort_is_said(maker: RecordingMaker) -> None:
    assert "stopped (SIGABRT)" in run_limited(maker.make(), "os.abort()").stderr


def test_without_limits_a_child_that_is_killed_is_seen_to_be(maker: RecordingMaker) -> None:
    work = "os.kill(os.getpid(), 9)"
    assert run_limited(maker.make(), work, switch={"SYSDOCK_LIMITS": "off"}).returncode == -signal.SIGKILL


def test_long_texts_in_a_small_file_end_in_an_error(cli, maker: RecordingMaker) -> None:
    import duckdb

    folder = maker.make()
    file = folder / "paths" / "part-0000.parquet"
    file.unlink()
    texts = "SELECT i::INTEGER AS path_id, concat(i, repeat('x', 100000000)) AS path, 'file' AS kind FROM range(6) t(i)"
    config = {"threads": "1", "memory_limit": "3GB"}
    duckdb.connect(config=config).execute(f"COPY ({texts}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)")
    import json

    manifest = json.loads((folder / "recording.json").read_text())
    manifest["tables"]["paths"] = {"rows": 6, "lost": 0, "parts": [part_entry(folder, file, 6)]}
    (folder / "recording.json").write_text(json.dumps(manifest))
    for verb in (["show", folder, "io/files"], ["query", folder, "SELECT path FROM paths"]):
        done = cli(*verb)
        assert done.returncode == 2
        assert "memory" in done.stderr
        assert "Traceback" not in done.stderr
    done = cli("diagnose", folder)
    assert done.returncode == 0


@pytest.mark.parametrize("verb", ["query", "diagnose"])
def test_a_verb_that_is_killed_leaves_no_process(cli, maker: RecordingMaker, verb: str) -> None:
    folder = maker.make()
    # A pipe in place of a part that is listed would be refused; endless SQL keeps the worker busy.
    if verb == "query":
        endless = "SELECT count(*) FROM range(1000000000000) AS a(x), range(1000000) AS b(y) WHERE x + y = 1"
        started = cli.start("query", folder, endless)
    else:
        code = LIMITED.format(work="print('ready', flush=True); time.sleep(60)", seconds=60)
        started = subprocess.Popen([sys.executable, "-c", code, str(folder)])
    try:
        workers = wait_for_children(started.pid)
        started.kill()
    finally:
        started.kill()
        started.wait()
    assert workers
    wait_for(lambda: not any(map(is_running, workers)), "the end of the children")


def wait_for_children(pid: int) -> list[int]:
    """Ids of its children, as soon as there are any that the kernel ends with it."""
    found: list[int] = []

    def are_there() -> bool:
        found[:] = children(pid)
        return bool(found) and all(is_busy(child) for child in found)

    wait_for(are_there, "a child")
    return found


def is_busy(pid: int) -> bool:
    """Whether its limits are set, which comes after that."""
    text = Path(f"/proc/{pid}/limits").read_text()
    return any(line.startswith("Max core file size") and line.split()[4] == "0" for line in text.splitlines())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_sql_that_does_not_end_is_ended_by_a_signal(
    cli, maker: RecordingMaker, tmp_path: Path, number: signal.Signals
) -> None:
    knowhow = tmp_path / "knowhow"
    shutil.copytree(own_root() / "tables", knowhow / "tables")
    (knowhow / "analyses/my").mkdir(parents=True)
    (knowhow / "analyses/my/endless.sql").write_text(ENDLESS)
    cli.environment["SYSDOCK_KNOWHOW"] = str(knowhow)
    showing = cli.start("show", maker.make(), "my/endless")
    wait_for(lambda: any(cpu_s(child) > 1 for child in children(showing.pid)), "the engine")
    showing.send_signal(number)
    assert showing.wait(600) == 128 + number


def test_sql_of_others_has_limits_on_own_recordings() -> None:
    assert limits_of_know_how(own_root()) is None
    found = limits_of_know_how(Path("/opt/pack"))
    assert found is not None
    assert found.seconds == MOST_SECONDS
