"""Cases of what a command can see, and what one can see of it, run bare and below a recorder; both must agree.

Not compared, because a recorder that starts a command cannot help it: the parent's number, the control group of the
kernel recorder, TracerPid of strace, and that the recorder and not the command leads the process group of a shell.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import resource
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fcntl import ioctl
from pathlib import Path

from sampling import sampled

OBSERVE = Path(__file__).with_name("observe.py")
SECONDS = 60
# pytest puts the name of the test into it.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
# For what comes a second time, and too late.
GRACE = 0.1
INT, TERM, HUP, QUIT = signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT
USR1, USR2, WINCH, TSTP, CONT = (
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
    signal.SIGTSTP,
    signal.SIGCONT,
)
# A program that answers each signal by a line, until it may go on.
ANSWERS = """
import os, signal, time
for name in "INT TERM HUP QUIT USR1 USR2 IO WINCH".split():
    signal.signal(getattr(signal, "SIG" + name), lambda number, _: os.write(1, b"got %d\\n" % number))
os.write(1, b"ready\\n")
while not os.path.exists("go"):
    time.sleep(0.02)
"""
LEAVES_A_CHILD = """
if not os.fork():
    time.sleep(0.3)
    os.write(1, b"late\\n")
else:
    os._exit(37)
"""
# Until it may go on: then all signals have come, and those that are too many as well.
WAITS = "until [ -e go ]; do sleep 0.05; done;"


@dataclass(frozen=True)
class Outcome:
    """What is compared: the exit status as a shell has it, the streams, and the file `left` that a case may write."""

    status: int
    out: bytes
    err: bytes
    left: str


@dataclass(frozen=True)
class Case:
    """One command, and what is done to it once it has printed `ready`."""

    name: str
    command: Sequence[str]
    to_process: Sequence[signal.Signals] = ()
    to_group: Sequence[signal.Signals] = ()
    stdin: bytes = b""
    prepare: Callable[[], None] | None = None
    keys: bytes | None = None
    wraps: Sequence[str] = field(default=())
    # The command answers each signal by a line; the next one comes after that.
    answers: bool = True
    # The recorder has something to say, behind all that the command says: a recording that cannot be written.
    says: bool = False

    def run(self, wrap: Callable[[Sequence[str]], Sequence[str]], folder: Path) -> Outcome:
        """Run it in a folder of its own; `wrap` makes the command line of a recorder of it."""
        folder.mkdir(parents=True)
        command = [*self.wraps, *wrap(self.command)]
        run = self._on_a_terminal if self.keys is not None else self._by_pipes
        status, out, err = run(command, folder)
        left = folder / "left"
        # In folders of their own, which are called the same: a command sees where it runs.
        out = out.replace(bytes(folder.parent), b"...")
        err = err[: err.find(b"sysdock: ")] if self.says and b"sysdock: " in err else err
        return Outcome(
            status if status >= 0 else 128 - status, out, err, left.read_text() if left.exists() else ""
        )

    def _by_pipes(self, command: Sequence[str], folder: Path) -> tuple[int, bytes, bytes]:
        signalled = self.to_process or self.to_group
        with open(folder / "stdin", "wb+", buffering=0) as stdin, open(folder / "stderr", "wb+") as stderr:
            stdin.write(self.stdin)
            stdin.seek(0)
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=ENVIRONMENT,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
                restore_signals=True,
                close_fds=True,
                preexec_fn=self.prepare,
            )
            first = self._signal(process) if signalled else b""
            (folder / "go").touch()
            rest, _ = process.communicate(timeout=SECONDS)
            stderr.seek(0)
            position = f"{os.lseek(stdin.fileno(), 0, os.SEEK_CUR)}".encode()
            return process.returncode, first + rest + position, stderr.read()

    def _signal(self, process: subprocess.Popen) -> bytes:
        # A signal that does not arrive is never answered.
        end = threading.Timer(SECONDS, os.killpg, (process.pid, signal.SIGKILL))
        end.start()
        text = process.stdout.readline()
        for send, signals in ((os.kill, self.to_process), (os.killpg, self.to_group)):
            for number in signals:
                send(process.pid, number)
                text += process.stdout.readline() if self.answers else b""
        end.cancel()
        time.sleep(GRACE)
        return text

    def _on_a_terminal(self, command: Sequence[str], folder: Path) -> tuple[int, bytes, bytes]:
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(ours, (33, 77))
        # The kernel sends the signal of a key before it echoes the key: the echo is lost if the command dies first.
        settings = termios.tcgetattr(theirs)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(theirs, termios.TCSANOW, settings)

        def prepare() -> None:
            os.setsid()
            ioctl(0, termios.TIOCSCTTY, 0)

        process = subprocess.Popen(
            command,
            cwd=folder,
            env=ENVIRONMENT,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            preexec_fn=prepare,
            close_fds=True,
        )
        os.close(theirs)
        text = b""
        typed = False
        with contextlib.suppress(OSError):
            while part := os.read(ours, 4096):
                text += part
                if b"ready" in text and not typed:
                    typed = True
                    os.write(ours, self.keys or b"")
                if b"got" in text:
                    time.sleep(GRACE)
                    (folder / "go").touch()
        os.close(ours)
        return process.wait(SECONDS), text, b""


def _sh(name: str, script: str, **options: object) -> Case:
    return Case(name, ["sh", "-c", script], **options)


def _python(name: str, script: str, **options: object) -> Case:
    return Case(name, [sys.executable, "-S", "-c", script], **options)


def _observe(name: str, **options: object) -> Case:
    return Case(name, [sys.executable, "-I", "-S", str(OBSERVE)], **options)


def _ignore(*signals: signal.Signals) -> Callable[[], None]:
    def prepare() -> None:
        for number in signals:
            signal.signal(number, signal.SIG_IGN)

    return prepare


def _unusual() -> None:
    """Everything that a parent can hand on, other than it is usually."""
    os.umask(0o027)
    os.nice(3)
    os.sched_setaffinity(0, {0})
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))
    resource.setrlimit(resource.RLIMIT_STACK, (4 << 20, 16 << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.pthread_sigmask(signal.SIG_BLOCK, {USR1, signal.SIGCHLD, signal.SIGRTMIN})
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    Path("/proc/self/oom_score_adj").write_text("300")
    Path("/proc/self/coredump_filter").write_text("0x11")
    os.chdir("/usr")


def _few_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def _statuses() -> list[Case]:
    codes = [_sh(f"exit status {code}", f"exit {code}") for code in (0, 1, 2, 37, 125, 126, 127, 128, 255)]
    names = "TERM KILL SEGV ABRT INT HUP QUIT PIPE USR1 USR2 ALRM XCPU RTMIN"
    return codes + [
        _sh(f"death by SIG{name}", f"ulimit -c 0; kill -{name} $$; sleep 5") for name in names.split()
    ]


def _signals() -> list[Case]:
    cases = []
    for number in sampled((INT, HUP), (INT, TERM, HUP, QUIT)):
        name = number.name
        cases += [
            _sh(f"{name} to the process", "echo ready; exec sleep 60", to_process=[number], answers=False),
            _python(f"{name} to the process, handled", f"{ANSWERS}os._exit(5)", to_process=[number]),
            _python(f"{name} to the group, handled once", f"{ANSWERS}os._exit(6)", to_group=[number]),
        ]
    # To the whole group they kill strace.
    for number in sampled((USR1,), (USR1, USR2, signal.Signals(signal.SIGIO))):
        cases += [
            _sh(
                f"{number.name} to the process",
                "echo ready; exec sleep 60",
                to_process=[number],
                answers=False,
            ),
            _python(f"{number.name} to the process, handled", f"{ANSWERS}os._exit(5)", to_process=[number]),
        ]
    return [
        *cases,
        _sh("SIGINT to the group", "echo ready; exec sleep 60", to_group=[INT], answers=False),
        _python("SIGINT three times, handled", f"{ANSWERS}os._exit(7)", to_group=[INT, INT, INT]),
        _sh(
            "SIGTERM ignored from the start",
            f"echo ready; {WAITS} exit 8",
            to_group=[TERM],
            answers=False,
            prepare=_ignore(TERM),
        ),
        _sh(
            "SIGHUP below nohup",
            f"echo ready; {WAITS} exit 9",
            to_process=[HUP],
            wraps=["nohup"],
            answers=False,
        ),
        _sh("stopped and continued", f"echo ready; {WAITS} exit 10", to_group=[TSTP, CONT], answers=False),
        _python("window changed", f"{ANSWERS}os._exit(11)", to_group=[WINCH]),
        *[
            _python(
                f"{number.name} handled earlier, a child left",
                f"{ANSWERS}{LEAVES_A_CHILD}",
                to_group=[number],
            )
            for number in sampled((INT,), (INT, TERM, HUP))
        ],
    ]


def _processes() -> list[Case]:
    return [
        _sh("a child left behind", "(sleep 0.4; echo late > left) & exit 4"),
        _sh("an orphan's parent is not the command", "(sh -c 'sleep 0.2; echo x > left' &) ; exit 3"),
        _sh(
            "a session of its own",
            f"setsid -w sh -c 'echo ready; {WAITS} echo alive'; exit $?",
            to_group=[INT],
            answers=False,
        ),
        _python("all descriptors closed", "import os; os.closerange(0, 256); os._exit(21)"),
        _python(
            "its folder removed", "import os; os.mkdir('d'); os.chdir('d'); os.rmdir('../d'); os._exit(22)"
        ),
        _python(
            "threads that outlive the first",
            "import threading,time,os\nthreading.Thread(target=lambda: (time.sleep(.3), os._exit(23))).start()",
        ),
        _python(
            "300 children",
            "import os\nfor _ in range(300):\n    if not os.fork(): os._exit(0)\nprint(sum(os.wait()[1] for _ in range(300)))",
        ),
        _sh("exec of another", "exec /bin/echo as another"),
        _sh("processes by name", "ps -o comm= -p $$"),
        Case(
            "a name in its argument 0", ["bash", "-c", "exec -a other sh -c 'echo $0; cat /proc/$$/cmdline'"]
        ),
    ]


def _streams() -> list[Case]:
    return [
        _sh("standard input, whole", "cat", stdin=bytes(range(256)) * 64),
        _sh("standard input, one line", "read line; echo $line", stdin=b"one\ntwo\nthree\n"),
        _sh("standard input left alone", "exit 0", stdin=b"one\n"),
        _sh("both streams", "echo out; echo err >&2; printf '\\377\\000' >&2"),
        _sh("a closed standard input", "exec cat", wraps=["sh", "-c", 'exec "$@" <&-', "sh"]),
        _sh(
            "a closed standard output", "echo x || echo failed >&2", wraps=["sh", "-c", 'exec "$@" >&-', "sh"]
        ),
        _sh(
            "a closed standard error",
            "echo x; ls -l /proc/self/fd/2 >/dev/null 2>&1 || echo none",
            wraps=["sh", "-c", 'exec "$@" 2>&-', "sh"],
        ),
        _sh(
            "a reader that goes away",
            "yes; echo $? > left",
            wraps=["bash", "-c", 'set -o pipefail; "$@" | head -c 10', "sh"],
        ),
        _sh(
            "SIGPIPE ignored",
            "yes 2>/dev/null; echo $? > left",
            wraps=["bash", "-c", 'trap "" PIPE; "$@" | head -c 10', "sh"],
        ),
        Case(
            "descriptor 7 and <(...)",
            ["cat", "/dev/fd/7"],
            wraps=["bash", "-c", '"$@" 7< <(echo from seven)', "sh"],
        ),
        _sh("a job server", "printf 'all: a b\\na b:\\n\\t@sleep 0.1; echo $@\\n' > m; make -j2 -f m | sort"),
        _sh(
            "a limit of file sizes",
            "head -c 8000 /dev/zero > big; echo $?; wc -c < big; exit 37",
            prepare=_few_files,
            says=True,
        ),
        _sh("a full device", "echo x > /dev/full; exit 37"),
    ]


def _terminals() -> list[Case]:
    return [
        _observe("terminal", keys=b""),
        _sh("Ctrl-C at a terminal", "echo ready; exec sleep 60", keys=b"\x03"),
        _python("Ctrl-C at a terminal, handled", f"{ANSWERS}os._exit(13)", keys=b"\x03"),
        _python("Ctrl-\\ at a terminal, handled", f"{ANSWERS}os._exit(14)", keys=b"\x1c"),
        _sh("a line typed", "echo ready; read line; echo got $line; exit 15", keys=b"hello\n"),
    ]


def _views() -> list[Case]:
    return [
        _observe("as usual"),
        _observe("everything unusual", prepare=_unusual),
        _observe(
            "signals ignored", prepare=_ignore(INT, QUIT, HUP, TERM, USR1, signal.SIGPIPE, signal.SIGCHLD)
        ),
    ]


def differences(
    bare: Outcome, recorded: Outcome, not_compared: Sequence[str] = ()
) -> dict[str, tuple[object, object]]:
    """What differs: name -> bare, recorded. Of what a program found out, fact by fact.

    not_compared: beginnings of names.
    """
    facts = [vars(outcome) | found_out(outcome) for outcome in (bare, recorded)]
    return {
        name: (facts[0].get(name), facts[1].get(name))
        for name in {**facts[0], **facts[1]}
        if not name.startswith(tuple(not_compared)) and facts[0].get(name) != facts[1].get(name)
    }


def found_out(outcome: Outcome) -> dict[str, object]:
    """What observe.py wrote, in place of its text; nothing of other commands."""
    if not outcome.out.startswith(b"{"):
        return {}
    end = outcome.out.rindex(b"}") + 1
    found = json.loads(outcome.out[:end])
    variables = {f"${name}": value for name, value in found.pop("environment").items()}
    return found | variables | {"out": outcome.out[end:]}


CASES = _views() + _statuses() + _signals() + _processes() + _streams() + _terminals()
