"""Why a kernel stopped: panics of real kernels, and what the rules say of them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from made_dumps import MadeDump
from sysdock.analysis import Session

Finding = dict[str, object]


def panic_of(session: Session) -> Finding:
    """The row of `dump_panic`."""
    [found] = session.dicts("FROM dump_panic")
    return found


@pytest.mark.parametrize(
    ("kind", "cause", "comm"),
    [
        ("hung", "hung task", "khungtaskd"),
        ("oom", "out of memory", "init"),
        ("null", "NULL dereference", "init"),
    ],
)
def test_the_cause_is_that_of_the_log(
    kind: str, cause: str, comm: str, panics: dict[str, MadeDump], read: Callable[..., Session]
) -> None:
    made = panics[kind]
    session = read(made.core)
    found = panic_of(session)
    assert (found["cause"], found["comm"], found["status"]) == (cause, comm, "ok")
    assert found["record"] in made.console()
    finding = next(finding for finding in session.diagnose() if finding.rule == "dump/panic")
    assert finding.status == "finding"
    assert finding.certainty == "high"
    assert cause in finding.reason


def test_a_hung_task_is_the_first_that_hung(
    panics: dict[str, MadeDump], read: Callable[..., Session]
) -> None:
    made = panics["hung"]
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


def test_who_took_the_memory_is_named(panics: dict[str, MadeDump], read: Callable[..., Session]) -> None:
    session = read(panics["oom"].core)
    finding = next(finding for finding in session.diagnose() if finding.rule == "dump/memory_full")
    assert (finding.status, finding.subject) == ("finding", "process init (1)")


def test_registers_of_the_exception_are_those_that_the_kernel_printed(
    panics: dict[str, MadeDump], read: Callable[..., Session]
) -> None:
    made = panics["null"]
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
