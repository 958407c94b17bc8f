"""A dump as machines make it: a second kernel, which the panic starts (kexec), saves the memory of the first."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from made_dumps import MadeDump, make_once
from sysdock.analysis import Session
from sysdock.dump import Dump


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> MadeDump:
    """What the second kernel found in /proc/vmcore."""
    return make_once(tmp_path_factory, "kdump", "6.1", "--kdump", "--memory", "768")


def test_it_shows_what_the_guest_said(saved: MadeDump, read: Callable[..., Session]) -> None:
    session = read(saved.core)
    [head], [splicer] = saved.started["chain-head"], saved.started["chain-splicer"]
    wanted = {("rwsem", head, splicer, head)}
    wanted |= {("mutex", splicer, pid, head) for pid in saved.started["chain-pipe"]}
    wanted |= {("rwsem", head, pid, head) for pid in saved.started["chain-file"]}
    assert set(session.fetch("SELECT kind, holder_pid, waiter_pid, root_pid FROM dump_locks")) == wanted
    tasks = dict(
        session.fetch("SELECT pid, wait_function FROM dump_tasks WHERE status = 'ok' AND state <> 'R'")
    )
    for pids in saved.started.values():
        for pid in pids:
            assert (tasks[pid] or "0") == saved.files[pid, "wchan"].strip()
    assert session.fetch("SELECT panic FROM crash_dumps") == [("sysrq triggered crash",)]


def test_the_processors_have_their_registers(saved: MadeDump, read: Callable[..., Session]) -> None:
    with Dump.open(saved.core) as dump:
        about = dump.capabilities()
        # Its code, which such a dump names twice, is no reason for a remark.
        assert (about["format"], about["processors"], about["remarks"]) == ("ELF", 2, [])
        [panic] = dump.panic()
        assert (panic.pid, panic.cause) == (1, "sysrq")
        [task] = dump.tasks().where(lambda task: task.pid == 1)
        [stack] = dump.stacks().where(lambda stack: stack.stack_id == task.stack_id)
    assert "sysrq_handle_crash < __handle_sysrq" in stack.frames
    assert stack.frames.endswith("entry_SYSCALL_64_after_hwframe")
