"""`sysdock merge`, as a user calls it, and the other verbs on what it made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.conftest import Cli
from make_recording import RecordingMaker
from sysdock.cli.merge import command
from sysdock.errors import UserError

CALLS = [
    {"t": 0.0, "call": "openat", "path": "/scratch/out", "dur_ns": 20_000_000, "comm": "solver", "result": 3},
    {"t": 0.1, "call": "write", "path": "/scratch/out", "dur_ns": 30_000_000, "transferred_bytes": 4096},
]


NEXT = "Next: sysdock show job ranks/imbalance   sysdock diagnose job"


def two_nodes(maker: RecordingMaker) -> list[Path]:
    """Recordings of two ranks, on hosts that are not this one: whoever reads them keeps to limits."""
    late = [{**each, "t": each["t"] + 0.005} for each in CALLS]
    return [maker.make(each, f"rank.{n}", host=f"n{n}") for n, each in enumerate((CALLS, late))]


def test_all_verbs_answer_of_a_merge(cli: Cli, maker: RecordingMaker) -> None:
    folders = two_nodes(maker)
    done = cli("merge", *folders, "-o", "job", "--offset", "rank.1=-0.005")
    assert (done.returncode, done.stdout) == (0, f"job: 2 recordings, 4 rows of `calls`\n{NEXT}\n")
    assert done.stderr == ""
    shown = cli("show", "job", "ranks/shared_files", "--format", "json")
    rows = json.loads(shown.stdout)
    assert [(row["rank"], int(row["together_ns"]), row["together"]) for row in rows] == [
        (0, 5 * 10**7, 1),
        (1, 5 * 10**7, 1),
    ]
    assert "recordings   2 of 2 understood" in cli("info", "job").stdout
    for words in (["diagnose", "job"], ["compare", "job", folders[0]]):
        answered = cli(*words)
        assert (answered.returncode, "Traceback" in answered.stderr) == (0, False), answered.stderr
    again = cli("merge", *folders, "-o", "job")
    assert again.returncode == 2
    assert "sysdock: job: already exists" in again.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--offset", "n1"], "--offset n1: not NAME=SECONDS"),
        (["--offset", "n1=1e3"], "--offset n1=1e3: not NAME=SECONDS"),
        (["--offset", "=1"], "--offset =1: not NAME=SECONDS"),
        (["--rank", "rank.0=-1"], "--rank rank.0=-1: not NAME=NUMBER"),
        (["--rank", "rank.0=x"], "--rank rank.0=x: not NAME=NUMBER"),
    ],
)
def test_options_that_are_none_are_refused_with_a_hint(words: list[str], said: str) -> None:
    with pytest.raises(UserError) as raised:
        command.main(["rec", *words, "-o", "job"], standalone_mode=False)
    assert str(raised.value).startswith(f"{said}\n\nhint: write it as node3=")
