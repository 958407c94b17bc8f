"""Explain runs, for real: what was added to a command is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sysdock.cli import sysdock
from sysdock.errors import UserError
from sysdock.experiment.explaining import LOCK_WAITS, profile, recorder, servers_recorded
from sysdock.library import Library

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the kernel recorder needs root")
BLOCKS = 16


def compare(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(
        sysdock,
        ["experiment", "compare", *words],
        catch_exceptions=False,
        standalone_mode=False,
        env={"SYSDOCK_STATE": str(folder / "journals")},
    )


@pytest.mark.more
def test_calls_that_were_added_are_named_with_their_number(tmp_path: Path) -> None:
    """Twenty fsyncs and nothing else: the numbers of calls are exact, whatever the machine does meanwhile."""
    program = (
        "import os, sys\n"
        f"fd = os.open({str(tmp_path / 'file')!r}, os.O_RDWR | os.O_CREAT)\n"
        "for n in range(20):\n"
        "    os.pwrite(fd, b'x' * 4096, 0)\n"
        "    sys.argv[1:] and os.fsync(fd)\n"
    )
    (tmp_path / "program.py").write_text(program)
    alone = f"/usr/bin/python3 -SE {tmp_path / 'program.py'}"
    words = ("--explain", "--blocks", str(BLOCKS), "--format", "json", "-o", str(tmp_path / "rec"))
    found = json.loads(compare(tmp_path, *words, "--", alone, f"{alone} fsync").stdout)
    causes = {(row["kind"], row["name"]): row for row in found["causes"]}
    assert causes["calls", "fsync"]["difference_per_unit"] == 20
    assert causes["calls", "fsync"]["blocks"] == BLOCKS
    # What both do is no cause.
    assert ("calls", "pwrite64") not in causes
    assert found["causes"][-1]["kind"] == "remainder"
    # Explain runs belong to no verdict, and leave no recording.
    assert found["verdicts"][0]["blocks"] == BLOCKS
    assert not list((tmp_path / "rec").glob("case-*"))
    results = (tmp_path / "rec" / "documents" / "results.md").read_text()
    assert "## Causes" in results
    assert "## Bottlenecks" in results


def test_a_command_that_cannot_be_recorded_still_gets_its_verdict(tmp_path: Path) -> None:
    """The recorder refuses; the runs that count are not touched by that."""
    refuses = "! tr '\\0' ' ' </proc/$PPID/cmdline | grep -q '[n]ative record'"
    words = ("--explain", "--blocks", "2", "--format", "json", "-o", str(tmp_path / "rec"))
    result = compare(tmp_path, *words, "--", refuses, f"{refuses} ")
    found = json.loads(result.stdout)
    assert found["causes"] == []
    assert found["verdicts"][0]["blocks"] == 2
    assert "no causes from this block" in result.stderr


# Four processes that make and remove files in one directory wait for its lock.
FIGHT = """
import os, sys
place, rounds = sys.argv[1], int(sys.argv[2])
children = []
for name in range(4):
    if not (child := os.fork()):
        for _ in range(rounds):
            os.close(os.open(f"{place}/{name}", os.O_CREAT | os.O_WRONLY))
            os.unlink(f"{place}/{name}")
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
"""


@pytest.mark.more
def test_locks_that_servers_wait_for_are_recorded_beside_the_command(tmp_path: Path) -> None:
    """The command does nothing: what waits is not its own."""
    (tmp_path / "place").mkdir()
    server = subprocess.Popen(
        [sys.executable, "-c", FIGHT, str(tmp_path / "place"), "1000000000"], process_group=0
    )
    try:
        with servers_recorded(tmp_path / "servers", [server.pid]):
            subprocess.run(
                [*recorder(tmp_path / "rec", as_root=True), "sleep", "0.5"], check=True, capture_output=True
            )
        with (
            pytest.raises(UserError, match=r"999999999|no such process|No such process"),
            servers_recorded(tmp_path / "none", [999999999]),
        ):
            pass
    finally:
        os.killpg(server.pid, 9)
        server.wait()
    alone = profile(tmp_path / "rec", Library(), (), 1.0)
    both = profile(tmp_path / "rec", Library(), (), 1.0, tmp_path / "servers")
    assert "i_rwsem" not in "".join(item.name for item in alone.items)
    locks = {item.name: item.value for item in both.items if item.kind == LOCK_WAITS}
    assert max(locks, key=lambda name: locks[name] * ("i_rwsem" in name)).partition(", in ")[2]
    assert sum(value for name, value in locks.items() if "i_rwsem" in name) > 0


def test_shares_of_locks_are_shown_by_scenario_lock_and_caller(tmp_path: Path) -> None:
    (tmp_path / "fight.py").write_text(FIGHT)
    (tmp_path / "place").mkdir()
    words = ("--explain", "--blocks", "2", "-o", str(tmp_path / "rec"))
    fight = f"{sys.executable} {tmp_path / 'fight.py'} {tmp_path / 'place'}"
    compare(tmp_path, *words, "--", f"{fight} 1", f"{fight} 2000")
    done = CliRunner().invoke(
        sysdock,
        ["show", str(tmp_path / "rec"), "experiment/locks", "--format", "json"],
        standalone_mode=False,
    )
    rows = [row for row in json.loads(done.stdout) if row["scenario"] == "B"]
    assert sum(row["share"] for row in rows) == pytest.approx(1, abs=0.01)
    assert {row["runs"] for row in rows} == {2}
    assert {row["lock"] for row in rows if "i_rwsem" in row["lock"]}
    for row in rows:
        same = [each for each in rows if each["lock"] == row["lock"]]
        assert row["lock_share"] == pytest.approx(sum(each["share"] for each in same), abs=0.001 * len(same))
    # They are no causes: those add up along the critical path.
    causes = json.loads(
        CliRunner()
        .invoke(
            sysdock,
            ["show", str(tmp_path / "rec"), "experiment/causes", "--format", "json"],
            standalone_mode=False,
        )
        .stdout
    )
    assert LOCK_WAITS not in {row["kind"] for row in causes}
