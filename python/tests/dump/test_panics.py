"""Why a kernel stopped: panics of real kernels, and what the rules say of them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from made_dumps import MadeDump
from sysdock.analysis import Session
from sysdock.analysis.diagnosis import diagnose_by
from sysdock.sections.comparison import compare
from sysdock.sentences import say

Finding = dict[str, object]
Panics = Callable[..., MadeDump]


def panic_of(session: Session) -> Finding:
    """The row of `dump_panic`."""
    [found] = session.dicts("FROM dump_panic")
    return found


@pytest.mark.parametrize(
    ("kind", "version", "cause", "comm"),
    [
        ("hung", "6.1", "hung task", "khungtaskd"),
        ("oom", "6.12", "out of memory", "init"),
        ("null", "6.1", "NULL dereference", "init"),
        ("bug", "6.12", "BUG", "init"),
        ("softlockup", "6.12", "soft lockup", "init"),
        ("softlockup", "6.1", "soft lockup", "init"),
        ("overflow", "6.1", "stack overflow", "init"),
        ("overflow", "6.12", "stack overflow", "init"),
        ("bug", "6.1", "BUG", "init"),
    ],
)
def test_the_cause_is_that_of_the_log(
    kind: str, version: str, cause: str, comm: str, panics: Panics, read: Callable[..., Session]
) -> None:
    made = panics(kind, version)
    session = read(made.core)
    found = panic_of(session)
    assert (found["cause"], found["comm"], found["status"]) == (cause, comm, "ok")
    assert found["record"] in made.console()
    finding = next(finding for finding in session.diagnose() if finding.rule == "dump/panic")
    assert finding.status == "finding"
    assert finding.certainty == "high"
    assert cause in finding.reason


def test_a_hung_task_is_the_first_that_hung(panics: Panics, read: Callable[..., Session]) -> None:
    made = panics("hung", "6.1")
    session = read(made.core)
    reported = [line for line in made.console() if re.match(r"INFO: task .* blocked for more than", line)]
    assert panic_of(session)["record"] == reported[0]
    # The kernel reports tasks that have waited for ten seconds at least; all of them are there.
    rows = session.run("dump/hung", {"min_wait_ns": 10**10}).dicts()
    pids = {int(found[1]) for line in reported if (found := re.search(r":(\d+) blocked", line))}
    assert pids
    assert pids <= {row["pid"] for row in rows}
    findings = [finding for finding in session.diagnose() if finding.rule == "dump/lock_held"]
    [head], [splicer] = made.started["chain-head"], made.started["chain-splicer"]
    assert {finding.subject for finding in findings} == {f"chain-head ({head})", f"chain-splicer ({splicer})"}


@pytest.mark.parametrize(
    ("kind", "version", "subject"),
    [("oom", "6.12", "process init (1)"), ("tmpfs", "6.1", "shared memory and tmpfs")],
)
def test_who_took_the_memory_is_named(
    kind: str, version: str, subject: str, panics: Panics, read: Callable[..., Session]
) -> None:
    session = read(panics(kind, version).core)
    finding = next(finding for finding in session.diagnose() if finding.rule == "dump/memory_full")
    assert (finding.status, finding.subject) == ("finding", subject)


@pytest.mark.parametrize("version", ["6.12", "6.1"])
def test_a_stack_goes_on_from_an_interrupt_to_what_it_interrupted(
    version: str, panics: Panics, read: Callable[..., Session]
) -> None:
    # Its processor went round in circles while it read /dev/zero, and the timer found that: on a stack of its own.
    session = read(panics("softlockup", version).core)
    sql = "SELECT s.frames, s.status FROM dump_tasks JOIN dump_stacks AS s USING (stack_id) WHERE pid = 1"
    [(frames, status)] = session.fetch(sql)
    names = [name.split(".")[0] for name in frames.split(" < ")]
    outwards = ["panic", "watchdog_timer_fn", "asm_sysvec_apic_timer_interrupt", "vfs_read", "ksys_read"]
    places = [names.index(name) for name in outwards]
    assert places == sorted(places)
    assert (names[-1], status) == ("entry_SYSCALL_64_after_hwframe", "ok")
    # That is also where it hangs.
    found = panic_of(session)["function"]
    assert found == names[names.index("asm_sysvec_apic_timer_interrupt") + 1]


def test_a_stack_ends_where_the_stack_pointer_was_wrong(panics: Panics, read: Callable[..., Session]) -> None:
    made = panics("overflow", "6.1")
    session = read(made.core)
    sql = "SELECT s.frames, s.status FROM dump_tasks JOIN dump_stacks AS s USING (stack_id) WHERE pid = 1"
    [(frames, status)] = session.fetch(sql)
    said = next(line for line in made.console() if line.startswith("RIP: "))
    function = said.split(":")[2].split("+")[0]
    # From the stack of the double fault to the code that had none, and no further: nothing lies there.
    assert frames.endswith(f"exc_double_fault < asm_exc_double_fault < {function}")
    assert status == "not mapped"
    assert panic_of(session)["function"] == function


def test_a_storm_of_tasks_is_named(dumps: dict[str, MadeDump], read: Callable[..., Session]) -> None:
    session = read(dumps["6.1"].core)
    [rule] = [rule for rule in session.library.rules() if rule.id == "dump/task_storm"]
    [found] = diagnose_by(session, rule, {"min_tasks": 100, "min_share": 0.3})
    # The first process has started all of them.
    assert (found.subject, found.status, found.value) == ("sleeper", "finding", 100)
    assert "started by 1 process;" in say(found.reason, "en")


def test_registers_of_the_exception_are_those_that_the_kernel_printed(
    panics: Panics, read: Callable[..., Session]
) -> None:
    made = panics("null", "6.1")
    session = read(made.core)
    # It went on at address 0, where no function lies.
    assert (panic_of(session)["address"], panic_of(session)["function"]) == (0, None)
    sql = "SELECT name, value FROM dump_registers WHERE origin = 'exception'"
    found = dict(session.fetch(sql))
    lines = made.console()
    start = next(number for number, line in enumerate(lines) if line.startswith("RIP: "))
    # Up to the end of the trace of the exception there is one of each; those of the user come later.
    printed = " ".join(lines[start : start + 10])
    names = {"ax": "RAX", "bx": "RBX", "cx": "RCX", "dx": "RDX", "si": "RSI", "di": "RDI", "bp": "RBP"}
    names |= {f"r{number}": f"R{number:02}" for number in range(8, 16)}
    for name, other in names.items():
        said = re.search(rf"\b{other}: ([0-9a-f]{{16}})", printed)
        assert said, other
        assert found[name] == said[1], name
    said = re.search(r"RSP: \d+:([0-9a-f]{16})", printed)
    assert said
    assert (found["ip"], found["sp"]) == ("0" * 16, said[1])
    assert panic_of(session)["taint_letters"] == "D"


def test_two_dumps_are_compared(
    dumps: dict[str, MadeDump], panics: Panics, read: Callable[..., Session]
) -> None:
    one, other = read(dumps["6.1"].core), read(panics("tmpfs", "6.1").core)
    found = compare(one, other)
    free_before, free_after = (total.value for total in found.totals["free_bytes"])
    assert free_before is not None
    assert free_after is not None
    assert free_after < free_before / 4
    assert [total.value for total in found.totals["lock_waits"]] == [9, 9]
    changes = {(change.state, change.finding.rule): change.finding.subject for change in found.findings}
    assert changes["new", "dump/memory_full"] == "shared memory and tmpfs"
    assert changes["both", "dump/disk_hangs"] == "nvme0n1"
