"""What a stranger's experiment may do without `--trust`, and what is said before one is trusted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hostile_plans import attack
from sampling import sampled
from sysdock.cli import sysdock
from sysdock.errors import UserError
from sysdock.experiment.chosen import read_chosen
from sysdock.experiment.trust import actions, files_of, own_experiment, refused
from sysdock.experiment.values_in_code import values_in_code
from sysdock.library import Experiment, Library
from sysdock.library.experiments import Step, filled, parse_experiment
from sysdock.sentences import prose

PLAN: dict[str, Any] = {
    "command": "sysdock experiment run NAME", "id": "db/load", "seed": 1, "set": [], "blocks": None, "busy": False, "explain": False,
}  # fmt: skip
EVIL = "x; touch /tmp/evil #"


@pytest.fixture(scope="module")
def library() -> Library:
    """What comes with sysdock."""
    return Library()


@pytest.fixture
def bundle(tmp_path: Path, library: Library) -> Callable[..., Experiment | None]:
    """A recording that holds a copy of one of our experiments, with a plan: what may run without trust."""

    def judged(id_: str, *settings: list[Any], **chosen: Any) -> Experiment | None:
        experiment = library.experiment(id_)
        shutil.copy(experiment.path, tmp_path / "experiment.toml")
        (tmp_path / "experiment").mkdir(exist_ok=True)
        for name, text in files_of(experiment).items():
            (tmp_path / "experiment" / name).write_text(text)
        plan = {**PLAN, "id": id_, "set": [*settings], **chosen}
        (tmp_path / "plan.json").write_text(json.dumps(plan))
        kept = parse_experiment(tmp_path / "experiment.toml", id_)
        return own_experiment(kept, read_chosen(tmp_path), library)

    return judged


@pytest.mark.parametrize(
    ("id_", "name", "value", "is_ours"),
    [
        ("db/load", "settings", "large_log", True),
        ("db/load", "settings", EVIL, False),
        ("db/load", "rows", "70000", True),
        ("db/load", "rows", "10000001", False),
        ("db/load", "rows", "0", False),
        ("itrace/web", "path", EVIL, False),
        ("itrace/kernel", "kernel", "--help", False),
        ("disk/diskio", "transaction", EVIL, False),
        ("app/orders", "mix", "../../etc/shadow", False),
        ("disk/fragments", "file_system", "xfs", True),
    ],
)
def test_a_strangers_plan_sets_only_what_the_experiment_declares(
    bundle: Callable, library: Library, id_: str, name: str, value: str, is_ours: bool
) -> None:
    found = bundle(id_, [name, [value]])
    assert (found is not None) == is_ours
    if found:
        # Not the stranger's file, which may change meanwhile.
        assert found.path == library.experiment(id_).path


def test_parameters_of_numbers_have_a_range(library: Library) -> None:
    numbers = [p for each in library.experiments() for p in each.parameters if isinstance(p.values[0], int)]
    assert len(numbers) > 20
    assert all(each.range and all(map(each.declares, each.values)) for each in numbers)


@pytest.mark.parametrize(
    "damage",
    [
        {"id": 3},
        {"set": [["rows", "70000"]]},
        {"set": [["rows", []]]},
        {"set": {"rows": "x"}},
        {"seed": -1},
        {"seed": "x"},
        {"blocks": "8"},
        {"blocks": 1001},
        {"busy": 1},
        {"explain": None},
    ],
)
def test_a_damaged_plan_is_an_error_with_a_hint(bundle: Callable, damage: dict) -> None:
    with pytest.raises(UserError) as error:
        bundle("db/load", **damage)
    assert (error.value.code, bool(error.value.hint)) == ("experiment/damaged_plan", True)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '{"id": "x"}'])
def test_what_is_no_plan_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(UserError) as error:
        read_chosen(tmp_path)
    assert error.value.code == "experiment/damaged_plan"


def test_no_value_is_a_part_of_a_program_in_what_comes_with_sysdock(library: Library) -> None:
    assert {each.id: list(values_in_code(each)) for each in library.experiments()} == {
        each.id: [] for each in library.experiments()
    }


def test_values_reach_a_shell_only_as_whole_words(library: Library) -> None:
    """With hostile values, texts of several words are as they were, and a value stays one word."""
    seen = 0
    for experiment in library.experiments():
        for case in experiment.cases():
            evil = dict.fromkeys(case.values, EVIL)
            for command in (case.workload.run, *case.workload.before, *case.workload.check):
                words = [filled(word, evil) for word in command]
                assert len(words) == len(command)
                programs = [word for word, shape in zip(words, command, strict=True) if "\n" in shape]
                assert not any(EVIL in word for word in programs)
                seen += any(EVIL in word for word in words)
    assert seen > 10


@pytest.mark.parametrize(
    ("command", "is_right"),
    [
        (["sh", "-c", "cat {data}/part*"], False),
        (["sh", "-ec", "{clients}"], False),
        (["python3", "-c", "print('{clients}')"], False),
        (["psql", "-c", "{clients}"], False),
        (["perl", "-e", "{clients}"], False),
        (["sh", "{scratch}/x;{clients}"], False),
        (["sh", "-c", "$({clients})"], False),
        (["sh", "-e", "{scratch}/run", "{clients}"], True),
        (["sh", "-c", 'cat "$1"/part*', "sh", "{data}/{clients}"], True),
        (["pgbench", "-c{clients}", "service={clients}"], True),
        (["env", "A={clients}", "{scratch}/x"], True),
    ],
)
def test_a_value_in_a_programs_text_is_named(library: Library, command: list[str], is_right: bool) -> None:
    experiment = library.experiment("db/tpcb")
    workload = replace(experiment.workloads[0], run=tuple(command))
    found = list(values_in_code(replace(experiment, workloads=(workload,))))
    assert (found == []) == is_right
    assert {each.code for each in found} <= {"experiment/value_in_code"}


def test_who_asks_for_trust_shows_servers_their_users_and_whole_commands(
    library: Library, tmp_path: Path
) -> None:
    experiment = library.experiment("disk/fragments")
    arguments = {"command": ["/bin/evil", "{server_port}", "a b"], "user": "root"}
    server = Step("start_server", None, arguments, "w", prose("w"))
    shown = list(actions(replace(experiment, prepare=(*experiment.prepare, server)), tmp_path))
    assert any("root" in line and "/bin/evil '{server_port}' 'a b'" in line for line in shown)
    postgres = list(actions(library.experiment("db/load"), tmp_path))
    assert sum("make_postgres" in line and "a user of its own" in line for line in postgres) == 4
    # The command of each scenario with its own level.
    assert {line.rsplit("/", 1)[1] for line in shown if line.startswith("sh -c 'cat ")} >= {
        "whole'",
        "broken'",
    }
    assert "cache:drop = 3" in shown
    error = refused(experiment, tmp_path, "place", library)
    assert error.code == "experiment/needs_trust"
    assert all(line in error.fact for line in actions(experiment, tmp_path))


def test_a_pack_runs_none_of_its_programs_without_trust(
    tmp_path: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = tmp_path / "pack"
    shutil.copytree(library.root, pack, symlinks=False)
    (pack / "environment" / "evil.toml").write_text(
        'text = "w"\ntext_ja = "w"\n[[fields]]\nname = "w"\ntext_ja = "w"\n'
        f'command = ["touch", "{tmp_path}/evil"]\n'
    )
    monkeypatch.setenv("SYSDOCK_KNOWHOW", str(pack))
    monkeypatch.setenv("SYSDOCK_STATE", str(tmp_path / "state"))
    words = ["experiment", "compare", "--blocks", "1", "-o", str(tmp_path / "rec"), "true", "true"]
    CliRunner().invoke(sysdock, words, catch_exceptions=False, standalone_mode=False)
    assert not (tmp_path / "evil").exists()
    error = refused(library.experiment("db/load"), tmp_path, "place", Library())
    assert f"  touch {tmp_path}/evil\n" in error.fact
    words = ["experiment", "replay", str(tmp_path / "rec"), "-o", str(tmp_path / "again"), "--trust"]
    CliRunner().invoke(sysdock, words, catch_exceptions=False, standalone_mode=False)
    assert not (tmp_path / "evil").exists()


def test_recordings_that_a_stranger_could_have_made(tmp_path: Path, library: Library) -> None:
    """`tools/break attack plans` makes more of them."""
    wrong = [
        said for number in range(sampled(40, 400)) if (said := attack(number, tmp_path / "rec", library))
    ]
    assert wrong == []
