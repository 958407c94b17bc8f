"""Power cuts: whatever of the log of writes is on the disk, a recording that is there is one that was promised, and whole.

Each writer runs once below strace; then every state that a file system may be left in (`power_cut.py`) is made and read.
`SYSDOCK_SAMPLES=all` looks at all states of all writers, else at some of each.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
from make_recording import RecordingMaker
from power_cut import Cut, Disk, Replayed, State, cuts, fingerprint
from sampling import ALL, sampled, some
from sysdock.errors import UserError
from sysdock.recording import Recording
from traced_writes import Change, files_of, traced
from writers import (
    EXPERIMENT,
    SYSDOCK,
    TESTDATA,
    Rows,
    check_part_of,
    folder_in_memory,
    image_of_a_disk,
    rows_of,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "native"))
from recorders import recorder_or_skip

MOST_STATES = sampled(40, 150)
MANIFEST = "rec/recording.json"


@dataclass(frozen=True)
class Written:
    """What a writer did: the folder before, each change, the folder afterwards."""

    before: State
    changes: list[Change]
    after: State

    def versions(self, path: str) -> list[tuple[int, bytes | None]]:
        """What a file that is replaced as a whole held, and behind how many changes it did."""
        found: list[tuple[int, bytes | None]] = [(0, self.before.get(path))]
        disk = Disk(self.before)
        for number, change in enumerate(self.changes, 1):
            disk.apply(change)
            if change.kind in ("move", "link") and change.to == path:
                found.append((number, disk.node(path).content))
            elif (change.kind, change.path) in {("remove", path), ("make file", path)}:
                found.append((number, None if change.kind == "remove" else b""))
        return found

    def allowed(self, path: str) -> list[list[bytes | None]]:
        """What the file may hold behind so many changes and more: the last version that was promised, and later ones.

        A version is promised when the next one is begun, and the last of them when the writer has ended.
        """
        versions = self.versions(path)
        begun = {
            number
            for number, change in enumerate(self.changes, 1)
            if change == Change("make file", f"{path}.new")
        }
        allowed, promised = [], 0
        for at in range(len(self.changes) + 1):
            seen = sum(number <= at for number, _ in versions)
            if at in begun or at == len(self.changes):
                promised = seen - 1
            allowed.append([content for _, content in versions[promised:seen]])
        return allowed


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """The folder that loses power."""
    with folder_in_memory(tmp_path) as folder:
        yield folder


@pytest.fixture
def copies(tmp_path: Path) -> Iterator[Path]:
    """Where folders are put into the states that a power cut leaves."""
    with folder_in_memory(tmp_path) as folder:
        yield folder


@pytest.fixture
def writes(disk: Path, tmp_path: Path) -> Callable[..., Written]:
    """Runs a writer, which must succeed."""

    def writes_(*command: str | Path, follow: bool = True) -> Written:
        before = files_of(disk)
        changes, done = traced(disk, tmp_path / "calls", command, follow=follow)
        assert done.returncode == 0, done.stderr
        return Written(before, changes, files_of(disk))

    return writes_


@dataclass
class Reader:
    """Reads recordings in states of a disk, and counts."""

    replayed: Replayed
    read: dict[bytes, Rows]
    counts: Counter[str]

    def check(self, cut: Cut, allowed: Sequence[bytes | None]) -> None:
        """That there is a recording which was promised, whole; or, where none was, none or an error."""
        there = cut.state.get(MANIFEST)
        # A plain `in` would print all files when it fails.
        promised = there in allowed
        assert promised, f"behind {cut.at} changes recording.json is not what was promised: {there!r}"
        self.replayed.put(cut.state)
        folder = self.replayed.folder / "rec"
        if there is None:
            self.counts["none"] += 1
            with pytest.raises(UserError, match=r"no such recording|has no recording\.json"):
                Recording.open(folder)
            return
        recording = Recording.open(folder)
        recording.verify(recording.tables)
        self.counts["complete" if recording.manifest["complete"] else "incomplete"] += 1
        if there not in self.read:
            self.read[there] = rows_of(folder)

    def check_rows(self, last: bytes) -> None:
        """That every recording that was read holds nothing but rows of the last one."""
        for rows in self.read.values():
            check_part_of(rows, self.read[last])


def spread(found: Iterator[Cut], key: Callable[[Cut], object]) -> list[Cut]:
    """States that differ, or in what is asked of them, which `key` gives; some of many, spread evenly."""
    known: dict[tuple[object, bytes], Cut] = {}
    for cut in found:
        known.setdefault((key(cut), fingerprint(cut.state)), cut)
    every = list(known.values())
    if ALL or len(every) <= MOST_STATES:
        return every
    return [every[number * (len(every) - 1) // (MOST_STATES - 1)] for number in range(MOST_STATES)]


@pytest.fixture
def check_recording(copies: Path) -> Callable[[Written], list[Cut]]:
    """Looks at the recording in every state; gives the states."""

    def check(written: Written) -> list[Cut]:
        reader = Reader(Replayed(copies / "replayed"), {}, Counter())
        allowed = written.allowed(MANIFEST)
        found = cuts(written.before, written.changes, written.after)
        states = spread(found, lambda cut: tuple(map(id, allowed[cut.at])))
        for cut in states:
            reader.check(cut, allowed[cut.at])
        reader.check_rows(written.after[MANIFEST])
        print(f"{len(written.changes)} changes, {len(states)} states: {dict(reader.counts)}")
        return states

    return check


# Recordings, by the native half


@pytest.mark.parametrize("log", ["shell.f.strace", "threads.ttt_T_y.strace"])
def test_an_import(log: str, native: Path, disk: Path, writes: Callable, check_recording: Callable) -> None:
    check_recording(writes(native, "import", TESTDATA / log, "-o", disk / "rec"))


def test_an_import_into_folders_that_are_made(
    native: Path, disk: Path, writes: Callable, tmp_path: Path
) -> None:
    written = writes(native, "import", TESTDATA / "shell.f.strace", "-o", disk / "new" / "newer" / "rec")
    last = [
        cut.state
        for cut in cuts(written.before, written.changes, written.after)
        if cut.at == len(written.changes)
    ]
    assert all("new/newer/rec/recording.json" in state for state in last)


def test_strace_as_recorder(native: Path, disk: Path, writes: Callable, check_recording: Callable) -> None:
    """Each pause is longer than the time after which all that was read is listed."""
    script = "for i in 1 2 3; do cat /etc/hostname > /dev/null; sleep 1.3; done"
    command = recorder_or_skip(native, "strace").command(disk / "rec", "sh", "-c", script)
    written = writes(*command, follow=False)
    check_recording(written)
    assert len(written.versions(MANIFEST)) >= 4


def test_the_kernel_as_recorder(
    native: Path, disk: Path, writes: Callable, check_recording: Callable, copies: Path
) -> None:
    script = "cat /etc/hostname; sleep 1.5; cat /etc/hostname"
    written = writes(*recorder_or_skip(native, "kernel").command(disk / "rec", "sh", "-c", script))
    states = check_recording(written)
    synced = next(at for at, change in enumerate(written.changes, 1) if change == Change("sync", "rec/spool"))
    assert all("rec/spool" in cut.state for cut in states if cut.at >= synced and not is_complete(cut.state))
    salvaged = Replayed(copies / "salvaged")
    whole = calls_of(disk / "rec")
    for cut in some_with_spool(states, written):
        salvaged.put(cut.state)
        done = subprocess.run(
            [native, "salvage", salvaged.folder / "rec"], capture_output=True, text=True, check=False
        )
        assert (done.returncode, "panicked" in done.stderr) in [(0, False), (2, False)], done.stderr
        if done.returncode == 0:
            rows_of(salvaged.folder / "rec")
            assert not calls_of(salvaged.folder / "rec") - whole
        salvaged.forget()


def calls_of(folder: Path) -> Counter[tuple]:
    """Its calls by time and name. Of one CPU the last events may be missing, and with them whose program it was."""
    parts = [str(path) for path in Recording.open(folder).parts("calls")]
    sql = "SELECT ts_ns, call FROM read_parquet($parts)"
    return Counter(duckdb.execute(sql, {"parts": parts}).fetchall() if parts else [])


def is_complete(state: State) -> bool:
    """Whether the recording says so."""
    return b'"complete": true,\n  "captures"' in (state.get(MANIFEST) or b"")


def some_with_spool(states: list[Cut], written: Written) -> Iterator[Cut]:
    """States in which events wait for their tables: of each cut those that differ in spool or recording.json."""
    known = set()
    for cut in states:
        files = (cut.state.get("rec/spool"), cut.state.get(MANIFEST))
        if None not in files and not is_complete(cut.state) and files not in known:
            known.add(files)
            yield cut


@pytest.mark.more
def test_salvage(native: Path, disk: Path, writes: Callable, check_recording: Callable, copies: Path) -> None:
    """Wherever it is cut off, it can be done again, with the same result."""
    script = "cat /etc/hostname; sleep 1.5; kill -9 $PPID"
    recorder_or_skip(native, "kernel").record(disk / "rec", "sh", "-c", script)
    written = writes(native, "salvage", disk / "rec")
    states = check_recording(written)
    whole, files = rows_of(disk / "rec"), tables_of(disk / "rec")
    salvaged = Replayed(copies / "salvaged")
    for cut in states:
        if cut.state[MANIFEST] == written.after[MANIFEST]:
            continue
        salvaged.put(cut.state)
        done = subprocess.run(
            [native, "salvage", salvaged.folder / "rec"], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), cut.at
        # Equal files have equal rows, and are read sooner.
        again = Recording.open(salvaged.folder / "rec")
        again.verify(again.tables)
        assert tables_of(again.folder) == files or rows_of(again.folder) == whole
        salvaged.forget()


def tables_of(folder: Path) -> dict[str, bytes]:
    """The Parquet files of a recording, by name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.glob("*/*.parquet"))}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """An image of a small file system."""
    return image_of_a_disk(tmp_path)


