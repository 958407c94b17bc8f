"""Questions about dumps as scripts, the API that they use, and the shell in which they begin."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from made_dumps import MadeDump
from sysdock.analysis import Session
from sysdock.cli import sysdock
from sysdock.dump import Dump, Rows
from sysdock.dump.connection import Connection
from sysdock.dump.running import MOST_ROWS, bound, missing, run_script, run_scripts
from sysdock.dump.shell import Shell, run_shell
from sysdock.errors import UserError
from sysdock.library import DumpScript, Library
from sysdock.recording import Recording

VERSIONS = ["6.1", "6.12"]
HEADER = "# A question\n# column: number BIGINT   A number.\n# column: word VARCHAR   A word.\n"


@pytest.fixture
def call() -> Callable[..., Result]:
    """Runs `sysdock` with these words."""
    return lambda *words: CliRunner().invoke(sysdock, [str(word) for word in words])


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., DumpScript]:
    """Writes a script whose function has this body."""

    def write(body: str, header: str = HEADER) -> DumpScript:
        folder = tmp_path / "pack" / "dumps"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "own.py").write_text(f"{header}\n\ndef run(dump):\n{body}\n")
        return Library(folder.parent).dump_script("own")

    return write


@pytest.fixture(params=VERSIONS)
def opened(request: pytest.FixtureRequest, dumps: dict[str, MadeDump]) -> Iterator[tuple[MadeDump, Dump]]:
    """A dump of each kernel, and what its guest said."""
    made = dumps[request.param]
    with Dump.open(made.core) as dump:
        yield made, dump


class TestApi:
    def test_members_are_those_of_proc(self, opened: tuple[MadeDump, Dump]) -> None:
        made, dump = opened
        every = dump.list(
            "task_struct", dump.symbol("init_task") + dump.offset("task_struct", "tasks"), "tasks"
        )
        found = dump.read("task_struct", every, "pid", "comm", "mm->total_vm", parent="real_parent->pid")
        assert found.columns == ("address", "pid", "comm", "total_vm", "parent", "status")
        assert set(found["status"]) == {"ok"}
        known = {pid for pid, name in made.files if name == "stat" and pid}
        assert set(found["pid"]) <= known
        # The list has processes only; the others are their threads.
        assert set(found["pid"]) == {task.pid for task in dump.tasks() if task.pid and task.pid == task.tgid}
        for row in found:
            stat = made.files[row.pid, "stat"]
            assert stat[stat.index("(") + 1 : stat.rindex(")")].startswith(row.comm.partition("/")[0])
            assert int(stat[stat.rindex(")") + 2 :].split()[1]) == row.parent
            # Threads of the kernel have no memory of their own: a null pointer on the way.
            size = int(stat[stat.rindex(")") + 2 :].split()[20])
            assert (row.total_vm or 0) * 4096 == size or row.pid == 1

    def test_a_value_has_the_type_of_its_member(self, opened: tuple[MadeDump, Dump]) -> None:
        _, dump = opened
        init = dump.symbol("init_task")
        row = dump.read(
            "task_struct",
            init,
            *("pid", "comm", "prio", "in_execve", "se", "cpus_mask.bits", "real_parent"),
            first="cpus_mask.bits[0]",
        )[0]
        assert (row.pid, row.comm, row.prio, row.in_execve) == (0, "swapper/0", 120, 0)
        assert row.se == init + dump.offset("task_struct", "se")
        assert row.bits[0] == row.first
        # The idle task of the first processor runs nowhere else.
        assert row.first == 1
        assert row.real_parent == init

    def test_a_list_and_a_tree_of_ids_agree(self, opened: tuple[MadeDump, Dump]) -> None:
        _, dump = opened
        ids = dump.xarray(dump.symbol("init_pid_ns") + dump.offset("pid_namespace", "idr"))
        assert set(ids["status"]) == {"ok"}
        numbers = dump.read("pid", ids, number="numbers[0].nr")
        assert numbers["number"] == ids["index"]
        tasks = {task.pid for task in dump.tasks() if task.pid}
        assert tasks <= set(ids["index"])

    def test_a_walk_follows_a_pointer(self, opened: tuple[MadeDump, Dump]) -> None:
        made, dump = opened
        burner = made.started["burner"][0]
        [address] = [task.address for task in dump.tasks() if task.pid == burner]
        # The idle task is its own parent.
        way = dump.walk("task_struct", address, "real_parent")
        assert dump.read("task_struct", way, "pid")["pid"] == [burner, 1, 0]
        assert way["status"] == ["ok", "ok", "ok", "cycle"]

    def test_what_cannot_be_read_is_a_status(self, opened: tuple[MadeDump, Dump]) -> None:
        _, dump = opened
        found = dump.read("task_struct", [0, 5, 1 << 63], "pid", "comm")
        assert found["status"] == ["not mapped"] * 3
        assert found["pid"] == [None] * 3
        assert dump.list("task_struct", 64, "tasks")["status"] == ["not mapped"]
        assert dump.bytes(64, 8) is None
        assert dump.text(64) is None
        assert dump.function(64) is None

    def test_mistakes_name_what_is_near(self, opened: tuple[MadeDump, Dump]) -> None:
        _, dump = opened
        with pytest.raises(UserError, match="no member `comn`") as error:
            dump.read("task_struct", 0, "comn")
        assert "comm" in (error.value.hint or "")
        with pytest.raises(UserError, match="no structure `task_strukt`") as error:
            dump.type("task_strukt")
        assert "task_struct" in (error.value.hint or "")
        for path, words in {
            "mm.pgd": "is a pointer: follow it",
            "pid->x": "is not a pointer",
            "pid[0]": "is not an array",
            "comm[x]": "is not an element number",
            "comm[1": "without",
            "pid,comm": "cannot be understood",
        }.items():
            with pytest.raises(UserError, match=words):
                dump.read("task_struct", 0, path)
        with pytest.raises(UserError, match="no symbol `nothing`"):
            dump.symbol("nothing")
        with pytest.raises(UserError, match="not a question"):
            dump._connection.ask("nonsense")

    def test_memory_of_users_is_shown_only_where_it_was_asked_for(self, dumps: dict[str, MadeDump]) -> None:
        # A text of the guest's program, which lies in no structure of the kernel.
        core, text = dumps["6.12"].core, b"userfaultfd"
        with Dump.open(core) as dump, Dump.open(core, user_memory=True) as open_dump:
            hidden = {row.physical for row in dump.search(text)}
            shown = {row.physical for row in open_dump.search(text)}
            assert hidden < shown
            place = min(shown - hidden)
            address = next(row.address for row in open_dump.search(text) if row.physical == place)
            assert dump.bytes(address, len(text)) is None
            assert open_dump.bytes(address, len(text)) == text
            banner = dump.bytes("linux_banner", 14)
            assert banner == b"Linux version "
            assert place not in {row.physical for row in dump.search(text)}

    def test_a_search_crosses_pages(self, dumps: dict[str, MadeDump]) -> None:
        with Dump.open(dumps["6.12"].core, user_memory=True) as dump:
            # The image of the kernel is one piece of physical memory.
            across = dump.bytes((dump.symbol("_stext") | 4095) - 7, 16)
            assert across is not None
            assert 4096 - 8 in {row.physical % 4096 for row in dump.search(across)}

    def test_no_dump_is_said_at_once(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match="No such file"):
            Dump.open(tmp_path / "none")
        (tmp_path / "text").write_text("no dump at all, only text")
        with pytest.raises(UserError, match="neither an ELF core nor a dump"):
            Dump.open(tmp_path / "text")


class TestModules:
    def test_stacks_go_through_them(self, opened: tuple[MadeDump, Dump]) -> None:
        made, dump = opened
        [seeker] = dump.tasks().where(lambda task: task.pid in made.started["seeker"])
        assert made.files[seeker.pid, "wchan"].strip() == seeker.wait_function == "autofs_wait"
        [stack] = dump.stacks().where(lambda stack: stack.stack_id == seeker.stack_id)
        frames = stack.frames.split(" < ")
        assert frames[2:4] == ["autofs_wait [autofs4]", "autofs_mount_wait [autofs4]"]
        assert frames[-1] == "entry_SYSCALL_64_after_hwframe"
        assert stack.status == "ok"

    def test_their_types_are_found(self, opened: tuple[MadeDump, Dump]) -> None:
        _, dump = opened
        [address] = [mount for mount in superblocks(dump) if mount]
        # The pipe to the daemon, in a structure that only the module knows, of types of the kernel.
        found = dump.read("autofs_sb_info", address, "magic", "max_proto", "pipe->f_mode", "wq_mutex")[0]
        assert (found.magic, found.max_proto, found.status) == (0x6D4A556D, 5, "ok")
        assert found.f_mode & 3 == 2
        assert dump.offset("autofs_sb_info", "wq_mutex.wait_list") > dump.offset("autofs_sb_info", "wq_mutex")


def superblocks(dump: Dump) -> list[int]:
    """Where a file system of kind autofs keeps what it knows."""
    every = dump.list("super_block", "super_blocks", "s_list")
    found = dump.read("super_block", every, "s_fs_info", kind="s_type->name")
    return [row.s_fs_info for row in found if dump.text(row.kind) == "autofs"]


class TestRows:
    ROWS = Rows(("pid", "class", "run_ns"), [(1, "a", 5), (2, "b", None), (3, "c", 1)])

    def test_columns_and_rows(self) -> None:
        assert self.ROWS["pid"] == [1, 2, 3]
        assert self.ROWS[0].pid == 1
        assert self.ROWS[0].class_ == "a"
        assert [row.pid for row in self.ROWS.sorted("run_ns")] == [3, 1, 2]
        assert [row.pid for row in self.ROWS.sorted("run_ns", reverse=True)] == [1, 3, 2]
        assert self.ROWS.where(lambda row: row.pid > 1)["pid"] == [2, 3]
        assert len(self.ROWS[1:]) == 2
        with pytest.raises(KeyError, match="the columns are pid, class, run_ns"):
            self.ROWS["nothing"]

    def test_they_are_shown_as_a_table(self) -> None:
        assert repr(self.ROWS).splitlines() == [
            "pid  class   run",
            "  1  a      5 ns",
            "  2  b         -",
            "  3  c      1 ns",
        ]
        many = Rows(("n",), [(number,) for number in range(100)])
        assert repr(many).splitlines()[-1] == "40 more rows"


# A body, the rows that are kept, and why it stopped.
STOPPED = {
    "ends": ("    yield 1, 'x'\n    yield {'word': 'y'}", [[1, "x"], [None, "y"]], None),
    "gives rows of the API": (
        "    return Rows(('word', 'number', 'more'), [('x', 1, 5)])",
        [[1, "x"]],
        None,
    ),
    "gives nothing": ("    return None", [], None),
    "prints": ("    print('hello')\n    yield 1, 'x'", [[1, "x"]], None),
    "goes on for ever": (
        "    yield 1, 'x'\n    while True:\n        pass",
        [[1, "x"]],
        "more time than allowed (1 s)",
    ),
    "catches everything": (
        "    yield 1, 'x'\n    while True:\n        try:\n            while True:\n                pass\n"
        "        except BaseException:\n            pass",
        [],
        "killed: more time or memory than allowed",
    ),
    "takes all memory": (
        "    yield 1, 'x'\n    taken = []\n    while True:\n        taken.append(bytearray(1 << 26))",
        [[1, "x"]],
        "more memory than allowed (1024 MB)",
    ),
    "makes a mistake": (
        "    yield 1, 'x'\n    1 / 0",
        [[1, "x"]],
        "line 8: ZeroDivisionError: division by zero",
    ),
    "is not Python": ("    yield 1 +", [], "not Python: invalid syntax"),
    "gives text for a number": (
        "    yield 1, 'x'\n    yield 'a', 'b'",
        [[1, "x"]],
        "row 2: column number is BIGINT, not 'a'",
    ),
    "gives too few values": ("    yield 1,", [], "a row is not 2 values: (1,)"),
    "gives a column that is not there": ("    yield {'other': 1}", [], "no column `other` is described"),
    "gives an address": ("    yield (1 << 64) - 5, 'x'", [[-5, "x"]], None),
    "gives a number that is too large": (
        "    yield 1 << 64, 'x'",
        [],
        "row 1: column number is BIGINT, not '18446744073709551616'",
    ),
    "reads a file": (
        "    open('/etc/passwd')",
        [],
        "line 7: PermissionError: [Errno 13] Permission denied: '/etc/passwd'",
    ),
    "writes a file": (
        "    open('/tmp/x', 'w')",
        [],
        "line 7: PermissionError: [Errno 13] Permission denied: '/tmp/x'",
    ),
    "runs a program": (
        "    import subprocess\n    subprocess.run(['/bin/true'])",
        [],
        "line 8: PermissionError: [Errno 13] Permission denied: '/bin/true'",
    ),
    "asks for nothing that is there": ("    dump.symbol('nothing')", [], "no symbol `nothing`"),
    "leaves": ("    import os\n    os._exit(3)", [], "exit status 3"),
}


@pytest.mark.guest
class TestIsolation:
    @pytest.mark.parametrize("name", STOPPED)
    def test_a_script_that(
        self, name: str, script: Callable[..., DumpScript], dumps: dict[str, MadeDump]
    ) -> None:
        body, rows, stopped = STOPPED[name]
        # Only those that do not end by themselves are to wait for their end.
        seconds = 1 if "time" in (stopped or "") else 60
        found = run_script(script(body), dumps["6.12"].core, {}, seconds=seconds)
        assert found.rows == rows
        assert found.stopped == stopped

    def test_the_network_is_cut_off(
        self, script: Callable[..., DumpScript], dumps: dict[str, MadeDump]
    ) -> None:
        body = (
            "    import socket\n    names = [name for _, name in socket.if_nameindex()]\n"
            "    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:\n"
            "        try:\n            out.sendto(b'x', ('127.0.0.1', 9))\n"
            "        except OSError as error:\n            yield len(names), type(error).__name__"
        )
        found = run_script(script(body), dumps["6.12"].core, {}, seconds=600)
        assert found.stopped is None
        assert found.rows == [[1, "OSError"]]

    def test_a_table_without_end_is_cut(
        self, script: Callable[..., DumpScript], dumps: dict[str, MadeDump]
    ) -> None:
        found = run_script(
            script("    while True:\n        yield 1, 'x'"), dumps["6.12"].core, {}, seconds=600
        )
        assert len(found.rows) == MOST_ROWS
        assert found.stopped == f"more than {MOST_ROWS} rows"


class TestRun:
    @pytest.mark.parametrize("version", VERSIONS)
    def test_shipped_questions_agree_with_the_truth(
        self, version: str, dumps: dict[str, MadeDump], call: Callable[..., Result]
    ) -> None:
        done = call("dump", "test", dumps[version].folder)
        assert done.exit_code == 0, done.output
        assert " 0 failed" in done.output.splitlines()[-1]

    def test_a_truth_that_does_not_hold_is_a_failure(
        self, dumps: dict[str, MadeDump], call: Callable[..., Result], tmp_path: Path
    ) -> None:
        made = dumps["6.1"]
        (tmp_path / "core").symlink_to(made.core)
        text = (made.folder / "truth.log").read_text()
        (tmp_path / "truth.log").write_text(text.replace("pipe_read", "pipe_write"))
        done = call("dump", "test", "stacks-grouped", tmp_path)
        assert done.exit_code == 1
        assert "FAILED   stacks-grouped" in done.output
        assert "pipe_read, pipe_write" in done.output

    def test_a_question_has_its_table_and_its_analysis(
        self, dumps: dict[str, MadeDump], call: Callable[..., Result], tmp_path: Path
    ) -> None:
        words = ("-p", "structure=module", "-p", "head=modules", "-p", "member=list", "-p", "show=name")
        done = call("dump", "run", "list-find", dumps["6.12"].core, "-o", tmp_path / "rec", *words)
        assert done.exit_code == 0, done.output
        assert "list-find: 2 rows; sysdock show" in done.output
        shown = call("show", tmp_path / "rec", "dump/list_find", "--format", "json")
        rows = json.loads(shown.output)
        assert [row["place"] for row in rows] == [0, 1]
        assert {row["members"] for row in rows} == {"name=autofs4", "name=qemu_fw_cfg"}
        assert {row["status"] for row in rows} == {"ok"}

    def test_parameters_are_checked_before_the_dump_is_read(
        self, dumps: dict[str, MadeDump], call: Callable[..., Result], tmp_path: Path
    ) -> None:
        core = dumps["6.1"].core
        for words, said in {
            ("find-text",): "find-text needs the parameter `text`",
            ("find-text", "-p", "txt=a"): "no parameter `txt`",
            ("ps-cpu", "-p", "text=a"): "these questions have none",
            ("ps-cpu", "--all"): "--all and questions",
            ("ps-cpus",): "did you mean ps-cpu or cpu-use?",
        }.items():
            names = [word for word in words if not word.startswith(("-p", "text=", "txt=", "--"))]
            options = [word for word in words if word not in names]
            done = call("dump", "run", *names, core, "-o", tmp_path / "rec", *options)
            assert isinstance(done.exception, UserError), done.output
            assert said in str(done.exception)
            assert not (tmp_path / "rec").exists()

    def test_a_question_without_tasks_is_answered(
        self, dumps: dict[str, MadeDump], call: Callable[..., Result], tmp_path: Path
    ) -> None:
        done = call("dump", "run", "log-tail", dumps["6.1"].core, "-o", tmp_path / "rec")
        assert done.exit_code == 0, done.output
        assert "does not exist" not in done.output
        assert f"log-tail: sysdock show {tmp_path / 'rec'} dump/log" in done.output

    def test_somebody_elses_script_is_run_only_with_trust(
        self,
        script: Callable[..., DumpScript],
        dumps: dict[str, MadeDump],
        call: Callable[..., Result],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        pack = script("    yield 1, 'x'\n    1 / 0").path.parents[1]
        monkeypatch.setenv("SYSDOCK_KNOWHOW", str(pack))
        words = ("dump", "run", "own", dumps["6.1"].core, "-o", tmp_path / "rec")
        refused = call(*words)
        assert isinstance(refused.exception, UserError)
        assert "does not come with sysdock" in str(refused.exception)
        done = call(*words, "--trust")
        assert done.exit_code == 0, done.output
        monkeypatch.delenv("SYSDOCK_KNOWHOW")
        with Session(Recording.open(tmp_path / "rec"), Library()) as session:
            assert session.fetch("SELECT name, rows, status FROM dump_scripts") == [
                ("own", 1, "line 8: ZeroDivisionError: division by zero")
            ]
            [finding] = [each for each in session.diagnose() if each.rule == "dump/script_stopped"]
            assert (finding.subject, finding.status) == ("own", "finding")

    def test_what_a_kernel_lacks_is_said(
        self, script: Callable[..., DumpScript], opened: tuple[MadeDump, Dump]
    ) -> None:
        _, dump = opened
        header = HEADER + "# needs: types, init_task, task_struct.comm, task_struct.nothing, no_symbol\n"
        assert missing(script("    yield 1, 'x'", header), dump) == ["task_struct.nothing", "no_symbol"]

    def test_a_list_says_what_each_needs(
        self, dumps: dict[str, MadeDump], call: Callable[..., Result]
    ) -> None:
        done = call("dump", "list", dumps["6.1"].core, "--format", "json")
        rows = {row["question"]: row for row in json.loads(done.output)}
        assert rows["workqueues"]["lacks"] is None
        assert rows["list-find"]["parameters"] == "structure, head, member, show"


class TestNew:
    def test_a_new_script_works_as_it_is(
        self,
        dumps: dict[str, MadeDump],
        call: Callable[..., Result],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        pack = tmp_path / "pack"
        assert call("dump", "new", "thread-count", "--into", pack).exit_code == 0
        assert call("check", "--bless", pack / "dumps").exit_code == 0
        assert call("check", pack / "dumps").exit_code == 0
        monkeypatch.setenv("SYSDOCK_KNOWHOW", str(pack))
        done = call("dump", "run", "thread-count", dumps["6.1"].core, "-o", tmp_path / "rec", "--trust")
        assert done.exit_code == 0, done.output
        shown = json.loads(call("show", tmp_path / "rec", "dump/thread_count", "--format", "json").output)
        made = dumps["6.1"]
        threads = {row["pid"]: row["threads"] for row in shown}
        for pid in made.started["burner"]:
            assert threads[pid] == 1
        again = call("dump", "new", "thread-count", "--into", pack)
        assert "already exists" in str(again.exception)
        assert "not a name" in str(call("dump", "new", "Bad_Name", "--into", pack).exception)


class TestShell:
    @pytest.fixture
    def shell(self, dumps: dict[str, MadeDump], tmp_path: Path) -> Iterator[Shell]:
        with Dump.open(dumps["6.1"].core) as dump:
            yield Shell(dump, Library(), tmp_path / "pack", trust=False)

    def test_what_was_tried_becomes_a_script(
        self, shell: Shell, dumps: dict[str, MadeDump], capsys: pytest.CaptureFixture[str]
    ) -> None:
        for line in (
            "waiting = tasks().where(lambda task: task.state == 'D')",
            "waiting[:1]",
            "1 / 0",
            "dump.symbol('nothing')",
            "read('task_struct', waiting, 'pid', 'comm')",
            "%keep waiting-tasks",
        ):
            shell.push(line)
        said = capsys.readouterr().err
        assert "ZeroDivisionError" in said
        assert "no symbol `nothing`\n" in said
        kept = Library(shell.into).dump_script("waiting-tasks")
        assert kept.code.splitlines() == [
            "def run(dump):",
            "    tasks = dump.tasks",
            "    read = dump.read",
            "    waiting = tasks().where(lambda task: task.state == 'D')",
            "    return read('task_struct', waiting, 'pid', 'comm')",
        ]
        made = dumps["6.1"]
        found = run_script(kept, made.core, {})
        wanted = {pid for name, pids in made.started.items() for pid in pids if name.startswith("chain-")}
        assert {row[1] for row in found.rows} >= wanted - {made.started["chain-head"][0]}
        assert found.stopped is None

    def test_questions_are_asked(self, shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
        shell.push("%lock-graph")
        assert "chain" not in capsys.readouterr().out
        assert [row.kind for row in shell.locals["_"]].count("mutex") == 5
        shell.push("%list-find structure=module head=modules member=list show=name")
        assert sorted(shell.locals["_"]["members"]) == ["name=autofs4", "name=qemu_fw_cfg"]
        capsys.readouterr()
        for line, said in {
            "%": "no question",
            "%nothing": "there is no question `nothing`",
            "%find-text": "needs the parameter `text`",
            "%keep": "%keep takes a name",
            "%keep name": "gives no rows",
        }.items():
            shell.push(line)
            assert said in capsys.readouterr().err

    def test_it_reads_a_pipe(
        self, shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("len(dump.locks())\n%list\n"))
        run_shell(shell.dump, shell.library, shell.into, trust=False)
        said = capsys.readouterr()
        assert ">>> 9\n" in said.out
        assert "Who waits for which lock" in said.err


class TestHeaders:
    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("def run(dump):\n    pass\n", "the first line is not a title"),
            ("# T\n# cost: huge\n# column: a BIGINT A.\ndef run(dump):\n    pass\n", "unknown cost huge"),
            ("# T\n# column: a BIGINT A.\n", "it needs `column:` lines and a function `run`"),
            ("# T\ndef run(dump):\n    pass\n", "it needs `column:` lines and a function `run`"),
            ("# T\n", "it needs `column:` lines and a function `run`"),
            ("# T\n# reads: tasks\n", "unknown header key `reads`"),
            ("# T\n# columns: a BIGINT A.\n", "unknown header key `columns`"),
        ],
    )
    def test_a_mistake_has_a_place(self, tmp_path: Path, text: str, said: str) -> None:
        (tmp_path / "dumps").mkdir()
        (tmp_path / "dumps" / "own.py").write_text(text)
        with pytest.raises(UserError, match=said) as error:
            Library(tmp_path).dump_scripts()
        assert "own.py:" in (error.value.place or "")

    def test_values_of_parameters_are_converted(self, script: Callable[..., DumpScript]) -> None:
        header = HEADER + "# param: at BIGINT = NULL   Where.\n# param: times INTEGER = 3   How often.\n"
        own = script("    yield 1, 'x'", header)
        assert bound([own], {"at": "0xffffffff82000000"}) == {"own": {"at": 0xFFFFFFFF82000000, "times": 3}}
        with pytest.raises(UserError, match="`x` is not a INTEGER"):
            bound([own], {"at": "1", "times": "x"})


@pytest.mark.guest
def test_a_reader_that_is_killed_is_said(dumps: dict[str, MadeDump]) -> None:
    connection = Connection(dumps["6.12"].core)
    connection._process.kill()
    connection._process.wait()
    with pytest.raises(UserError, match="the reader of the dump ended"):
        connection.ask("info")


def test_a_kernel_that_cannot_tell_user_pages_is_asked_with_them(
    script: Callable[..., DumpScript], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def connect(_core: Path, options: object = None) -> Connection:
        asked.append(options)
        raise UserError("it ended")

    monkeypatch.setattr("sysdock.dump.running.Connection", connect)
    with pytest.raises(UserError):
        list(run_scripts([script("    yield 1")], Path("core"), {"own": {}}, user_memory=True))
    assert asked == [{"user_memory": True}]
