"""Journals of experiments that were broken off: killed at random and in between, damaged, and of an earlier boot."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from killed_experiments import Tally, Trials, in_child, kill
from sysdock.cli import sysdock
from sysdock.errors import UserError
from sysdock.experiment.state import Journal, State, folder, repair
from sysdock.experiment.state.journal import journals
from sysdock.experiment.state.mounts import mounts
from sysdock.experiment.state.undo import undo_one
from sysdock.experiment.tools import run_tool

NAME = "vm.dirty_expire_centisecs"
FILE = Path("/proc/sys/vm/dirty_expire_centisecs")


def killed(do: Callable[[State], object], scratch: Path) -> str:
    """An experiment that does something and is killed; its journal's name."""

    def experiment() -> None:
        do(State(Journal.begin("a test, in /somewhere"), scratch))
        os.kill(os.getpid(), signal.SIGKILL)

    assert os.waitstatus_to_exitcode(os.waitpid(in_child(experiment), 0)[1]) == -signal.SIGKILL
    (found,) = folder().glob("*.journal")
    return found.name


def said() -> list[str]:
    """What a repair says."""
    lines: list[str] = []
    repair(lines.append)
    return lines


@pytest.mark.usefixtures("root")
def test_killed_experiments_leave_nothing(tmp_path: Path) -> None:
    """`tools/break kill-experiments` kills more of them."""
    trials, tally = Trials(tmp_path), Tally()
    for number in range(5):
        trials.run(number, tally)
    assert tally.differences == []
    assert tally.with_changes > 0


@pytest.mark.usefixtures("root")
def test_a_killed_experiment_is_repaired_once(tmp_path: Path) -> None:
    before = FILE.read_text()
    killed(
        lambda state: state.apply({f"sysctl:{NAME}": "2950", f"file:{tmp_path}/x": "new"}),
        tmp_path / "scratch",
    )
    assert (FILE.read_text().strip(), (tmp_path / "x").read_text()) == ("2950", "new")
    assert said() == ["repaired: 2 changes undone of a test, in /somewhere"]
    assert (FILE.read_text(), (tmp_path / "x").exists()) == (before, False)
    assert list(folder().iterdir()) == []
    assert said() == []


@pytest.mark.usefixtures("root")
def test_what_was_left_blocks_an_experiment_that_would_change_it(tmp_path: Path) -> None:
    killed(lambda state: state.apply({f"sysctl:{NAME}": "2950"}), tmp_path / "scratch")
    journal = Journal.begin("the next")
    with pytest.raises(UserError, match="was left changed by an interrupted experiment") as raised:
        State(journal, tmp_path).apply({f"sysctl:{NAME}": "2960"})
    assert raised.value.hint == "sysdock experiment repair"
    assert len(said()) == 1
    State(journal, tmp_path).apply({f"sysctl:{NAME}": "2960"})
    assert State(journal, tmp_path).undo() == []
    journal.close()


def test_a_running_experiment_is_left_alone(tmp_path: Path) -> None:
    journal = Journal.begin("runs")
    State(journal, tmp_path).apply({f"file:{tmp_path}/x": "new"})
    assert said() == []
    assert (tmp_path / "x").exists()
    assert State(journal, tmp_path).undo() == []
    journal.close()


def test_repair_waits_for_a_tool_that_still_runs(tmp_path: Path) -> None:
    tool = tmp_path / "tool"

    def leave_a_tool(state: State) -> None:
        state.apply({f"file:{tmp_path}/x": "new"})
        if not os.fork():
            time.sleep(0.3)
            tool.write_text("done")
            os._exit(0)

    killed(leave_a_tool, tmp_path / "scratch")
    assert not tool.exists()
    assert len(said()) == 1
    assert tool.read_text() == "done"