def test_a_scan(native: Path, image: Path, disk: Path, writes: Callable, check_recording: Callable) -> None:
    check_recording(writes(native, "disk", "scan", image, "--no-measure", "-o", disk / "rec"))


def test_a_scan_into_a_recording(
    native: Path, image: Path, disk: Path, writes: Callable, check_recording: Callable
) -> None:
    """What the recording held before is there whatever becomes of the scan."""
    log = TESTDATA / "shell.f.strace"
    subprocess.run([native, "import", log, "-o", disk / "rec"], check=True)
    check_recording(writes(native, "disk", "scan", image, "--no-measure", "--into", "-o", disk / "rec"))


# What the Python half writes


@pytest.fixture
def recording(maker: RecordingMaker, disk: Path) -> Path:
    """A small recording on the disk that loses power."""
    return Path(shutil.copytree(maker.make(), disk / "rec"))


def check_files(written: Written, *paths: str) -> int:
    """That each file is at any time what it was or what it becomes, and at the end what it became."""
    states = spread(
        cuts(written.before, written.changes, written.after), lambda cut: cut.at == len(written.changes)
    )
    for path in paths:
        allowed = written.allowed(path)
        assert written.versions(path)[-1][1] == written.after[path]
        for cut in states:
            is_whole = cut.state.get(path) in allowed[cut.at]
            assert is_whole, f"behind {cut.at} changes {path} is neither as it was nor as it becomes"
    print(f"{len(written.changes)} changes, {len(states)} states")
    return len(states)


