"""Runs a verb that computes in a child process, which can always be ended.

The engine does not look at signals in the middle of a long step. The verb goes on in a forked child; the
parent passes signals on, and kills a child that does not end soon after. If a recording was not made here, or
the SQL does not come with sysdock, the child sets limits of the operating system on itself, and the parent
stops it when its time is over, and says so. What the child does when memory ends (an error of the engine, an
abort in C++) is never the last word. The fork comes before the engine is loaded: a child that was forked
later hung.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from sysdock import cli
from sysdock.errors import UserError
from sysdock.library import default_root
from sysdock.recording.limits import MOST_SECONDS, OFF, SWITCH, Limits, limits_of, limits_of_know_how
from sysdock.recording.manifest import Recording
from sysdock.recording.process import die_with_parent, lower_limit
from sysdock.recording.signals import die_by
from sysdock.scratch import remove_left

# Time for the child to remove its temporary files: after its time is over, and after a signal.
_GRACE_SECONDS, _SIGNAL_GRACE_SECONDS = 2, 0.7
_ENDING = (signal.SIGINT, signal.SIGTERM)


# Whether this process is that child already.
_limited = False


def go_on_in_child(recordings: Sequence[Recording]) -> None:
    """Goes on in a child, within limits where they are needed. To be called before the engine is used.

    In the parent it raises SystemExit with the child's status, or a UserError where a limit ended the child.
    """
    global _limited
    # A program that calls verbs sets limits of its own.
    if not cli.owns_process or _limited:
        return
    _limited = True
    limits, what = _limits(recordings)
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        die_with_parent(parent)
        if limits:
            _set(limits)
        return
    code = _wait(child, limits.seconds if limits else None)
    if code is None or code < 0:
        # It had no time for that, or could not.
        remove_left(child)
    number = 0 if code is None or code >= 0 else -code
    if limits and (code is None or number not in (0, *_ENDING, signal.SIGPIPE)):
        how = "its time was over" if code is None else signal.Signals(number).name
        hint = f"if you trust where it comes from, lift them: {SWITCH}={OFF} sysdock ..."
        raise UserError(f"stopped ({how}): {what} may take {limits}", hint, str(recordings[0].folder))
    if number and number not in _ENDING:
        # Who started us is to see what happened to the child: it was killed, or crashed.
        die_by(number)
    raise SystemExit(128 + number if number else code)


def _limits(recordings: Sequence[Recording]) -> tuple[Limits | None, str]:
    """Those of all recordings together, or of the know-how, and what has them."""
    found = [limits for recording in recordings if (limits := limits_of(recording))]
    if not found:
        return limits_of_know_how(default_root()), "SQL that is not sysdock's own"
    together = Limits(
        max(limits.memory_bytes for limits in found),
        min(sum(limits.seconds for limits in found), MOST_SECONDS),
    )
    return together, "a recording that was not made here"


def _set(limits: Limits) -> None:
    # Data, not address space: drawing a chart reserves far more of that than it uses.
    lower_limit(resource.RLIMIT_DATA, limits.memory_bytes)
    lower_limit(resource.RLIMIT_CPU, limits.seconds * limits.threads + _GRACE_SECONDS)
    lower_limit(resource.RLIMIT_CORE, 0)


def _wait(child: int, seconds: int | None) -> int | None:
    """The child's exit status (below 0: minus a signal); None where its time was over."""
    asked: list[int] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        asked.append(number)
        os.kill(child, number)

    with _woken() as woken:
        for number in _ENDING:
            signal.signal(number, pass_on)
        has_ended = _ends_within(child, seconds, woken)
        if not has_ended:
            if not asked:
                os.kill(child, signal.SIGTERM)
            if not _ends_within(child, _SIGNAL_GRACE_SECONDS if asked else _GRACE_SECONDS):
                os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGKILL and asked:
        return -asked[0]
    return code if has_ended or asked else None


@contextmanager
def _woken() -> Iterator[int]:
    """A descriptor that can be read once a signal has come: a wait continues after a signal otherwise."""
    read_end, write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    try:
        yield read_end
    finally:
        signal.set_wakeup_fd(before)
        os.close(read_end)
        os.close(write_end)


def _ends_within(child: int, seconds: float | None, woken: int | None = None) -> bool:
    """Whether the child ends before this time (None: whenever), and before `woken` can be read."""
    try:
        descriptor = os.pidfd_open(child)
    except OSError:
        # Not allowed here: its processor time is limited all the same.
        return True
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if woken is not None:
            poll.register(woken, select.POLLIN)
        ready = poll.poll(None if seconds is None else seconds * 1000)
        return descriptor in dict(ready)
    finally:
        os.close(descriptor)
