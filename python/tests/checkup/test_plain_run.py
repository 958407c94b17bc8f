"""A run without a tracer: what is measured, and what an ordinary user may read."""

from __future__ import annotations

import os

import pytest
from sysdock.checkup.plain_run import run_plain
from sysdock.errors import UserError


def test_children_that_were_waited_for_are_in_it() -> None:
    run = run_plain(["sh", "-c", "head -c 300000 /dev/zero > /dev/null; exit 3"])
    assert run.status == 3
    assert run.io
    assert run.io["wchar"] >= 300_000
    assert run.times.real > 0
    assert run.times.system is not None


def test_a_death_by_a_signal_is_the_status_of_a_shell() -> None:
    assert run_plain(["sh", "-c", "kill -KILL $$"]).status == 137


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(UserError, match="cannot be started: no such file"):
        run_plain(["/nonexistent/program"])


def test_the_counters_can_be_read_without_privileges() -> None:
    """Those of a zombie belong to root, so they are opened before the end."""
    if os.geteuid() != 0:
        pytest.skip("needs root: becomes another user")
    pid = os.fork()
    if not pid:
        # All is imported by now: the folders of Python may be closed to that user.
        code = 2
        try:
            os.setgid(65534)
            os.setuid(65534)
            run = run_plain(["sleep", "0.3"])
            code = 0 if run.io and run.io["rchar"] else 1
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