@pytest.mark.parametrize("there", some([True, False], 2))
def test_a_report(there: bool, recording: Path, writes: Callable) -> None:
    if there:
        (recording / "report.html").write_text("the one before")
    written = writes(*SYSDOCK, "report", recording)
    check_files(written, "rec/report.html", MANIFEST)


@pytest.mark.parametrize("there", some([True, False], 2))
def test_a_time_line(there: bool, recording: Path, disk: Path, writes: Callable) -> None:
    if there:
        (disk / "out.json.gz").write_text("the one before")
    check_files(
        writes(*SYSDOCK, "export", recording, "--to", "chrome", "-o", disk / "out.json.gz"), "out.json.gz"
    )


@pytest.mark.parametrize("format_", some(["parquet", "csv"], 2))
def test_exported_tables(format_: str, recording: Path, disk: Path, writes: Callable) -> None:
    written = writes(*SYSDOCK, "export", recording, "--to", format_, "-o", disk / "new" / "tables")
    tables = [
        path
        for path, content in written.after.items()
        if path.startswith("new/tables/") and content is not None
    ]
    assert len(tables) > 5
    check_files(written, *tables)


def test_a_bundle_and_its_key(recording: Path, disk: Path, writes: Callable) -> None:
    written = writes(*SYSDOCK, "checkup", recording, "-o", disk / "bundle.tar.gz", "--hash-names")
    check_files(written, "bundle.tar.gz")
    for cut in cuts(written.before, written.changes, written.after):
        if "bundle.tar.gz" in cut.state:
            assert cut.state.get("bundle.tar.gz.key") == written.after["bundle.tar.gz.key"], cut.at


@pytest.mark.more
def test_an_experiment(disk: Path, writes: Callable, check_recording: Callable) -> None:
    written = writes(sys.executable, "-c", EXPERIMENT, disk / "rec")
    check_recording(written)
    check_files(written, "rec/documents/environment.html", "rec/documents/results.md")
    assert len(written.versions(MANIFEST)) >= 8
