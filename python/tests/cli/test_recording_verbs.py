"""`run` and `import`, with the real native program."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from make_recording import RecordingMaker
from sampling import some
from sysdock.cli.progress import progress_text
from sysdock.cli.recording import add_scan
from sysdock.errors import UserError
from sysdock.recording.native import NAME, find_native
from sysdock.text import width
from waiting import unread, wait_for

LOG = """\
1 1700000000.000000 execve("/bin/cat", ["cat", "/tmp/a"], 0x7ffe /* 3 vars */) = 0 <0.000100>
1 1700000000.001000 openat(AT_FDCWD</tmp>, "a", O_RDONLY) = 3</tmp/a> <0.000020>
1 1700000000.002000 read(3</tmp/a>, "x"..., 4096) = 100 <0.000010>
1 1700000000.003000 close(3</tmp/a>) = 0 <0.000005>
1 1700000000.004000 +++ exited with 0 +++
"""

pytestmark = pytest.mark.usefixtures("native")
needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


def assert_one_screen(text: str) -> None:
    lines = text.rstrip("\n").split("\n")
    assert len(lines) <= 24
    assert max(map(width, lines)) <= 100


def answers(number: int) -> list[str]:
    """A command that says when it gets this signal, and ends a second after the first time, or after ten minutes."""
    script = (
        "import os, signal, time\nend = time.monotonic() + 600\n"
        "def got_it(*_):\n    global end\n    os.write(1, b'got it ')\n    end = time.monotonic() + 1\n"
        f"signal.signal({int(number)}, got_it)\nos.write(1, b'ready\\n')\n"
        "while time.monotonic() < end: time.sleep(0.01)\nos._exit(5)"
    )
    return [sys.executable, "-S", "-c", script]


class TestImport:
    """`sysdock import`."""

    def test_an_answer_on_standard_output(self, cli, tmp_path: Path) -> None:
        (tmp_path / "a.log").write_text(LOG)
        done = cli("import", "a.log", "-o", "rec")
        assert (done.returncode, done.stderr) == (0, "")
        assert_one_screen(done.stdout)
        assert "100 % of 5 lines understood" in done.stdout
        assert "/tmp/a" in done.stdout
        assert "Next: sysdock diagnose rec" in done.stdout
        assert "   sysdock report rec\n" in done.stdout
        assert not (tmp_path / "rec" / "report.html").exists()
        told = json.loads(cli("info", "rec", "--format", "json").stdout)
        assert (told["lines_total"], told["lines_understood"], told["complete"]) == (5, 5, True)
        assert told["kind"] == "calls"

    def test_with_a_report_at_once(self, cli, tmp_path: Path) -> None:
        (tmp_path / "a.log").write_text(LOG)
        done = cli("import", "a.log", "-o", "rec", "--report")
        assert "Report: rec/report.html" in done.stdout
        assert (tmp_path / "rec" / "report.html").exists()

    def test_in_japanese(self, cli, tmp_path: Path) -> None:
        (tmp_path / "a.log").write_text(LOG)
        done = cli("import", "a.log", "-o", "rec", "--lang", "ja")
        assert_one_screen(done.stdout)
        assert "行のうち 100 % を解釈" in done.stdout

    def test_standard_input(self, cli, tmp_path: Path) -> None:
        done = cli("import", "-", "-o", "rec", input=LOG)
        assert done.returncode == 0
        assert "100 % of 5 lines" in done.stdout

    def test_an_existing_folder_is_left_alone(self, cli, tmp_path: Path) -> None:
        (tmp_path / "a.log").write_text(LOG)
        (tmp_path / "rec").mkdir()
        (tmp_path / "rec" / "precious").write_text("x")
        done = cli("import", "a.log", "-o", "rec")
        assert (done.returncode, done.stdout) == (2, "")
        assert "rec: already exists" in done.stderr
        assert [path.name for path in (tmp_path / "rec").iterdir()] == ["precious"]

    @pytest.mark.parametrize("log", ["nowhere.log", "."])
    def test_what_cannot_be_read(self, cli, tmp_path: Path, log: str) -> None:
        done = cli("import", log, "-o", "rec")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("sysdock: ")
        assert "hint: " in done.stderr
        assert not (tmp_path / "rec").exists()

    def test_it_does_not_end_while_the_engine_is_being_loaded(self, cli, tmp_path: Path) -> None:
        # Modules in the current folder come first (-m): this engine takes its time, and cannot be cut short.
        engine = "import time\ntime.sleep(0.5)\nopen('loaded', 'w').close()\nraise ImportError\n"
        (tmp_path / "_duckdb.py").write_text(engine)
        assert cli.process("import", "nowhere.log", "-o", "rec").returncode == 2
        assert (tmp_path / "loaded").exists()

    def test_a_missing_know_how_folder_is_one_error(self, cli, tmp_path: Path) -> None:
        (tmp_path / "a.log").write_text(LOG)
        done = cli("import", "a.log", "-o", "rec", env={"SYSDOCK_KNOWHOW": "nowhere"})
        assert done.returncode == 0, "the recording is there"
        assert done.stderr.splitlines()[-3:] == [
            "sysdock: nowhere: no such know-how folder",
            "",
            "hint: set SYSDOCK_KNOWHOW to the folder that holds analyses, rules, charts and tables",
        ]
        assert "Traceback" not in done.stderr

    def test_odd_file_names(self, cli, tmp_path: Path) -> None:
        # strace writes < and > in names as octal numbers.
        (tmp_path / "a.log").write_text(LOG.replace("/tmp/a>", "/tmp/\\74script\\76\\n'\\\"|>"))
        assert cli("import", "a.log", "-o", "rec").returncode == 0
        rows = json.loads(
            cli("query", "rec", "SELECT path FROM calls WHERE call = 'read'", "--format", "json").stdout
        )
        assert rows == [{"path": "/tmp/<script>\n'\"|"}]

    def test_an_interrupted_import_can_be_read(self, cli, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        importing = cli.start("import", "pipe", "-o", "rec", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # Opened for both, so that it does not wait for an importer that failed.
        with os.fdopen(os.open(tmp_path / "pipe", os.O_RDWR), "w") as pipe:
            for number in range(2000):
                pipe.write(f'1 {1700000000 + number}.000000 read(3</tmp/a>, "x"..., 9) = 9 <0.000010>\n')
            pipe.flush()
            wait_for(lambda: unread(pipe.fileno()) == 0, "the import")
            importing.send_signal(signal.SIGINT)
            _, said = importing.communicate(timeout=600)
        assert importing.returncode == 130
        assert "interrupted; what was read so far is in rec" in said
        told = json.loads(cli("info", "rec", "--format", "json").stdout)
        assert (told["complete"], told["ended_by"]) == (False, "interrupted")
        rows = json.loads(cli("show", "rec", "io/summary", "--format", "json").stdout)
        assert rows[0]["calls"] > 0


@needs_strace
class TestRun:
    """`sysdock run`."""

    def test_streams_and_status_are_the_commands(self, cli, tmp_path: Path) -> None:
        done = cli("run", "-o", "rec", "--", "sh", "-c", "cat; echo err >&2; exit 7", input="in\n")
        assert done.returncode == 7
        assert done.stdout == "in\n"
        command_said, answer = done.stderr.split("\n", 1)
        assert command_said == "err"
        assert_one_screen(answer)
        assert "Next: sysdock diagnose rec" in answer
        told = json.loads(cli("info", "rec", "--format", "json").stdout)
        assert (told["exit_code"], told["complete"]) == (7, True)

    def test_the_default_name(self, cli, tmp_path: Path) -> None:
        done = cli("run", "true")
        assert done.returncode == 0
        [folder] = [path for path in tmp_path.iterdir() if path.is_dir()]
        assert re.fullmatch(r"sysdock-true-\d{8}-\d{6}", folder.name)
        assert f"recorded in {folder.name}" in done.stderr

    def test_options_of_the_command_are_its_own(self, cli) -> None:
        done = cli("run", "-o", "rec", "echo", "-o", "--help", "--lang")
        assert done.stdout == "-o --help --lang\n"

    def test_a_command_that_does_not_exist(self, cli, tmp_path: Path) -> None:
        done = cli("run", "-o", "rec", "--", "no-such-command")
        assert (done.returncode, done.stdout) == (2, "")
        assert "no-such-command" in done.stderr
        assert not (tmp_path / "rec").exists()

    @pytest.mark.parametrize("number", some([signal.SIGHUP, signal.SIGINT], 2))
    def test_what_is_ignored_stays_so(self, cli, number: signal.Signals) -> None:
        """Below nohup(1), or in the background of a script."""
        command = ("sh", "-c", f"kill -{number.name[3:]} $PPID $$; echo on")
        done = cli.process("run", "--", *command, preexec_fn=lambda: signal.signal(number, signal.SIG_IGN))
        assert (done.returncode, done.stdout.splitlines()[0]) == (0, "on")

    def test_a_command_killed_by_a_signal(self, cli) -> None:
        done = cli("run", "-o", "rec", "--", "sh", "-c", "kill -TERM $$")
        assert done.returncode == -signal.SIGTERM
        assert json.loads(cli("info", "rec", "--format", "json").stdout)["exit_signal"] == "SIGTERM"

    @pytest.mark.parametrize(
        "number", some([signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGTERM], 2)
    )
    def test_a_signal_to_sysdock_alone_reaches_the_command_once(self, cli, number: int) -> None:
        command = cli.command("run", "-o", "rec", "--", *answers(number))
        process = subprocess.Popen(
            command, cwd=cli.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert (process.stdout.read(), process.wait(600)) == ("got it ", 5)

    @pytest.mark.parametrize("number", some([signal.SIGINT, signal.SIGTERM], 2))
    def test_a_signal_to_the_whole_group_reaches_the_command_once(self, cli, number: int) -> None:
        command = cli.command("run", "-o", "rec", "--", *answers(number))
        process = subprocess.Popen(
            command,
            cwd=cli.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, number)
        assert (process.stdout.read(), process.wait(600)) == ("got it ", 5)

    def test_a_closed_standard_input_stays_closed(self, cli) -> None:
        command = cli.command("run", "-o", "rec", "--", "sh", "-c", "test -e /proc/self/fd/0 || echo closed")
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" <&-', "sh", *command],
            cwd=cli.folder,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert (done.stdout, done.returncode) == ("closed\n", 0)

    def test_a_recording_that_could_not_begin_is_not_judged(self, cli, tmp_path: Path) -> None:
        done = cli(
            "run", "--with", "strace", "-o", "rec", "--", "true", env={"TMPDIR": str(tmp_path / "nowhere")}
        )
        assert done.returncode == 2
        assert "is the temporary folder (TMPDIR) writable?" in done.stderr
        assert "Findings" not in done.stderr

    def test_the_status_stays_when_nobody_reads_the_answer(self, cli) -> None:
        command = cli.command("run", "-o", "rec", "--", "sh", "-c", "exit 7")
        done = subprocess.run(
            ["sh", "-c", 'exec "$@" 2>/dev/full', "sh", *command],
            cwd=cli.folder,
            env=cli.environment,
            timeout=600,
            check=False,
        )
        assert done.returncode == 7

    def test_a_signal_reaches_the_command(self, cli, tmp_path: Path) -> None:
        script = "trap 'echo got it; exit 3' TERM; touch ready; while :; do sleep 0.05; done"
        running = cli.start(
            "run", "-o", "rec", "--", "sh", "-c", script, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        while not (tmp_path / "ready").exists():
            assert running.poll() is None
            time.sleep(0.05)
        running.send_signal(signal.SIGTERM)
        out, _ = running.communicate(timeout=600)
        assert (running.returncode, out) == (3, "got it\n")

    def test_without_strace_the_hint_says_how_to_get_it(self, cli, tmp_path: Path) -> None:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "true").symlink_to(shutil.which("true") or "/bin/true")
        done = cli("run", "--with", "strace", "-o", "rec", "--", "true", env={"PATH": str(tmp_path / "bin")})
        assert done.returncode == 2
        assert "strace" in done.stderr
        assert "hint: " in done.stderr
        assert not (tmp_path / "rec").exists()


def test_progress_in_words() -> None:
    event = {
        "event": "progress",
        "bytes_done": 45_000_000,
        "bytes_total": 100_000_000,
        "lines": 400_000,
        "bytes_per_s": 250_000_000,
        "seconds_left": 61.7,
    }
    assert progress_text(event) == "sysdock: 45 %, 45 of 100 MB, 400,000 lines, 250 MB/s, 1:01 left"
    unknown = {**event, "bytes_total": None, "seconds_left": None}
    assert progress_text(unknown) == "sysdock: 45.0 MB, 400,000 lines, 250 MB/s"


def test_what_the_shell_left_open_is_the_command_s(cli, tmp_path: Path) -> None:
    script = 'exec "$@" cat <(echo from the shell)'
    bare = subprocess.run(["bash", "-c", script, "bash"], capture_output=True, text=True, check=False)
    words = cli.command("run", "-o", "rec", "--with", "strace", "--")
    recorded = subprocess.run(
        ["bash", "-c", script, "bash", *words],
        cwd=tmp_path,
        env=cli.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (recorded.returncode, recorded.stdout) == (0, bare.stdout) == (0, "from the shell\n")


def test_the_native_program_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    stated = tmp_path / "stated"
    stated.write_text("")
    stated.chmod(0o755)
    monkeypatch.setenv("SYSDOCK_NATIVE", str(stated))
    assert find_native() == stated
    beside = tmp_path / NAME
    beside.write_text("")
    beside.chmod(0o755)
    assert find_native() == beside
    for path in (beside, stated):
        path.chmod(0o644)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysdock.__file__", str(tmp_path / "a" / "b" / "__init__.py"))
    with pytest.raises(UserError, match="was not found"):
        find_native()


def test_a_recording_that_was_broken_off_takes_no_scan(
    maker: RecordingMaker, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    folder = maker.make(complete=False, ended_by="interrupted")
    before = (folder / "recording.json").read_bytes()
    add_scan(folder, tmp_path)
    said = f"sysdock: {tmp_path} was not scanned: the recording of the command is incomplete\n"
    assert capsys.readouterr().err == said
    assert (folder / "recording.json").read_bytes() == before
