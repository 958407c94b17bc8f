"""Dumps of real kernels, against what those said of themselves before they died."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from made_dumps import MadeDump, make_once
from sampling import sampled
from sysdock.analysis import Session
from sysdock.cli import sysdock
from sysdock.errors import UserError
from sysdock.recording import Recording
from sysdock.sentences import facts_from_json, say

TICK_NS = 10**7
VERSIONS = ["6.1", pytest.param("6.12", marks=pytest.mark.guest)]
TABLES = (
    *("dump_tasks", "dump_stacks", "dump_frames", "dump_locks", "dump_log", "dump_memory", "dump_slabs"),
    *("dump_files", "dump_mounts", "dump_modules", "dump_cpus", "dump_panic", "dump_requests"),
    *("dump_sockets", "dump_counts"),
)


@pytest.fixture
def call() -> Callable[..., Result]:
    """Runs `sysdock` with these words."""
    return lambda *words: CliRunner().invoke(sysdock, [str(word) for word in words])


def stat_of(made: MadeDump, pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on."""
    text = made.files[pid, "stat"]
    return text[text.rindex(")") + 2 :].split()


@pytest.mark.parametrize("version", VERSIONS)
class TestTruth:
    def test_tasks_are_those_of_proc(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        made = dumps[version]
        sql = """SELECT pid, comm, state, ppid, wait_function, read_bytes, write_bytes, status
            FROM dump_tasks WHERE pid <> 0"""
        found = {row[0]: row[1:] for row in read(made.core).fetch(sql)}
        known = {pid for pid, name in made.files if name == "stat" and pid}
        assert set(found) == known
        # The first process and threads of the kernel went on while it wrote this down.
        moved_on = {pid for pid in known if stat_of(made, pid)[0] == "R" or pid == 1}
        differing = []
        for pid in known - moved_on:
            comm, state, ppid, function, read_bytes, write_bytes, status = found[pid]
            stat = stat_of(made, pid)
            io = dict(line.split(": ") for line in made.files[pid, "io"].splitlines() if ": " in line)
            waits = made.files[pid, "wchan"].strip()
            same = (stat[0], int(stat[1]), waits, int(io["read_bytes"]), int(io["write_bytes"]), "ok")
            if same != (state, ppid, function or "0", read_bytes, write_bytes, status):
                differing.append((pid, comm, same, found[pid]))
        of_user = {pid for pids in made.started.values() for pid in pids}
        assert [each for each in differing if each[0] in of_user] == []
        assert len(differing) <= len(known) // 50, differing

    def test_names_of_threads_of_the_kernel_are_those_of_proc(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        made = dumps[version]
        rows = read(made.core).fetch("SELECT pid, comm, full_name, run_ns FROM dump_tasks WHERE pid <> 0")
        compared = {}
        for pid, comm, full_name, run_ns in rows:
            # Who ran on may have worked on something else since.
            if int(made.files[pid, "schedstat"].split()[0]) == run_ns:
                text = made.files[pid, "stat"]
                assert full_name == text[text.index("(") + 1 : text.rindex(")")], pid
                compared[full_name] = comm
        assert compared["sleeper"] == "sleeper"
        assert compared["rcu_tasks_kthread"] == "rcu_tasks_kthre"
        assert [name for name in compared if name.startswith("kworker/") and "-" in name]

    def test_cpu_times_are_within_a_tick(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        made = dumps[version]
        rows = read(made.core).fetch("SELECT pid, user_ns, system_ns FROM dump_tasks WHERE pid <> 0")
        far = []
        for pid, user_ns, system_ns in rows:
            user, system = (int(ticks) for ticks in stat_of(made, pid)[11:13])
            if abs(user_ns // TICK_NS - user) > 1 or abs(system_ns // TICK_NS - system) > 1:
                far.append(pid)
        burners = made.started["burner"]
        assert not set(far) & set(burners)
        assert len(far) <= len(rows) // 50, far
        used = {pid: user_ns + system_ns for pid, user_ns, system_ns in rows}
        for number, pid in enumerate(burners, 1):
            assert used[pid] >= number * TICK_NS

    def test_memory_is_exact(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        made = dumps[version]
        found = dict(read(made.core).fetch("SELECT pid, rss_bytes FROM dump_tasks"))
        compared = 0
        for pids in made.started.values():
            for pid in pids:
                lines = made.files[pid, "smaps_rollup"].splitlines()
                [resident] = [int(line.split()[1]) * 1024 for line in lines if line.startswith("Rss:")]
                assert found[pid] == resident, pid
                compared += 1
        assert compared > 130

    def test_the_chain_of_locks_is_followed(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        made = dumps[version]
        session = read(made.core)
        [head], [splicer] = made.started["chain-head"], made.started["chain-splicer"]
        sql = "SELECT kind, holder_pid, waiter_pid, depth, root_pid, status FROM dump_locks"
        wanted = {("rwsem", head, splicer, 1, head, "ok")}
        wanted |= {("mutex", splicer, pid, 2, head, "ok") for pid in made.started["chain-pipe"]}
        wanted |= {("rwsem", head, pid, 1, head, "ok") for pid in made.started["chain-file"]}
        assert set(session.fetch(sql)) == wanted
        assert session.fetch("SELECT count(DISTINCT lock) FROM dump_locks") == [(2,)]
        findings = {finding.rule: finding for finding in session.diagnose()}
        assert findings["dump/lock_chain"].subject == f"chain-head ({head})"
        assert findings["dump/lock_chain"].value == 9
        assert findings["dump/panic"].subject == "sysrq triggered crash"

    def test_stacks_lead_to_where_the_kernel_was_entered(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        session = read(dumps[version].core)
        stacks = session.fetch("SELECT frames, tasks, status FROM dump_stacks")
        assert {status for _, _, status in stacks} == {"ok"}
        ends = Counter(frames.split(" < ")[-1].split(".")[0] for frames, _, _ in stacks)
        entries = {
            "entry_SYSCALL_64_after_hwframe",
            "ret_from_fork",
            "ret_from_fork_asm",
            "asm_exc_page_fault",
            # User code, when the kernel stopped its processor.
            "asm_sysvec_reboot",
        }
        assert set(ends) <= entries | {"secondary_startup_64_no_verify", "common_startup_64"}, ends
        [crash] = [frames for frames, _, _ in stacks if "sysrq_handle_crash" in frames]
        assert "write_sysrq_trigger" in crash
        [(tasks, different)] = session.fetch("SELECT sum(tasks), count(*) FROM dump_stacks")
        assert tasks > 5 * different

    def test_memory_and_its_caches_are_those_of_proc(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        made = dumps[version]
        session = read(made.core)
        used = dict(session.fetch("SELECT name, bytes FROM dump_memory"))
        lines = (line.split() for line in made.files[0, "meminfo"].splitlines())
        said = {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines if len(words) > 1}
        assert used["total"] == said["MemTotal"]
        # The others change by some pages while the guest writes this down.
        for name, other in (("free", "MemFree"), ("NR_ANON_MAPPED", "AnonPages"), ("NR_SHMEM", "Shmem")):
            assert abs(used[name] - said[other]) < 1 << 20, name
        slabs = {row[0]: row[1:] for row in session.fetch("SELECT name, objects, slabs FROM dump_slabs")}
        rows = [line.split() for line in made.files[0, "slabinfo"].splitlines()[2:] if line]
        differing = [row[0] for row in rows if slabs[row[0]] != (int(row[2]), int(row[14]))]
        assert len(rows) > 100
        assert len(differing) <= len(rows) // 10, differing
        assert session.fetch("SELECT DISTINCT status FROM dump_slabs") == [("ok",)]

    def test_open_files_are_those_of_proc(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        made = dumps[version]
        session = read(made.core)
        found: dict[int, dict[int, str]] = {}
        for pid, fd, path, status in session.fetch("SELECT pid, fd, path, status FROM dump_files"):
            assert status == "ok"
            found.setdefault(pid, {})[fd] = path
        compared = 0
        for pids in made.started.values():
            for pid in pids:
                lines = (line.split(" ", 1) for line in made.files[pid, "fds"].splitlines())
                assert found[pid] == {int(fd): path for fd, path in lines}
                compared += len(found[pid])
        assert compared > 1000
        [writer] = made.started["writer"]
        sql = f"SELECT path, kind, position_bytes, size_bytes FROM dump_files WHERE pid = {writer} AND kind = 'file'"
        assert ("/tmp/written", "file", 8 << 20, 8 << 20) in session.fetch(sql)

    def test_mounts_modules_and_processors_are_those_of_proc(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        made = dumps[version]
        session = read(made.core)
        mounts = {tuple(line.split()[:3]) for line in made.files[0, "mounts"].splitlines() if line}
        assert set(session.fetch("SELECT source, path, fs_type FROM dump_mounts")) == mounts
        lines = (line.split() for line in made.files[0, "modules"].splitlines() if line)
        modules = {(words[0], int(words[1]), int(words[2])) for words in lines}
        assert set(session.fetch("SELECT name, bytes, users FROM dump_modules")) == modules
        stat = (line.split() for line in made.files[0, "stat"].splitlines())
        times = {words[0]: [int(number) for number in words[1:]] for words in stat if words}
        for cpu, user_ns, idle_ns in session.fetch("SELECT cpu, user_ns, idle_ns FROM dump_cpus"):
            user, _, _, idle = times[f"cpu{cpu}"][:4]
            # It went on while the guest wrote this down, and user code does little meanwhile.
            assert user * TICK_NS <= user_ns <= (user + 50) * TICK_NS
            assert idle_ns >= idle * TICK_NS
        assert session.fetch("SELECT count(*) FROM dump_cpus") == [(2,)]
        assert session.fetch("SELECT count(*) FROM dump_cpus WHERE current_pid = 1") == [(1,)]

    def test_the_log_is_that_of_the_console(
        self, version: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        made = dumps[version]
        texts = [text for (text,) in read(made.core).fetch("SELECT text FROM dump_log ORDER BY sequence")]
        console = made.console()
        begin = "sysrq: Trigger a crash"
        assert texts[texts.index(begin) :] == console[console.index(begin) :]


class TestFormats:
    @pytest.mark.parametrize("name", ["core.lzo", "core.zlib", "core.flat", "core.31"])
    def test_what_makedumpfile_wrote_says_the_same(
        self, name: str, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        made = dumps["6.1"]
        one, other = read(made.core), read(made.folder / name)
        for table in TABLES:
            assert one.fetch(f"FROM {table}") == other.fetch(f"FROM {table}"), table
        assert other.fetch("SELECT count(*) FROM import_issues") == [(0,)]

    def test_notes_that_are_missing_are_found_in_the_memory(
        self, dumps: dict[str, MadeDump], tmp_path: Path, read: Callable[..., Session]
    ) -> None:
        core = dumps["6.1"].core
        with open(core, "rb") as file:
            note = file.read(8192).index(b"VMCOREINFO\0")
        session = read(patched(core, tmp_path, {note: b"XMCOREINFO"}))
        assert session.fetch("SELECT issue, understood FROM import_issues") == [("dump_remark", True)]
        assert session.fetch("FROM dump_locks") == read(core).fetch("FROM dump_locks")

    def test_one_question_writes_its_tables_only(
        self, dumps: dict[str, MadeDump], tmp_path: Path, call: Callable[..., Result]
    ) -> None:
        done = call("dump", "run", "ps-cpu", dumps["6.1"].core, "-o", tmp_path / "rec")
        assert done.exit_code == 0, done.output
        tables = set(json.loads((tmp_path / "rec" / "recording.json").read_text())["tables"])
        assert {"dump_tasks", "crash_dumps"} <= tables
        assert not {"dump_locks", "dump_log"} & tables
        rows = json.loads(call("show", tmp_path / "rec", "dump/tasks", "--format", "json").stdout)
        names = "pid tgid ppid comm state cpu user_ns system_ns run_ns rss_bytes read_bytes write_bytes"
        assert list(rows[0]) == [*names.split(), "wait_function", "status"]

    def test_the_recording_is_of_its_owner_only(
        self, dumps: dict[str, MadeDump], read: Callable[..., Session]
    ) -> None:
        assert read(dumps["6.1"].core).recording.folder.stat().st_mode & 0o077 == 0

    def test_info_says_which_kernel_it_is(
        self, dumps: dict[str, MadeDump], call: Callable[..., Result], native: Path
    ) -> None:
        made = dumps["6.12"]
        done = subprocess.run([native, "dump", "info", made.core], capture_output=True, text=True, check=True)
        said = json.loads(done.stdout)
        assert said["release"] in made.files[0, "version"]
        assert (said["format"], said["processors"], said["remarks"]) == ("ELF", 2, [])


def patched(core: Path, folder: Path, changes: dict[int, bytes]) -> Path:
    """A copy of a dump with other bytes at these places of the file."""
    copy = folder / "patched"
    shutil.copy(core, copy)
    with open(copy, "r+b") as file:
        for place, content in changes.items():
            file.seek(place)
            file.write(content)
    return copy


class TestDamage:
    """Nothing ends a walk but its end, and nothing that is wrong stays unsaid."""

    @pytest.fixture
    def leaders(self, dumps: dict[str, MadeDump], read: Callable[..., Session]) -> list[int]:
        """Where processes lie in the file, in the order of the kernel's list; that is without random addresses."""
        direct_map, first = 0xFFFF888000000000, struct.unpack("<Q", _segment(dumps["6.12"].core))[0]
        sql = "SELECT address FROM dump_tasks WHERE pid = tgid AND pid > 0"
        addresses = [address % 2**64 for (address,) in read(dumps["6.12"].core).fetch(sql)]
        return [address - direct_map + first for address in addresses]

    @pytest.fixture
    def node(self, dumps: dict[str, MadeDump], leaders: list[int]) -> int:
        """Where in a task its node of the list of processes is: there it points to the same place of the next one."""
        with open(dumps["6.12"].core, "rb") as file:
            tasks = []
            for place in leaders[10:12]:
                file.seek(place)
                tasks.append(file.read(4096))
        distance = leaders[11] - leaders[10]
        base = 0xFFFF888000000000 - struct.unpack("<Q", _segment(dumps["6.12"].core))[0]
        for offset in range(0, 4096, 8):
            (next_,) = struct.unpack_from("<Q", tasks[0], offset)
            (previous,) = struct.unpack_from("<Q", tasks[1], offset + 8)
            here = base + leaders[10] + offset
            if (next_, previous) == (here + distance, here):
                return offset
        raise AssertionError("no node was found")

    @pytest.mark.parametrize(
        ("target", "issue"),
        [
            ("itself", "the list of processes: cycle"),
            ("earlier", "the list of processes: cycle"),
            ("nowhere", "the list of processes: not mapped"),
            ("odd", "the list of processes: "),
        ],
    )
    def test_a_list_that_has_no_end_is_followed_as_far_as_it_goes(
        self,
        target: str,
        issue: str,
        dumps: dict[str, MadeDump],
        leaders: list[int],
        node: int,
        tmp_path: Path,
        read: Callable[..., Session],
    ) -> None:
        core = dumps["6.12"].core
        base = 0xFFFF888000000000 - struct.unpack("<Q", _segment(core))[0]
        to = {
            "itself": base + leaders[50] + node,
            "earlier": base + leaders[20] + node,
            "nowhere": 0xDEAD000000000100,
            "odd": base + leaders[51] + node + 3,
        }[target]
        session = read(patched(core, tmp_path, {leaders[50] + node: struct.pack("<Q", to)}))
        issues = [detail for (detail,) in session.fetch("SELECT detail FROM import_issues")]
        unread = [say(facts_from_json(detail), "en") for detail in issues if '"dump/unread"' in detail]
        assert [words for words in unread if words.startswith(issue)], issues
        [(tasks,)] = session.fetch("SELECT count(DISTINCT tgid) FROM dump_tasks WHERE status = 'ok'")
        assert tasks >= 51
        findings = {finding.rule: finding for finding in session.diagnose()}
        assert findings["dump/damaged"].status == "finding"
        # Without a cycle it is unknown: what was not read may have one.
        ends = "finding" if any('"why":"cycle"' in detail for detail in issues) else "unknown"
        assert findings["dump/endless_list"].status == ends

    @pytest.mark.parametrize("share", [0.0, 1e-5, 0.02, 0.3, 0.9])
    @pytest.mark.parametrize("name", ["core", "core.lzo", "core.flat"])
    def test_a_file_that_was_cut_off(
        self, name: str, share: float, dumps: dict[str, MadeDump], tmp_path: Path, native: Path
    ) -> None:
        whole = (dumps["6.1"].folder / name).read_bytes()
        cut = tmp_path / "cut"
        cut.write_bytes(whole[: int(len(whole) * share)])
        done = _ends_well([native, "dump", "run", cut, "-o", tmp_path / "rec"])
        if done.returncode == 0:
            with Session(Recording.open(tmp_path / "rec")) as session:
                assert session.fetch("SELECT count(*) > 0 FROM import_issues") == [(True,)]

    def test_headers_that_lie(self, dumps: dict[str, MadeDump], tmp_path: Path, native: Path) -> None:
        whole = (dumps["6.1"].folder / "core.lzo").read_bytes()
        everywhere = (b"\0\0\0\0", b"\xff\xff\xff\xff", b"\1\0\0\0", b"\0\0\0\x80")
        places = (
            8,
            428,
            432,
            436,
            440,
            460,
            4096 + 8,
            4096 + 32,
            4096 + 36,
            4096 + 40,
            4096 + 48,
            4096 + 56,
            8192,
        )
        for number, place in enumerate(places):
            for content in sampled(everywhere[number % 2 :: 2], everywhere):
                bad = tmp_path / "bad"
                bad.write_bytes(whole[:place] + content + whole[place + 4 :])
                shutil.rmtree(tmp_path / "rec", ignore_errors=True)
                _ends_well([native, "dump", "run", bad, "-o", tmp_path / "rec"])

    def test_headers_of_elf_that_lie(self, dumps: dict[str, MadeDump], tmp_path: Path, native: Path) -> None:
        core = dumps["6.1"].folder / "core.31"
        everywhere = (b"\0\0\0\0\0\0\0\0", b"\xff" * 8, b"\0\0\0\0\0\0\0\x40")
        places = (
            4,
            16,
            18,
            32,
            36,
            56,
            64,
            72,
            80,
            88,
            96,
            64 + 56,
            64 + 56 + 8,
            64 + 56 + 24,
            64 + 56 + 32,
        )
        for number, place in enumerate(places):
            for content in sampled((everywhere[number % 3],), everywhere):
                bad = patched(core, tmp_path, {place: content})
                shutil.rmtree(tmp_path / "rec", ignore_errors=True)
                _ends_well([native, "dump", "run", bad, "-o", tmp_path / "rec"])

    def test_pages_that_cannot_be_decompressed_have_a_status(
        self, dumps: dict[str, MadeDump], tmp_path: Path, read: Callable[..., Session]
    ) -> None:
        whole = bytearray((dumps["6.1"].folder / "core.zlib").read_bytes())
        for place in range(len(whole) // 4, len(whole), 60_000):
            whole[place] ^= 0x5A
        bad = tmp_path / "bad"
        bad.write_bytes(whole)
        session = read(bad)
        sql = "SELECT count(*) FROM import_issues WHERE issue LIKE 'dump%' AND detail LIKE '%damaged page%'"
        of_tasks = session.fetch("SELECT count(*) FROM dump_tasks WHERE status = 'damaged page'")[0][0]
        of_stacks = session.fetch("SELECT count(*) FROM dump_stacks WHERE status = 'damaged page'")[0][0]
        assert session.fetch(sql)[0][0] + of_tasks + of_stacks > 0


def _segment(core: Path) -> bytes:
    """Where in the file physical memory begins: the offset of the first segment of it."""
    with open(core, "rb") as file:
        head = file.read(4096)
    place, count = struct.unpack_from("<Q", head, 32)[0], struct.unpack_from("<H", head, 56)[0]
    for number in range(count):
        entry = head[place + 56 * number : place + 56 * (number + 1)]
        if struct.unpack_from("<I", entry)[0] == 1:
            return entry[8:16]
    raise AssertionError("no memory")


def _ends_well(command: list[object]) -> subprocess.CompletedProcess[str]:
    """The program says what is wrong, or reads what it can; it never panics, and is never killed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode in (0, 2), (done.returncode, done.stderr)
    assert "panicked" not in done.stderr, done.stderr
    return done


@pytest.mark.more
def test_several_threads_read_what_one_reads(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, native: Path
) -> None:
    words = ["--sleepers", "5000", "--no-truth", "--memory", "768", "--compressed"]
    made = make_once(tmp_path_factory, "many", "6.1", *words)
    # As many threads as it may use processors.
    for name in ("core", "core.lzo"):
        sessions = []
        for processors in ("0", f"0-{(os.cpu_count() or 1) - 1}"):
            folder = tmp_path / f"{name}-{processors}"
            words = ["dump", "run", str(made.folder / name), "-o", str(folder)]
            command = ["taskset", "-c", processors, str(native), *words]
            subprocess.run(command, check=True, capture_output=True)
            sessions.append(Session(Recording.open(folder)))
        one, several = sessions
        for table in TABLES:
            # Equal files have equal rows, and need not be read.
            if files_of(one, table) != files_of(several, table):
                assert one.fetch(f"FROM {table}") == several.fetch(f"FROM {table}"), table
        sql = "SELECT count(*), count(stack_id) FROM dump_tasks WHERE comm = 'sleeper' AND status = 'ok'"
        assert several.fetch(sql) == [(5000, 5000)]


def files_of(session: Session, table: str) -> list[bytes]:
    """The contents of the files of a table."""
    return [part.read_bytes() for part in session.recording.parts(table)]


class TestInterrupts:
    def test_what_was_read_until_then_is_a_recording(
        self, dumps: dict[str, MadeDump], tmp_path: Path, native: Path
    ) -> None:
        whole = None
        for number in range(20):
            out = tmp_path / f"rec-{number}"
            command = [str(native), "dump", "run", str(dumps["6.1"].folder / "core.zlib"), "-o", str(out)]
            with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as reader:
                # Signals are heard before there is a folder.
                while not out.exists() and reader.poll() is None:
                    time.sleep(0.001)
                time.sleep(number / 500)
                reader.send_signal(signal.SIGINT)
                said = reader.communicate()[1]
            assert "panicked" not in said
            ended = {0: "end of input", 130: "interrupted"}[reader.returncode]
            if not (out / "recording.json").exists():
                # It had not even begun.
                assert ended == "interrupted"
                continue
            with Session(Recording.open(out)) as session:
                assert session.recording.captures[0]["ended_by"] == ended
                assert session.fetch("SELECT count(*) FROM crash_dumps") == [(1,)]
                # No part that has not begun looks as if it had nothing to say.
                held = set(session.views.available)
                if ended == "end of input":
                    whole = held
                elif "dump_tasks" in held:
                    assert session.fetch("SELECT count(*) > 0 FROM dump_tasks") == [(True,)]
        assert whole is None or set(TABLES) <= whole


class TestRefusals:
    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"", "shorter than the header"),
            (b"not a dump at all", "neither an ELF core nor a dump"),
            (b"KDUMP   " + bytes(500), "its blocks have 0 bytes"),
            (b"\x7fELF\x02\x01\x01" + bytes(60), "another machine than x86-64"),
            (b"makedumpfile\0\0\0\0" + bytes(5000), "shorter than the header"),
        ],
    )
    def test_what_is_no_dump(self, content: bytes, said: str, tmp_path: Path, native: Path) -> None:
        (tmp_path / "core").write_bytes(content)
        done = _ends_well([native, "dump", "run", tmp_path / "core", "-o", tmp_path / "rec"])
        assert done.returncode == 2
        assert said in done.stderr
        assert not (tmp_path / "rec").exists()

    def test_a_program_and_a_folder_are_no_dumps(self, tmp_path: Path, native: Path) -> None:
        for path, said in (
            ("/bin/true", "no core"),
            (tmp_path, "not a regular file"),
            ("/none", "No such file"),
        ):
            done = _ends_well([native, "dump", "info", path])
            assert done.returncode == 2
            assert said in done.stderr

    def test_a_question_that_is_not_known(self, tmp_path: Path, call: Callable[..., Result]) -> None:
        done = call("dump", "run", "ps-cup", "core", "-o", tmp_path / "rec")
        assert isinstance(done.exception, UserError)
        assert "ps-cpu" in str(done.exception.hint)

    def test_a_core_of_a_program_is_no_dump(self, tmp_path: Path, native: Path) -> None:
        core = tmp_path / "core"
        header = bytearray(64 + 56)
        header[:7] = b"\x7fELF\x02\x01\x01"
        struct.pack_into("<HH", header, 16, 4, 62)
        struct.pack_into("<Q", header, 32, 64)
        struct.pack_into("<HH", header, 54, 56, 1)
        struct.pack_into("<IIQQQQQ", header, 64, 1, 4, 4096, 0x400000, 0, 4096, 4096)
        core.write_bytes(bytes(header) + bytes(8192 - len(header)))
        done = _ends_well([native, "dump", "info", core])
        assert done.returncode == 2
        assert "no kernel has left its VMCOREINFO" in done.stderr
