"""Work in progress when a kernel stopped, compared with its earlier state from /proc."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable

import pytest
from made_dumps import MadeDump
from sysdock.analysis import Session

VERSIONS = ["6.1", pytest.param("6.12", marks=pytest.mark.guest)]
TICK_NS = 10_000_000
# The kernel's clocks may be a tick apart; a busy host gives a guest its ticks late, several at once.
LATE_NS = 10 * TICK_NS


def clocks(made: MadeDump, name: str) -> dict[str, int]:
    """The guest's clocks at a moment."""
    lines = (line.split() for line in made.files[0, f"clocks_{name}"].splitlines() if line)
    return {clock: int(ns) for clock, ns in lines}


def boot_of(made: MadeDump) -> tuple[int, int]:
    """When the guest was booted: not before the first, and not after the second time."""
    read = [clocks(made, name) for name in ("before", "marked", "after")]
    first = max(each["realtime"] - each["boottime"] for each in read)
    return first, min(each["realtime_then"] - each["boottime"] for each in read)


@pytest.mark.parametrize("version", VERSIONS)
class TestTruth:
    def test_the_log_is_on_the_clock_of_the_guest(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        made = dumps[version]
        before, after = clocks(made, "before"), clocks(made, "marked")
        session = read(made.core)
        [(ts_ns,)] = session.fetch("SELECT ts_ns FROM dump_log WHERE text = 'marked by the guest'")
        assert before["realtime"] - LATE_NS <= ts_ns <= after["realtime_then"] + LATE_NS
        [(ts_ns, uptime_ns)] = session.fetch("SELECT ts_ns, uptime_ns FROM dump_panic")
        assert ts_ns >= clocks(made, "after")["realtime_then"] - LATE_NS
        first, last = boot_of(made)
        assert first <= ts_ns - uptime_ns <= last
        assert session.fetch("SELECT count(*) FROM dump_log WHERE ts_ns IS NULL") == [(0,)]

    def test_tasks_were_made_when_proc_says(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        made = dumps[version]
        first, last = boot_of(made)
        rows = read(made.core).fetch("SELECT pid, start_ts_ns FROM dump_tasks WHERE pid > 0")
        for pid, start_ts_ns in rows:
            ticks = int(made.files[pid, "stat"].rpartition(")")[2].split()[19])
            assert first + ticks * TICK_NS <= start_ts_ns <= last + (ticks + 1) * TICK_NS, pid

    def test_the_recording_says_that_its_clock_is_the_time(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        made = dumps[version]
        recording = read(made.core).recording
        content = json.loads((recording.folder / "recording.json").read_text("utf-8"))
        [capture] = content["captures"]
        assert capture["clock"]["kind"] == "epoch"
        assert capture["clock"]["note"]
        assert content["host"] == "crashing"
        first, last = boot_of(made)
        assert first <= content["started_ns"] <= last

    def test_who_stopped_the_kernel_is_known(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        made = dumps[version]
        session = read(made.core)
        names = "cause, record, pid, comm, taint, taint_letters, host, status"
        [found] = session.fetch(f"SELECT {names} FROM dump_panic")
        assert found == ("sysrq", "sysrq: Trigger a crash", 1, "init", 0, "", "crashing", "ok")
        [(text,)] = session.fetch("SELECT version FROM dump_panic")
        assert text == made.files[0, "version"].strip()
        # The kernel writes which processor and task it is in.
        said = [
            re.search(r"CPU: (\d+) (?:UID: \d+ )?PID: (\d+) Comm: (\w+)", line) for line in made.console()
        ]
        [(cpu, pid, comm)] = [match.groups() for match in said if match]
        place = session.fetch("SELECT cpu, pid, comm FROM dump_panic")
        assert place == [(int(cpu), int(pid), comm)]

    def test_registers_are_those_that_the_kernel_printed(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        made = dumps[version]
        sql = "SELECT name, value FROM dump_registers WHERE origin = 'user'"
        found = dict(read(made.core).fetch(sql))
        printed = " ".join(made.console())
        names = {"ax": "RAX", "bx": "RBX", "cx": "RCX", "dx": "RDX", "si": "RSI", "di": "RDI", "bp": "RBP"}
        names |= {f"r{number}": f"R{number:02}" for number in range(8, 16)} | {"orig_ax": "ORIG_RAX"}
        for name, other in names.items():
            said = re.search(rf"\b{other}: ([0-9a-f]{{16}})", printed)
            assert said, other
            assert found[name] == said[1], name
        processors = read(made.core).fetch("SELECT DISTINCT cpu FROM dump_registers WHERE origin = 'dump'")
        assert sorted(processors) == [(0,), (1,)]

    def test_tasks_wait_since_they_left_their_processors(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        made = dumps[version]
        session = read(made.core)
        [(stopped,)] = session.fetch("SELECT after_boot_ns FROM dump_log WHERE text LIKE 'Kernel panic - %'")
        sql = "SELECT pid, wait_ns, arrived_ts_ns, start_ts_ns FROM dump_tasks WHERE wait_ns IS NOT NULL"
        found = {pid: row for pid, *row in session.fetch(sql)}
        [(end,)] = session.fetch("SELECT ts_ns FROM dump_panic")
        compared = 0
        for name in ("chain-splicer", "chain-pipe", "chain-file", "vfork", "disk-reader", "disk-writer"):
            for pid in made.started[name]:
                left = int(made.files[pid, "sched"].split()[-1].replace(".", ""))
                wait_ns, arrived, _ = found[pid]
                # The scheduler forgets it where it moves a task that has begun to wait: then the arrival counts.
                assert wait_ns == (stopped - left if left else end - arrived), name
                compared += 1
        assert compared == 16
        for pid, (wait_ns, arrived, start) in found.items():
            if arrived is not None:
                assert start - TICK_NS <= arrived, pid
            # Other processors run on until the stop interrupt: a task that left one after the panic has not waited.
            if arrived is not None and wait_ns > 0:
                assert arrived <= end - wait_ns + TICK_NS, pid

    def test_who_hangs_is_shown_with_whom_it_waits_for(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        made = dumps[version]
        found = read(made.core).run("dump/hung").dicts()
        waiting = {
            pid for name in ("chain-splicer", "chain-pipe", "chain-file") for pid in made.started[name]
        }
        waiting |= {
            pid for name in ("vfork", "disk-reader", "disk-writer", "seeker") for pid in made.started[name]
        }
        assert {row["pid"] for row in found} == waiting
        [pipe, *_] = [row for row in found if row["comm"] == "chain-pipe"]
        assert (pipe["holder"], pipe["root"], pipe["depth"]) == ("chain-splicer", "chain-head", 2)
        assert pipe["root_function"] == "handle_userfault"
        assert [row["wait_ns"] for row in found] == sorted((row["wait_ns"] for row in found), reverse=True)

    def test_the_last_second_is_a_time_line(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        found = read(dumps[version].core).run("dump/wakeups").dicts()
        assert "init" in {row["comm"] for row in found}
        assert all(row["before_ns"] <= 10**9 for row in found)
        # Tasks that wait for locks have not run since before the guest wrote down its state.
        assert not {"chain-pipe", "chain-file"} & {row["comm"] for row in found}

    def test_requests_of_a_disk_that_hangs_are_found(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        made = dumps[version]
        session = read(made.core)
        names = "operation, sector, bytes, state, status"
        found = session.fetch(f"SELECT {names} FROM dump_requests WHERE disk = 'nvme0n1'")
        # As init.c starts them: which block of how many bytes.
        wanted = [("read", number * 100 * 8, 4096, "in flight", "ok") for number in (1, 2, 3)]
        assert sorted(found) == [*wanted, ("write", 500 * 16, 8192, "in flight", "ok")]
        busy = "".join(made.files[0, f"busy{queue}"] for queue in (0, 1))
        said = re.findall(r"\.op=(\w+),.*\.state=(\w+), \.tag=(\d+)", busy)
        numbers = session.fetch("SELECT upper(operation), state, tag FROM dump_requests")
        assert sorted((op, state.replace(" ", "_"), str(tag)) for op, state, tag in numbers) == sorted(said)
        (first, _), before = boot_of(made), clocks(made, "before")["realtime"]
        rows = session.fetch("SELECT ts_ns, age_ns, issued_ns FROM dump_requests")
        [(end,)] = session.fetch("SELECT ts_ns FROM dump_panic")
        for ts_ns, age_ns, issued_ns in rows:
            assert first < ts_ns < before
            assert abs(ts_ns + age_ns - end) <= 1
            assert issued_ns <= age_ns

    def test_sockets_are_those_of_proc(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        made = dumps[version]
        session = read(made.core)
        sql = """SELECT inode, family, protocol, local, local_port, remote, remote_port,
            receive_bytes, unaccepted, send_bytes, state, kind, status FROM dump_sockets"""
        found = {row[0]: row[1:] for row in session.fetch(sql)}
        compared = 0
        for name in ("tcp", "tcp6", "udp", "udp6"):
            for line in made.files[0, name].splitlines()[1:]:
                words = line.split()
                # Sockets without a descriptor: a connection that was not accepted yet.
                if not words or words[9] == "0":
                    continue
                own, other = (internet(word) for word in words[1:3])
                sent, received = (int(number, 16) for number in words[4].split(":"))
                row = found[int(words[9])]
                assert row[:2] == ("inet6" if name.endswith("6") else "inet", name.rstrip("6"))
                assert row[2:4] == own
                assert row[4:6] == (other if other[1] else (None, None))
                listens = words[3] == "0A"
                assert row[6:9] == ((None, received, None) if listens else (received, None, sent))
                assert row[11] == "ok"
                compared += 1
        assert compared == 8
        for line in made.files[0, "unix"].splitlines()[1:]:
            words = line.split()
            if words and int(words[6]) in found:
                row = found[int(words[6])]
                assert row[:2] == ("unix", None)
                assert row[2] == (words[7] if len(words) > 7 else None)
                assert row[9] == ("listen" if int(words[3], 16) & 0x10000 else "established")
                compared += 1
        assert compared == 12
        sql = "SELECT sum(receive_bytes) FROM dump_sockets WHERE family = 'unix'"
        assert session.fetch(sql) == [(10,)]
        sockets = session.fetch("SELECT inode FROM dump_files WHERE kind = 'socket' ORDER BY inode")
        assert sockets == [(inode,) for inode in sorted(found)]

    def test_what_the_kernel_keeps_twice_agrees(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        session = read(dumps[version].core)
        rows = session.fetch("SELECT name, found, expected, status FROM dump_counts")
        assert len(rows) == 6
        assert [row for row in rows if row[3] != "ok" or row[1] != row[2]] == []
        counted = {name: found for name, found, _, _ in rows}
        [(tasks,)] = session.fetch("SELECT count(*) FROM dump_tasks WHERE pid > 0")
        assert counted["tasks in the list"] == tasks
        [(records,)] = session.fetch("SELECT count(*) FROM dump_log")
        assert counted["records of the log"] == records


def internet(text: str) -> tuple[str, int]:
    """An address and port as /proc/net has them: words of four bytes, each the other way round."""
    address, port = text.split(":")
    words = (bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8))
    return str(ipaddress.ip_address(b"".join(words))), int(port, 16)
