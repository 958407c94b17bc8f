"""Runs a verb within limits of the operating system if a recording was not made here.

The verb goes on in a forked child, which sets the limits on itself; the parent waits, stops it when its time
is over, and says so. What the child does when memory ends (an error of the engine, an abort in C++) is never
the last word. The fork comes before the engine is loaded: a child that was forked later hung.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from sysdock import cli
from sysdock.errors import UserError
from sysdock.recording.limits import MOST_SECONDS, OFF, SWITCH, Limits, limits_of
from sysdock.recording.manifest import Recording
from sysdock.recording.process import die_with_parent, lower_limit

# Time for the child to remove its temporary files.
_GRACE_SECONDS = 2


# Whether this process has its limits already.
_limited = False


def limit(recordings: Sequence[Recording]) -> None:
    """Goes on within limits, unless all recordings were made here. To be called before the engine is used.

    In the parent it raises SystemExit with the child's status, or a UserError where a limit ended the child.
    """
    global _limited
    found = [(limits, recording) for recording in recordings if (limits := limits_of(recording))]
    # A program that calls verbs sets limits of its own.
    if not found or not cli.owns_process or _limited:
        return
    _limited = True
    both = Limits(
        max(limits.memory_bytes for limits, _ in found),
        min(sum(limits.seconds for limits, _ in found), MOST_SECONDS),
    )
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        die_with_parent(parent)
        _set(both)
        return
    code = _wait(child, both.seconds)
    if code is None or (code < 0 and -code not in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)):
        how = "its time was over" if code is None else signal.Signals(-code).name
        hint = f"if you trust where it comes from, lift them: {SWITCH}={OFF} sysdock ..."
        fact = f"stopped ({how}): a recording that was not made here may take {both}"
        raise UserError(fact, hint, str(found[0][1].folder))
    raise SystemExit(code if code >= 0 else 128 - code)


def _set(limits: Limits) -> None:
    # Data, not address space: drawing a chart reserves far more of that than it uses.
    lower_limit(resource.RLIMIT_DATA, limits.memory_bytes)
    lower_limit(resource.RLIMIT_CPU, limits.seconds * limits.threads + _GRACE_SECONDS)
    lower_limit(resource.RLIMIT_CORE, 0)


def _wait(child: int, seconds: int) -> int | None:
    """The child's exit status (below 0: minus a signal); None where it was stopped."""

    def pass_on(number: int, _frame: FrameType | None) -> None:
        os.kill(child, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    late = not _ends_within(child, seconds)
    if late:
        os.kill(child, signal.SIGTERM)
        if not _ends_within(child, _GRACE_SECONDS):
            os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return None if late else os.waitstatus_to_exitcode(status)


def _ends_within(child: int, seconds: float) -> bool:
    try:
        descriptor = os.pidfd_open(child)
    except OSError:
        # Not allowed here: its processor time is limited all the same.
        return True
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(descriptor)
