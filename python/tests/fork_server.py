"""Runs `sysdock` as a process of its own without starting Python anew: a server that has loaded the package forks for each command.

`run` takes and returns what `subprocess.run` does, for the same arguments, environment, folder and streams; the command may fork, limit
itself, catch signals and change its folder, as nothing of that is left behind. What depends on how Python starts (its options and
variables, closed streams, modules in the current folder) needs a real start: `subprocess.run([sys.executable, "-m", "sysdock", ...])`.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from waiting import PATIENCE_S

PACKAGE = str(Path(__file__).resolve().parents[1])
# Size of the longest request [B]; a socket with messages takes no more at a time.
_MOST_BYTES = 1 << 17
# What fits into a pipe before anybody reads it.
_PIPE_BYTES = 1 << 16
# What decides how Python starts, and how it writes text.
_START = ("PYTHON", "LC_", "LANG")


def environment() -> dict[str, str]:
    """That of the tests, with the checkout's package and what decides how times and texts look."""
    return {**os.environ, "PYTHONPATH": PACKAGE, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def _needs_a_start(theirs: Mapping[str, str]) -> bool:
    """Whether a variable of this environment matters to Python itself, other than those of the server."""
    ours = _server().environment
    named = {name for name in {*theirs, *ours} if name.startswith(_START)}
    return any(theirs.get(name) != ours.get(name) for name in named)


def run(
    *words: object,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    input: str | None = None,
    timeout: float = PATIENCE_S,
    check: bool = False,
) -> subprocess.CompletedProcess[str]:
    """What `sysdock WORDS` printed, and its exit status; `env` is its whole environment."""
    env = dict(environment() if env is None else env)
    command = [sys.executable, "-m", "sysdock", *map(str, words)]
    if _needs_a_start(env) or len(input or "") > _PIPE_BYTES // 4:
        return subprocess.run(
            command,
            cwd=cwd,
            env=env,
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=check,
        )
    folder = Path(cwd or os.curdir).resolve()
    status, out, err = _run(command[3:], folder, env, input, timeout)
    if check and status != 0:
        raise subprocess.CalledProcessError(status, command, out, err)
    return subprocess.CompletedProcess(command, status, out, err)


@cache
def _server() -> _Server:
    """One for all tests of this process."""
    return _Server()


class _Server:
    """The client's side: the server ends with the process that started it."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * _MOST_BYTES)
        self.environment = environment()
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=self.environment,
            stdin=subprocess.DEVNULL,
        )
        theirs.close()

    def start(
        self, words: list[str], folder: Path, environment: Mapping[str, str], streams: list[int]
    ) -> int:
        """Starts a command with these as its standard streams; returns its process id."""
        request = json.dumps([words, str(folder), dict(environment)]).encode()
        socket.send_fds(self._socket, [request], streams)
        return int(self._socket.recv(64))

    def wait(self) -> int:
        """The exit status of the command that was started last (below 0: minus a signal)."""
        return int(self._socket.recv(64))


def on_terminal(
    words: tuple[object, ...], folder: Path, terminal: int, env: Mapping[str, str]
) -> Callable[[], int]:
    """Starts a command whose outputs are a terminal; returns what waits for its exit status."""
    stdin = os.open(os.devnull, os.O_RDONLY)
    try:
        _server().start([*map(str, words)], folder, env, [stdin, terminal, terminal])
    finally:
        os.close(stdin)
    return _server().wait


def _run(
    words: list[str], folder: Path, env: Mapping[str, str], text: str | None, timeout: float
) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command."""
    (from_stdout, stdout), (from_stderr, stderr) = os.pipe(), os.pipe()
    stdin = os.open(os.devnull, os.O_RDONLY) if text is None else _pipe_with(text)
    try:
        pid = _server().start(words, folder, env, [stdin, stdout, stderr])
    finally:
        for descriptor in (stdin, stdout, stderr):
            os.close(descriptor)
    try:
        out, err = _read([from_stdout, from_stderr], time.monotonic() + timeout)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        raise
    finally:
        status = _server().wait()
    return status, out, err


def _pipe_with(text: str) -> int:
    """The end of a pipe from which `text` is read."""
    reader, writer = os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    return reader


def _read(pipes: list[int], until: float) -> tuple[str, str]:
    """What is written to both until their last writers have gone; closes them."""
    parts: dict[int, list[bytes]] = {pipe: [] for pipe in pipes}
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        try:
            while selector.get_map():
                if (left := until - time.monotonic()) <= 0:
                    raise TimeoutError("sysdock takes too long")
                for key, _ in selector.select(left):
                    if part := os.read(key.fd, 1 << 16):
                        parts[key.fd].append(part)
                    else:
                        selector.unregister(key.fd)
        finally:
            for pipe in pipes:
                os.close(pipe)
    # As subprocess does with `text=True`.
    out, err = (b"".join(part).decode().replace("\r\n", "\n").replace("\r", "\n") for part in parts.values())
    return out, err


def _serve(requests: socket.socket) -> None:
    """The server's side: returns in the child of each command, as that command."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, _MOST_BYTES, 3)
        if not message:
            raise SystemExit
        pid = os.fork()
        if pid == 0:
            requests.close()
            words, folder, environment = json.loads(message)
            _become(words, folder, environment, descriptors)
            return
        for descriptor in descriptors:
            os.close(descriptor)
        requests.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        requests.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(words: list[str], folder: str, environment: dict[str, str], streams: list[int]) -> None:
    """Makes this process what a new one is: its arguments, folder, environment and streams."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    os.closerange(3, 1 << 16)
    os.chdir(folder)
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ.update(environment)
    time.tzset()
    tempfile.tempdir = None
    sys.argv = ["sysdock", *words]
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        first = getattr(sys, f"__{name}__")
        options = {"encoding": first.encoding, "errors": first.errors, "closefd": False}
        stream = open(number, mode, **options)  # noqa: SIM115
        stream.reconfigure(line_buffering=number == 2 or stream.isatty())
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _load_all() -> None:
    """Loads every module of the package that this Python has all libraries for."""
    import sysdock

    for module in pkgutil.walk_packages(sysdock.__path__, "sysdock."):
        if not module.name.endswith("__main__") and ".knowhow" not in module.name:
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)


def _run_to_the_end(words: list[str]) -> int:
    """Runs the command and what is to be run at the end of a process; returns its exit status."""
    from sysdock.cli import main

    status: object = 1
    try:
        main(words)
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status if isinstance(status, int) else 0 if status is None else 1


if __name__ == "__main__":
    _load_all()
    # What all children share stays shared: neither the search for garbage nor the end of a process may write to it.
    gc.collect()
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    os._exit(_run_to_the_end(sys.argv[1:]))
