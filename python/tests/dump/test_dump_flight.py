"""What a flight recorder held when its kernel stopped, out of the dump of that kernel."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from made_dumps import MadeDump, make
from sysdock.analysis import Session
from sysdock.cli import sysdock
from sysdock.dump import Dump
from sysdock.recording import Recording

STORE = b"\xf5sdfligh"
RECORD = b"\xf5sdrecrd"


@pytest.fixture(scope="module")
def flown(tmp_path_factory: pytest.TempPathFactory) -> MadeDump:
    """A dump of a guest in which a flight recorder ran."""
    return make(tmp_path_factory.mktemp("flight"), "6.1", "--flight", "--memory", "512")


@pytest.fixture(scope="module")
def recording(flown: MadeDump, tmp_path_factory: pytest.TempPathFactory, native: Path) -> Path:
    """What was read of it."""
    folder = tmp_path_factory.mktemp("read") / "rec"
    subprocess.run([native, "dump", "run", flown.core, "-o", folder], check=True, capture_output=True)
    return folder


def test_both_captures_are_there_and_complete(recording: Path) -> None:
    manifest = json.loads((recording / "recording.json").read_text())
    assert [capture["recorder"] for capture in manifest["captures"]] == ["dump", "kernel"]
    assert manifest["complete"]
    assert {capture["ended_by"] for capture in manifest["captures"]} == {"end of input"}
    assert manifest["host"] == "crashing"
    assert not (recording / "spool").exists()


def test_the_last_call_is_the_one_that_stopped_the_kernel(flown: MadeDump, recording: Path) -> None:
    with Session(Recording.open(recording)) as session:
        [(call, path, pid)] = session.fetch("SELECT call, path, pid FROM calls ORDER BY ts_ns DESC LIMIT 1")
        # The write that followed never ended.
        assert (call, path, pid) == ("openat", "/proc/sysrq-trigger", 1)
        [(end, text)] = session.fetch("SELECT ts_ns, text FROM marks")
        assert json.loads(text) == [{"code": "marks/stated", "text": "sysrq triggered crash"}]
        [(panic,)] = session.fetch("SELECT ts_ns FROM dump_panic")
        assert abs(end - panic) < 10**7
        [(last,)] = session.fetch("SELECT max(ts_ns) FROM calls")
        # The clock of the kernel's log moves by ticks, which an emulated guest gets late on a busy host.
        assert panic > last - 10**7
        rows = session.run("dump/last_second").dicts()
        [panicked] = [row for row in rows if row["what"].startswith("Kernel panic")]
        assert panicked["kind"] == "log"
        assert panicked["before_ns"] < 10**7


def test_what_found_no_room_is_counted(flown: MadeDump, recording: Path) -> None:
    """A second way to the rings: by the API of dumps, and the layout in crates/bpf/src/bpf/ring.h."""
    with Dump.open(flown.core) as dump:
        maps = dump.read("bpf_map", dump.xarray("map_idr"), "name", "id", "max_entries")
        [store] = maps.where(lambda row: row.name == "sysdock_flight")
        rings = maps.where(lambda row: row.name == "rings" and row.id < store.id).sorted("id")[-1]
        stride = dump.read("bpf_array", rings.address, "elem_size")["elem_size"][0]
        start = rings.address + dump.offset("bpf_array", "value")
        lost = 0
        for cpu in range(rings.max_entries):
            counts = dump.bytes(start + cpu * stride + 128, 32 * 8)
            assert counts is not None
            lost += sum(struct.unpack("<32Q", counts))
    assert json.loads((recording / "recording.json").read_text())["captures"][1]["lost"] == lost


def test_tasks_of_both_are_the_same(flown: MadeDump, recording: Path) -> None:
    with Session(Recording.open(recording)) as session:
        found = dict(session.fetch("SELECT pid, ppid FROM processes WHERE pid = tid"))
        started = {pid for pids in flown.started.values() for pid in pids}
        both = started & set(found)
        assert len(both) > 50
        assert {found[pid] for pid in both} == {1}
        waits = session.fetch("SELECT count(*) FROM run_states WHERE state = 'sleeping'")
        assert waits[0][0] > 20
        read = session.fetch("SELECT count(*) FROM block_requests WHERE op = 'read'")
        assert read[0][0] > 10


def test_the_kernel_that_runs_is_read_as_its_dump(flown: MadeDump, recording: Path) -> None:
    """The guest asked about /proc/kcore shortly before it died."""
    about, tables = (json.loads(line)["answer"] for line in flown.files[0, "kcore"].splitlines())
    assert (about["format"], about["release"][:4]) == ("kcore", "6.1.")
    assert about["remarks"] == [{"code": "dump/kernel_ran"}]
    found = {name: dict(columns) for name, columns in tables["tables"]}
    with Session(Recording.open(recording)) as session:
        locks = session.fetch("SELECT kind, holder_pid, waiter_pid, depth, root_pid FROM dump_locks")
        waits = session.fetch("SELECT pid, comm, wait_function FROM dump_tasks WHERE state = 'D'")
    names = ("kind", "holder_pid", "waiter_pid", "depth", "root_pid")
    assert sorted(zip(*(found["dump_locks"][name] for name in names), strict=True)) == sorted(locks)
    tasks = found["dump_tasks"]
    read = zip(tasks["pid"], tasks["comm"], tasks["wait_function"], tasks["state"], strict=True)
    # Hanging processes stay so.
    hanging = {
        pid for name in ("chain-splicer", "chain-pipe", "chain-file", "seeker") for pid in flown.started[name]
    }
    assert {row[:3] for row in read if row[0] in hanging and row[3] == "D"} == {
        row for row in waits if row[0] in hanging
    }
    assert len(hanging) == 10


def test_only_what_was_asked_for_is_read(flown: MadeDump, tmp_path: Path) -> None:
    done = CliRunner().invoke(sysdock, ["dump", "run", "ps-cpu", str(flown.core), "-o", str(tmp_path / "a")])
    assert done.exit_code == 0, done.output
    assert not (tmp_path / "a" / "calls").exists()
    done = CliRunner().invoke(
        sysdock, ["dump", "run", "last-second", str(flown.core), "-o", str(tmp_path / "b")]
    )
    assert done.exit_code == 0, done.output
    assert (tmp_path / "b" / "calls").exists()


@pytest.mark.parametrize("damage", ["head", "records", "some"])
def test_damaged_memory_is_counted(flown: MadeDump, tmp_path: Path, native: Path, damage: str) -> None:
    core, folder = tmp_path / "core", tmp_path / "rec"
    shutil.copy(flown.core, core)
    with open(core, "r+b") as file:
        data = file.read()
        if damage == "head":
            # All pages that begin with it: also a copy that nobody uses any more.
            places = [at for at in find(data, STORE) if data[at + 8 : at + 16] == struct.pack("<II", 1, 4096)]
            assert places
            for at in places:
                file.seek(at)
                file.write(bytes(8))
        else:
            places = [at for at in find(data, RECORD) if data[at + 44 : at + 48] == bytes(4)]
            assert len(places) > 20
            for at in places if damage == "records" else places[len(places) // 2 :: 7]:
                file.seek(at + 52)
                file.write(b"damaged!")
    done = subprocess.run(
        [native, "dump", "run", core, "-o", folder], capture_output=True, text=True, check=True
    )
    captures = json.loads((folder / "recording.json").read_text())["captures"]
    if damage == "some":
        assert "parts cannot be read" in done.stderr
        assert len(captures) == 2
    else:
        assert "its contents cannot be read" in done.stderr
        assert len(captures) == 1
    assert not (folder / "spool").exists()
    with Session(Recording.open(folder)) as session:
        assert session.fetch("SELECT count(*) > 200 FROM dump_tasks") == [(True,)]


def find(data: bytes, wanted: bytes) -> list[int]:
    places, at = [], data.find(wanted)
    while at >= 0:
        places.append(at)
        at = data.find(wanted, at + 1)
    return places