def test_a_repair_that_is_killed_is_completed_by_the_next(tmp_path: Path) -> None:
    names = [f"{number}.conf" for number in range(40)]
    killed(
        lambda state: state.apply({f"file:{tmp_path}/{name}": "new" for name in names}), tmp_path / "scratch"
    )
    first = in_child(lambda: repair(lambda _: None))
    while (tmp_path / names[-1]).exists():
        pass
    kill(first)
    said()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journals"]
    assert list(folder().iterdir()) == []


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("tool", ["umount", "mount", "losetup"])
def test_a_repair_that_is_killed_while_a_tool_runs_is_completed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    """The tool goes on for a while: the next repair waits for it."""

    def change(state: State) -> None:
        state.file_system("data", "ext4", 32 << 20)
        state.apply({"mount.options:data": "data=journal"})

    def slow_and_killed(*words: str | Path, pass_fds: Sequence[int] = ()) -> str:
        if words[0] != tool:
            return run_tool(*words, pass_fds=pass_fds)
        if not os.fork():
            os.execvp("sh", ["sh", "-c", 'sleep 0.3; exec "$@" 2>/dev/null', "sh", *map(str, words)])
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    killed(change, tmp_path / "scratch")

    def first() -> None:
        for module in ("mounts", "file_systems"):
            monkeypatch.setattr(f"sysdock.experiment.state.{module}.run_tool", slow_and_killed)
        for journal in journals():
            # The lock goes on to the tool, as run_tool passes it.
            taken = Journal.take_over(journal)
            assert taken is not None
            os.set_inheritable(taken.handle, True)
            for number, entry in sorted(taken.written.open.items(), reverse=True):
                undo_one(taken, number, entry)

    assert os.waitstatus_to_exitcode(os.waitpid(in_child(first), 0)[1]) == -signal.SIGKILL
    lines = said()
    assert [line for line in lines if not line.startswith("repaired")] == []
    assert list(tmp_path.iterdir()) == [folder()]
    assert list(folder().iterdir()) == []


def of_earlier_boot(name: str) -> None:
    """As if the machine had been restarted since."""
    path = folder() / name
    head, _, rest = path.read_text().partition("\n")
    path.write_text(json.dumps({**json.loads(head), "boot": "another"}) + "\n" + rest)


