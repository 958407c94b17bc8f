"""Passes signals on to a child, so that who waits for it and who runs it look the same from outside."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

# Signals that users may send to a program, except those that stop it or are meant for its terminal; and
# signals without a fixed meaning. The native program receives the same ones.
HEARD = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGTERM,
    signal.SIGVTALRM,
    signal.SIGPROF,
    signal.SIGIO,
    *range(signal.SIGRTMIN, signal.SIGRTMAX),
)


class Child:
    """A process that gets the signals that we get. States: not started, started, ended."""

    def __init__(self) -> None:
        self._pid: int | None = None
        self._early: list[int] = []

    def started(self, pid: int) -> None:
        """From here on signals go to `pid`; those that came before are sent now."""
        self._pid = pid
        while self._early:
            os.kill(pid, self._early.pop(0))

    def wait(self) -> None:
        """Waits for its end without reaping it. Once reaped, its number may be another process's."""
        assert self._pid is not None
        # With SIGCHLD ignored, as some callers leave it, it would be reaped at once, and its status lost.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        self._pid = None

    def send(self, number: int) -> None:
        """Passes a signal on, or keeps it until the child is there."""
        if self._pid is None:
            self._early.append(number)
        else:
            os.kill(self._pid, number)


@contextmanager
def passed_on(forward: Sequence[int]) -> Iterator[Child]:
    """Passes `forward` on in its body. SIGINT and SIGQUIT that are not in it end neither us nor the child:
    the child gets them from the terminal by itself.

    The handlers are set before the child starts, so that no signal falls in between. What is ignored stays
    so, for the child too: SIGHUP below nohup(1). In another than the main thread nothing can be passed on.
    """
    child = Child()

    def pass_on(number: int, _frame: object) -> None:
        child.send(number)

    def leave(_number: int, _frame: object) -> None:
        """Not SIG_IGN, which the child would inherit."""

    handlers: dict[int, Any] = {
        signal.SIGINT: leave,
        signal.SIGQUIT: leave,
        **dict.fromkeys(forward, pass_on),
    }
    if threading.current_thread() is not threading.main_thread():
        handlers = {}
    before = {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield child
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def die_by(number: int) -> NoReturn:
    """Ends this process by a signal, as a command was that ran in its place; a core dump is the command's."""
    sys.stdout.flush()
    sys.stderr.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    # If it does not end us, as for init of a container.
    os._exit(128 + number)


@contextmanager
def held_back() -> Iterator[None]:
    """SIGINT and SIGTERM that come in its body take effect after it."""
    came: list[int] = []

    def note(number: int, _frame: object) -> None:
        came.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)
