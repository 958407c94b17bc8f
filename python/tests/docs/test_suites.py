"""tools/check and its companions: hooks for pre-commit, licences for cargo-deny."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import re
import shlex
import signal
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def check() -> ModuleType:
    """tools/check as a module."""
    loader = importlib.machinery.SourceFileLoader("tools_check", str(ROOT / "tools/check"))
    spec = importlib.util.spec_from_loader("tools_check", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its module up.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "tools_check", module)
        loader.exec_module(module)
    return module


def test_the_hooks_of_pre_commit_are_the_linters(check: ModuleType) -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    entries = [
        shlex.split(quoted or plain) for quoted, plain in re.findall(r"entry: (?:'(.*?)'|([^,]*)),", text)
    ]
    linters = [name for name, (_, count) in check.SUITES.items() if count in (check.one, check.no_warning)]
    assert [words[0] for words in entries] == ["tools/check"] * len(linters)
    assert [words[1] for words in entries] == linters


def test_the_licences_of_cargo_deny_are_those_of_the_page() -> None:
    page = (ROOT / "docs/explain/dependencies.md").read_text("utf-8").rstrip().split("\n\n")[-1]
    allowed = tomllib.loads((ROOT / "deny.toml").read_text("utf-8"))["licenses"]["allow"]
    assert allowed == re.split(r",\s+", page)


def test_a_load_runs_as_many_tests_at_a_time_and_ends(check: ModuleType) -> None:
    with check.load(6) as busy:
        assert [one.process.poll() for one in busy] == [None] * 6
        assert check.ENVIRONMENT[check.WORKERS_VARIABLE] == "6"
    assert {(one.process.returncode, one.is_over) for one in busy} == {(-signal.SIGKILL, False)}
    with check.load(0):
        assert check.ENVIRONMENT[check.WORKERS_VARIABLE] == "4"


def test_what_more_has_said_replaces_its_row_and_leaves_the_others(
    check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "PAGE", tmp_path / "page.md")
    check.PAGE.write_text("before\n" + "".join(check.TABLE) + "after\n")
    check.write_table(
        {"more cases": check.Count(passed=3), "killed agents": check.Count(failed=1, said="1 | lost")}
    )
    check.write_table({"more cases": check.Count(passed=4, seconds=90)})
    text = check.PAGE.read_text()
    assert text.startswith("before\n<!--")
    assert text.endswith("-->\nafter\n")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]
    assert [(row[0], row[3], row[4], row[5]) for row in rows] == [
        ("| more cases", "passed", "2 min", "4 passed, 0 failed, 0 skipped |"),
        ("| killed agents", "**1 failed**", "0 min", "1 / lost |"),
    ]