@pytest.mark.usefixtures("root")
def test_after_a_restart_settings_are_compared_and_files_put_back(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    name = killed(
        lambda state: state.apply({f"sysctl:{NAME}": "2950", f"file:{tmp_path}/x": "new"}),
        tmp_path / "scratch",
    )
    of_earlier_boot(name)
    # What the machine began with.
    FILE.write_text("2970")
    assert said() == ["repaired: 2 changes undone of a test, in /somewhere"]
    assert FILE.read_text().strip() == "2970"
    FILE.write_text("3000")
    assert (tmp_path / "x").read_text() == "old"


def test_what_somebody_wrote_after_a_restart_stays(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    of_earlier_boot(killed(lambda state: state.apply({f"file:{tmp_path}/x": "new"}), tmp_path / "scratch"))
    (tmp_path / "x").write_text("by hand")
    lines = said()
    assert "not fully repaired" in lines[0]
    assert "changed after the restart" in lines[1]
    assert (tmp_path / "x").read_text() == "by hand"


def test_a_line_that_a_power_cut_tore_is_left_out(tmp_path: Path) -> None:
    name = killed(lambda state: state.apply({f"file:{tmp_path}/x": "new"}), tmp_path / "scratch")
    with open(folder() / name, "a") as file:
        file.write('{"note": 2, "kind": "fi')
    assert said() == ["repaired: 1 change undone of a test, in /somewhere"]
    assert not (tmp_path / "x").exists()


def test_a_damaged_line_is_named_and_the_rest_undone(tmp_path: Path) -> None:
    name = killed(lambda state: state.apply({f"file:{tmp_path}/x": "new"}), tmp_path / "scratch")
    with open(folder() / name, "a") as file:
        file.write('nonsense\n{"note": 2, "kind": "magic", "target": "x"}\n')
    lines = said()
    assert lines[0].startswith("not fully repaired: 1 change undone of a test, in /somewhere, 2 left")
    assert f"{name}:3" in "".join(lines)
    assert not (tmp_path / "x").exists()
    assert (folder() / name).exists()


def test_a_journal_without_a_head_is_named_and_others_are_repaired(tmp_path: Path) -> None:
    killed(lambda state: state.apply({f"file:{tmp_path}/x": "new"}), tmp_path / "scratch")
    (folder() / "0-2-3.journal").write_text("nonsense\n")
    lines = said()
    assert lines[0] == "repaired: 1 change undone of a test, in /somewhere"
    assert lines[1].startswith(f"not repaired: {folder()}/0-2-3.journal: not a journal")


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("key", ["what", "pid", "start", "boot"])
@pytest.mark.parametrize("value", [None, [], 1.5, {"a": 1}])
def test_a_damaged_head_is_an_error_with_a_hint(tmp_path: Path, key: str, value: object) -> None:
    Journal.begin("a test")
    [path] = folder().glob("*.journal")
    head, _, rest = path.read_text().partition("\n")
    path.write_text(json.dumps({**json.loads(head), key: value}) + "\n" + rest)
    unreadable: list[UserError] = []
    assert list(journals(unreadable)) == []
    assert [(error.place, bool(error.hint)) for error in unreadable] == [(str(path), True)]
    assert [done.complete for done in repair(lambda _: None)] == [False]


@pytest.mark.parametrize(
    "line", ['{"undone": [1]}', '{"undone": {}}', '{"note": true, "kind": "value"}', "[" * 9000]
)
def test_a_line_of_another_type_is_named(tmp_path: Path, line: str) -> None:
    name = killed(
        lambda state: state.journal.note({"kind": "folder", "target": str(tmp_path / "x")}), tmp_path
    )
    with open(folder() / name, "a") as file:
        file.write(f"{line}\n")
    assert [done.complete for done in repair(lambda _: None)] == [False]


def test_the_verb_says_by_its_status_whether_all_is_undone(tmp_path: Path) -> None:
    def status() -> int:
        return CliRunner().invoke(sysdock, ["experiment", "repair"]).exit_code

    assert status() == 0
    killed(lambda state: state.journal.note({"kind": "folder", "target": str(tmp_path / "x")}), tmp_path)
    assert status() == 0
    name = killed(lambda state: state.journal.note({"kind": "nothing", "target": "x"}), tmp_path)
    assert status() == 1
    (folder() / name).unlink()


def test_journals_that_others_may_write_are_not_followed() -> None:
    folder().mkdir()
    for mode, owner in ((0o777, 0), (0o700, 65534)):
        os.chmod(folder(), mode)
        os.chown(folder(), owner, owner)
        with pytest.raises(UserError, match="other users may write to the folder of undo journals"):
            said()
        with pytest.raises(UserError, match="other users may write to the folder of undo journals"):
            Journal.begin("x")


@pytest.mark.usefixtures("root")
def test_after_a_restart_a_file_is_gone_with_the_file_system_of_the_experiment(tmp_path: Path) -> None:
    def change(state: State) -> None:
        point = state.file_system("data", "ext4", 32 << 20)
        (point / "x").write_text("old")
        state.apply({f"file:{point}/x": "new"})

    name = killed(change, tmp_path / "scratch")
    point = tmp_path / "scratch" / "data"
    # What a restart does.
    device = next(mount.device for mount in mounts() if mount.point == str(point))
    run_tool("umount", point)
    run_tool("losetup", "--detach", device)
    of_earlier_boot(name)
    assert said() == ["repaired: 4 changes undone of a test, in /somewhere"]
    assert not (tmp_path / "scratch").exists()


def test_a_journal_that_was_being_begun_is_removed() -> None:
    folder().mkdir()
    (folder() / "1-2-3.journal.new").write_text("")
    assert said() == []
    assert list(folder().iterdir()) == []


def test_what_is_noted_is_on_the_disk_and_goes_when_undone(tmp_path: Path) -> None:
    journal = Journal.begin("x")
    number = journal.note({"kind": "folder", "target": str(tmp_path / "made")})
    (written,) = journals()
    assert (written.open, written.is_alive) == (
        {number: {"kind": "folder", "target": str(tmp_path / "made")}},
        True,
    )
    journal.undone(number)
    (written,) = journals()
    assert written.open == {}
    journal.close()
    journal.close()
    assert list(journals()) == []


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal.begin("x")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (journal.path.stat().st_size + 10, limits[1]))
    try:
        with pytest.raises(UserError, match="nothing was changed"):
            State(journal, tmp_path).apply({f"file:{tmp_path}/x": "new"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert not (tmp_path / "x").exists()
    State(journal, tmp_path).apply({f"file:{tmp_path}/x": "new"})
    assert State(journal, tmp_path).undo() == []
    journal.close()
    assert list(folder().iterdir()) == []
