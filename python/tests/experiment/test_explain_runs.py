"""Explain runs, for real: what was added to a command is named."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from sysdock.cli import sysdock

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
