"""The environment says of each field what it is or why not; documents hold what ran; replay compares."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sysdock.analysis import Session
from sysdock.cli import sysdock
from sysdock.errors import UserError
from sysdock.experiment import environment
from sysdock.experiment.documents.blocks import Code, Heading, Items, Paragraph, markdown, page, table
from sysdock.experiment.environment import between, capture, from_default, is_unreadable, programs_used
from sysdock.experiment.replaying import _outcome
from sysdock.library import Library
from sysdock.library.environment import EnvironmentField, EnvironmentSection, parse_environment
from sysdock.recording import Recording
from sysdock.sentences import facts_from_json, prose, say

ROW = {"verdict": "changed", "ratio": 2.0, "baseline_median": 1.0, "scenario_median": 2.0}


def section(*fields: EnvironmentField) -> EnvironmentSection:
    return EnvironmentSection("own", Path("own.toml"), "Own", prose("Own", ja="独自"), fields)


def one(**source: Any) -> EnvironmentField:
    return EnvironmentField(name=source.pop("name", "field"), text="", texts=prose(""), **source)


def value_of(field: EnvironmentField) -> str:
    ((_, _, value, _),) = capture([section(field)], Path("/tmp"))
    return str(value)


def said(value: str) -> str:
    """A value as documents have it."""
    return say(facts_from_json(value), "en")


def test_every_field_of_this_machine_has_a_value_or_a_reason() -> None:
    rows = capture(Library().environment(), Path("/tmp"))
    assert len(rows) > 80
    assert all(value for _, _, value, _ in rows)
    unread = [said(value) for _, _, value, _ in rows if is_unreadable(value)]
    assert all(value.startswith("unreadable: ") and len(value) > 15 for value in unread)
    values = {name: value for _, name, value, _ in rows}
    assert values["kernel release"] == os.uname().release
    assert values["architecture"] == os.uname().machine
    assert values["vm.swappiness"] == Path("/proc/sys/vm/swappiness").read_text().strip()


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    none = tmp_path / "none"
    assert said(value_of(one(file=str(none)))) == f"unreadable: there is no {none}"
    assert (
        said(value_of(one(file=str(none), absent="environment/no_modules")))
        == "not applicable: the kernel loads no modules"
    )
    assert said(value_of(one(file=str(tmp_path / "empty")))) == "unreadable: it is empty"
    assert (
        said(value_of(one(file="/proc/version", pattern="^nothing (.*)$"))) == "unreadable: it does not say"
    )
    assert said(value_of(one(command=("no-such-program",)))) == "unreadable: no-such-program is not installed"
    assert said(value_of(one(command=("sh", "-c", "echo why >&2; exit 3")))) == "unreadable: sh: why"
    assert is_unreadable(value_of(one(file=str(tmp_path))))


def test_units_choices_hashes_and_secrets(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("none [mq-deadline] kyber\n")
    assert value_of(one(file=str(tmp_path / "file"), choice=True)) == "mq-deadline"
    assert value_of(one(command=("echo", "7"), unit="KiB")) == "7 KiB"
    digest = hashlib.sha256((tmp_path / "file").read_bytes()).hexdigest()
    assert value_of(one(hash=(str(tmp_path / "none"), str(tmp_path / "file")))) == digest
    assert (
        value_of(one(command=("echo", "root=/dev/vda api_token=abc quiet")))
        == "root=/dev/vda api_token=... quiet"
    )


def test_a_field_of_each_match_leaves_out_what_it_is_to(tmp_path: Path) -> None:
    for name in ("sda", "loop0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "size").write_text("5")
    field = one(name="{1}: size", each=f"{tmp_path}/*/size", except_=("loop*",), default="4")
    rows = capture([section(field)], Path("/tmp"))
    assert [row[:3] for row in rows] == [("own", "sda: size", "5")]
    assert [(each.name, each.here, each.there) for each in from_default([section(field)], rows)] == [
        ("sda: size", "5", "4")
    ]


def test_machines_are_compared_by_what_results_depend_on() -> None:
    sections = [
        section(one(name="model", command=("true",)), one(name="load", command=("true",), defines=False))
    ]
    here = [("own", "model", "a", ""), ("own", "load", "1", ""), ("program", "dd", "x", "")]
    there = [("own", "model", "b", ""), ("own", "load", "2", "")]
    found = [(each.section, each.name, each.here, each.there) for each in between(sections, here, there)]
    assert found == [("program", "dd", "x", None), ("own", "model", "a", "b")]


def test_a_program_has_its_checksum() -> None:
    rows = {name: value for _, name, value, _ in programs_used(["sh", "no-such-program"])}
    assert hashlib.sha256(Path("/bin/sh").resolve().read_bytes()).hexdigest() in rows["sh"]
    assert is_unreadable(rows["no-such-program"])


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ('file = "/x"\ncommand = ["y"]', "needs one of"),
        ('each = "/x"', "`each` has one"),
        ('file = "/x"\npattern = "("', "`pattern`"),
        ('file = "/x"\nunits = "s"', "unknown key `units`"),
        ("file = 3", "wrong type"),
    ],
)
def test_mistakes_in_a_section_are_named(tmp_path: Path, text: str, fact: str) -> None:
    path = tmp_path / "own.toml"
    path.write_text(f'text = "t"\ntext_ja = "t"\n[[fields]]\nname = "n"\ntext_ja = "n"\n{text}\n')
    with pytest.raises(UserError, match=fact):
        parse_environment(path)


def test_what_was_recorded_cannot_become_markup() -> None:
    hostile = "<script>alert(1)</script> | a\n# heading"
    blocks = [
        Heading(1, "Title"),
        Paragraph("see `x`"),
        Items(("one",)),
        Code((hostile,)),
        table(["a"], [[hostile]]),
    ]
    assert "<script>alert" not in page({"en": blocks, "ja": blocks})
    lines = markdown(blocks).splitlines()
    assert not any(line.startswith(("<script", "# heading")) for line in lines)
    (row,) = [line for line in lines if line.startswith("| &lt;script>")]
    assert row.replace("\\|", "").count("|") == 2


@pytest.mark.parametrize(
    ("after", "differs", "outcome"),
    [
        ({}, False, "reproduced"),
        ({"ratio": 1.5, "scenario_median": 1.5}, True, "reproduced"),
        ({"ratio": 0.5, "scenario_median": 0.5}, False, "not reproduced"),
        ({"verdict": "equivalent"}, False, "not reproduced"),
        ({"verdict": "equivalent"}, True, "not comparable"),
        ({"verdict": "inconclusive"}, False, "not comparable"),
    ],
)
def test_a_verdict_again(after: dict[str, Any], differs: bool, outcome: str) -> None:
    differences = between([], [("program", "dd", "1", "")], [("program", "dd", "2", "")]) if differs else []
    assert _outcome("w", ROW, {**ROW, **after}, differences).outcome == outcome


def test_a_verdict_that_only_one_has_is_not_comparable() -> None:
    assert _outcome("w", ROW, None, []).reason == "only the first has it"


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Result]:
    """Runs `sysdock experiment`."""

    def run_(*words: object) -> Result:
        return CliRunner().invoke(
            sysdock,
            ["experiment", *map(str, words)],
            catch_exceptions=False,
            standalone_mode=False,
            env={"SYSDOCK_STATE": str(tmp_path / "journals")},
        )

    return run_


PRINTS = """
title = "w"
title_ja = "w"
question = "w"
question_ja = "w"
analysis = "experiment/verdicts"
[claim]
primary = "value"
[plan]
blocks = 10
aa = false
dry = 0
[reject]
foreign_cpu_percent = false
steal_percent = false
[factors.number]
levels = ["10", "300"]
text = "w"
text_ja = "w"
[scenarios.short]
number = "10"
text = "w"
text_ja = "w"
[scenarios.long]
number = "300"
text = "w"
text_ja = "w"
[[workloads]]
name = "print"
text = "w"
text_ja = "w"
run = ["echo", "{number}"]
[workloads.measures.value]
pattern = '([0-9]+)'
better = "lower"
text = "w"
text_ja = "w"
"""


def test_an_experiment_is_run_again_only_with_trust_and_gives_the_same(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    """What is measured is what the command prints, which does not depend on what else runs."""
    (tmp_path / "own.toml").write_text(PRINTS)
    run("run", tmp_path / "own.toml", "-o", tmp_path / "first", "--trust")
    with pytest.raises(UserError, match=r"\n  echo 10\n  echo 300\n"):
        run("replay", tmp_path / "first", "-o", tmp_path / "again")
    assert not (tmp_path / "again").exists()
    answer = run("replay", tmp_path / "first", "-o", tmp_path / "again", "--trust", "--format", "json")
    found = json.loads(answer.stdout)
    assert [each["outcome"] for each in found["outcomes"]] == ["reproduced"]
    assert found["differences"] == []
    run("report", tmp_path / "again", "--against", tmp_path / "first", "-o", tmp_path / "documents")
    environment = (tmp_path / "documents" / "environment.md").read_text()
    assert "## Differences from the other machine\n\nNone of the fields" in environment
    assert {path.name for path in (tmp_path / "documents").iterdir()} == {
        f"{name}{ending}"
        for name in ("environment", "procedure", "results")
        for ending in (".md", ".ja.md", ".html")
    }
    japanese = (tmp_path / "documents" / "environment.ja.md").read_text()
    assert "| クロックソース |" in japanese
    assert "| 緩和策: spectre_v1 |" in japanese
    assert "not applicable" not in japanese
    procedure = (tmp_path / "documents" / "procedure.md").read_text()
    assert "sysdock experiment replay" in procedure
    assert "coreutils" in procedure


def test_numbers_that_a_run_prints_while_it_runs_count_after_the_warm_up(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    program = "for n in range(40): print('rate', 10 if n < 10 else 100 + n % 3)"
    body = f"""
