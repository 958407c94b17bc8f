"""Products are known in recordings of themselves, and have advice for what the rules find there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from recorders import Recorder
from sysdock.analysis import Finding, Session
from sysdock.analysis.diagnosis import diagnose_by
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.sentences import say

COMMITS = """
import sqlite3, sys
base = sqlite3.connect(sys.argv[1])
base.execute("CREATE TABLE t (n)")
for n in range(100):
    base.execute("INSERT INTO t VALUES (?)", (n,))
    base.commit()
"""
LINES = """
import sys
with open(sys.argv[1], "w") as out:
    for n in range(20000):
        print(n, file=out, flush=True)
"""
Found = Callable[..., dict[str, list[Finding]]]


@pytest.fixture
def found(recorder: Recorder, tmp_path: Path) -> Found:
    """The findings by rule for a command that is recorded."""

    def run(*command: Path | str) -> dict[str, list[Finding]]:
        done = recorder.record(tmp_path / "rec", *command)
        assert done.returncode == 0, done.stderr
        rules: dict[str, list[Finding]] = {}
        with Session(Recording.open(tmp_path / "rec"), Library()) as session:
            for finding in session.diagnose():
                if finding.status == "finding":
                    rules.setdefault(finding.rule, []).append(finding)
        return rules

    return run


def test_commits_of_sqlite_are_known_in_a_program_in_python(found: Found, tmp_path: Path) -> None:
    syncs = found(sys.executable, "-c", COMMITS, tmp_path / "base")["io/sync_per_write"]
    journal = next(each for each in syncs if (each.file or "").endswith("-journal"))
    assert journal.product == "SQLite"
    assert "journal_mode=WAL" in (journal.product_advice or "")
    assert journal.share


def test_a_program_in_python_is_known(found: Found, tmp_path: Path) -> None:
    [writes] = found(sys.executable, "-c", LINES, tmp_path / "out")["io/small_requests"]
    assert (writes.product, writes.variant) == ("Python", "write")
    assert "buffering=1 << 20" in (writes.product_advice or "")


def test_git_is_known(recorder: Recorder, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for number in range(40):
        (tree / f"d{number}").mkdir(parents=True)
        for name in range(60):
            (tree / f"d{number}" / f"f{name}").write_text(f"{number} {name}")
    git = ["git", "-C", tree, "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    done = recorder.record(tmp_path / "rec", "git", "-C", tree, "status", "--porcelain")
    assert done.returncode == 0, done.stderr
    with Session(Recording.open(tmp_path / "rec"), Library()) as session:
        # Any share counts: one read that has to wait for a busy processor takes longer than all of these calls.
        [rule] = [rule for rule in session.library.rules() if rule.id == "io/metadata_cost"]
        [asked] = diagnose_by(session, rule, {"min_share": 0, "min_ratio": 1e-6})
    assert asked.product == "Git"
    assert "feature.manyFiles" in say(asked.product_advice, "en")