title = "w"
title_ja = "w"
question = "w"
question_ja = "w"
analysis = "experiment/verdicts"
[claim]
primary = "rate"
better = "higher"
[plan]
blocks = 8
aa = false
dry = 0
[reject]
foreign_cpu_percent = false
steal_percent = false
[factors.word]
levels = ["a", "b"]
text = "w"
text_ja = "w"
[scenarios.one]
word = "a"
text = "w"
text_ja = "w"
[scenarios.two]
word = "b"
text = "w"
text_ja = "w"
[[workloads]]
name = "series"
text = "w"
text_ja = "w"
run = ["{{python}}", "-SE", "-c", "{program}", "{{word}}"]
[workloads.measures.rate]
pattern = 'rate ([0-9]+)'
better = "higher"
series = true
text = "w"
text_ja = "w"
"""
    (tmp_path / "own.toml").write_text(body)
    run("run", tmp_path / "own.toml", "-o", tmp_path / "rec", "--trust")
    sql = "SELECT metric, min(value), max(value) FROM experiment_metrics WHERE metric LIKE 'rate%' GROUP BY 1"
    with Session(Recording.open(tmp_path / "rec")) as session:
        found = {metric: (low, high) for metric, low, high in session.fetch(sql)}
    assert found["rate"] == pytest.approx((101, 101), abs=0.1)
    assert found["rate_warm_up"] == (0.25, 0.25)
    assert found["rate_unsteady"] == (0, 0)


def test_the_environment_of_each_run_has_a_size_of_its_own() -> None:
    from sysdock.experiment.one_off import of_commands
    from sysdock.experiment.plan import turns

    experiment = of_commands(["a", "b"], blocks=20, metric="elapsed_s", margin=0.01, minutes=1)
    some = {turn.padding for block in range(1, 21) for turn in turns(experiment, 1, block, 1, 7)}
    assert len(some) > 30
    again = turns(replace(experiment, id="other"), 1, 3, 1, 7)
    assert again == turns(experiment, 1, 3, 1, 7)


@pytest.mark.parametrize(
    ("tool", "script", "said"),
    [
        (None, "", "package not known, as there is neither dpkg nor rpm"),
        ("rpm", 'test "$1 $4" = "-qf /bin/tool" && echo name 1.2-3', "name 1.2-3"),
        ("rpm", "echo no such package; exit 1", "no package"),
        ("dpkg-query", 'test "$1" = -S && echo name: /bin/tool || echo 1.2', "name 1.2"),
        (
            "dpkg-query",
            'test "$1" = -S || { echo 1.2; exit; }; echo diversion by other from: /bin/tool; echo name: /bin/tool; exit 1',
            "name 1.2",
        ),
        ("dpkg-query", "echo diversion by other from: /bin/tool; exit 1", "no package"),
        ("dpkg-query", "exit 1", "no package"),
    ],
)
def test_packages_of_programs_are_those_of_the_distribution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str | None, script: str, said: str
) -> None:
    if tool:
        (tmp_path / tool).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment._package("/bin/tool", Path("/bin/tool")).strip() == said
