"""Writes that fail: a disk that is full at any byte and at any name, and calls that strace makes fail, for each writer.

Whatever fails, it is said with its reason; what is there is true and can be read, nothing half is left, and a command that
is recorded runs to its end. `SYSDOCK_SAMPLES=all` tries each single call and page, else some of each kind.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pytest
from make_recording import RecordingMaker
from sampling import ALL, sampled
from small_disk import PAGE, resize, small_disk
from traced_writes import files_of
from writers import EXPERIMENT, SYSDOCK, TESTDATA, Rows, check_part_of, image_of_a_disk, rows_of

sys.path.insert(0, str(Path(__file__).parents[1] / "native"))
from recorders import recorder_or_skip

Done = subprocess.CompletedProcess
# Which calls fail, and how.
WRITE, SYNC, MOVE = "write,writev,pwrite64", "fsync,fdatasync", "rename,renameat,renameat2"
FAULTS = (
    (WRITE, "ENOSPC"),
    (WRITE, "EDQUOT"),
    (WRITE, "EIO"),
    (SYNC, "EIO"),
    (MOVE, "EIO"),
    ("mkdir,mkdirat", "ENOSPC"),
    ("openat", "EMFILE"),
    ("openat", "ENOSPC"),
)
# What people read of them, from the operating system or in other words.
REASONS = ("no space left", "quota exceeded", "input/output error", "too many open files", "is full")


@dataclass
class Writer:
    """A command that writes into the folder `disk`, what is there before, and what it writes where nothing fails."""

    command: list[str | Path]
    disk: Path
    before: Path
    # What may fail; a recorder by strace cannot be followed, as nobody is traced twice.
    faults: Sequence[tuple[str, str]] = FAULTS
    follow: bool = True
    status: int = 0
    # Numbers of the calls, or pages, of one kind that fail.
    some: Sequence[int] = sampled((1, 2, 11), (1, 2, 3, 6, 11, 24, 45))
    # Files that it takes away, and others that it writes to.
    taken: set[str] = field(default_factory=set)
    extra: Sequence[str] = ()
    # What it makes elsewhere.
    elsewhere: Sequence[Path] = ()
    # Whether it writes the same rows each time.
    is_repeated: bool = True
    sound: dict[str, bytes | None] = field(default_factory=dict)
    rows: Rows = field(default_factory=dict)

    def prepare(self) -> None:
        """The folder as it is before."""
        for path in self.disk.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self.before, self.disk, dirs_exist_ok=True)
        for path in self.elsewhere:
            path.unlink(missing_ok=True)

    def run(self, *above: str | Path) -> Done:
        """Runs it below another command."""
        words = [*above, *self.command]
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=600, cwd="/")

    def run_soundly(self) -> None:
        """Without a fault, for what is there afterwards."""
        self.prepare()
        done = self.run()
        assert done.returncode == self.status, done.stderr
        self.sound = files_of(self.disk)
        if "rec/recording.json" in self.sound and self.is_repeated:
            self.rows = rows_of(self.disk / "rec")

    def run_with(self, calls: str, error: str, when: str, log: Path) -> tuple[bool, Done]:
        """With calls on its files that fail; whether one did."""
        self.prepare()
        places = {self.disk, *(self.disk / path for path in (*self.sound, *self.extra))}
        # Names that files have until they are whole.
        places |= {
            path.with_name(name) for path in places for name in (f"{path.name}.new", f".{path.name}.part")
        }
        fault = f"inject={calls}:error={error}:when={when}"
        words = ["strace", "-qq", "-o", log, "-e", f"trace={calls}", "-e", fault]
        words += ["-f", "--seccomp-bpf"] if self.follow else []
        # Files that have names by chance until they are whole are synced and renamed, too; nobody else does that.
        words += (
            [word for path in sorted(places) for word in ("-P", path)] if calls not in (SYNC, MOVE) else []
        )
        done = self.run(*words)
        return "(INJECTED)" in log.read_text(errors="replace"), done


def with_faults(writer: Writer, log: Path) -> Iterator[tuple[str, Done]]:
    """Each run in which something failed: one call, or all from one on."""
    if shutil.which("strace") is None:
        pytest.skip("strace is missing")
    if not writer.sound:
        writer.run_soundly()
    # In memory: nothing that is synced there has to be waited for.
    with small_disk(writer.disk, 64 << 20):
        for calls, error in writer.faults:
            for number in range(1, 200) if ALL else writer.some:
                # By turns this call alone, or all from it on.
                for more in ("", "+") if ALL else ("+" if number % 2 else "",):
                    hit, done = writer.run_with(calls, error, f"{number}{more}", log)
                    if hit:
                        yield f"{calls}: {error} at {number}{more}", done
                if not hit:
                    break


def on_full_disks(writer: Writer) -> Iterator[tuple[str, Done]]:
    """Each run on a disk that lacks some room, for bytes or for names, up to one that has enough."""
    if not writer.sound:
        writer.run_soundly()
    for kind in ("pages", "files"):
        for more in range(200) if ALL else (0, *writer.some):
            with small_disk(writer.disk, 64 << 20):
                writer.prepare()
                there = os.statvfs(writer.disk)
                if kind == "pages":
                    # A size of 0 would be no limit.
                    resize(writer.disk, f"size={max(1, there.f_blocks - there.f_bfree + more) * PAGE}")
                else:
                    resize(writer.disk, f"nr_inodes={there.f_files - there.f_ffree + more}")
                done = writer.run()
                left = files_of(writer.disk)
                yield f"{more} {kind} free", done
            if done.returncode == writer.status and not is_said(done) and has_all(left, writer.sound):
                break


def is_said(done: Done) -> bool:
    """Whether it gave a reason that has to do with writing."""
    return any(reason in done.stderr.lower() for reason in REASONS)


def check_left(writer: Writer, what: str) -> None:
    """That nothing half is left: what was there before is, and a recording that is there can be read and is true."""
    left = files_of(writer.disk)
    assert not [path for path in left if path.endswith((".new", ".part")) or "/." in f"/{path}"], (
        f"{what}: {left.keys()}"
    )
    gone = {path.relative_to(writer.before).as_posix() for path in writer.before.rglob("*")} - left.keys()
    assert gone <= writer.taken, what
    if "rec/recording.json" not in left:
        assert not [path for path in left if path.startswith("rec/")], f"{what}: {left.keys()}"
        return
    rows = rows_of(writer.disk / "rec")
    if writer.rows:
        check_part_of(rows, writer.rows)
        if is_finished(left, writer.sound):
            names = rows.keys() - {"environment"}
            assert all(rows[name].total() == writer.rows[name].total() for name in names), what


def has_all(files: Iterable[str], sound: Iterable[str]) -> bool:
    """Whether each table, and each other file, is there: a slow run has parts with other numbers."""
    found, whole = ({re.sub(r"part-\d+", "part", name) for name in each} for each in (files, sound))
    return found >= whole


def is_finished(files: dict[str, bytes | None], sound: dict[str, bytes | None]) -> bool:
    """Whether the recording says that it is complete, with as many captures as it is to have."""
    manifest, whole = (json.loads(each["rec/recording.json"]) for each in (files, sound))
    return manifest["complete"] and len(manifest["captures"]) == len(whole["captures"])


def check_all(
    writer: Writer, runs: Iterator[tuple[str, Done]], more: Callable[[str, Done], None] = lambda *_: None
) -> None:
    """That each run did everything, or said why not."""
    counts: Counter[str] = Counter()
    with closing(runs):
        for what, done in runs:
            assert not {"Traceback", "panicked"} & set(done.stderr.split()), f"{what}: {done.stderr}"
            if is_said(done):
                counts["said"] += 1
                # A recorder ends as its command did.
                assert done.returncode in (2, writer.status or 2), f"{what}: {done.returncode}, {done.stderr}"
            else:
                counts["did all"] += 1
                assert done.returncode == writer.status, f"{what}: {done.returncode}, {done.stderr}"
                left = files_of(writer.disk)
                # What could not be removed any more is no harm.
                assert has_all(left, writer.sound), f"{what}: {left.keys()}"
                if "rec/recording.json" in left:
                    assert is_finished(left, writer.sound) is is_finished(writer.sound, writer.sound), what
            check_left(writer, what)
            more(what, done)
    print(dict(counts))
    assert counts["said"] > 0


@pytest.fixture
def writer(tmp_path: Path) -> Callable[..., Writer]:
    """Makes a writer: of the places of its files, its command, and what is there before."""

    def make(
        *command: str | Path, before: Callable[[Path], object] = lambda _: None, **options: object
    ) -> Writer:
        for name in ("disk", "before"):
            (tmp_path / name).mkdir()
        before(tmp_path / "before")
        return Writer(list(command), tmp_path / "disk", tmp_path / "before", **options)

    return make


# Recordings, by the native half


def runs_of(way: str, writer: Writer, tmp_path: Path) -> Iterator[tuple[str, Done]]:
    """The runs in which calls fail, or on disks that are full."""
    return with_faults(writer, tmp_path / "calls") if way == "calls" else on_full_disks(writer)


both_ways = pytest.mark.parametrize("way", ["calls", "disks"])
# What takes long is tried on full disks by `tools/check more`.
more_on_disks = pytest.mark.parametrize("way", ["calls", pytest.param("disks", marks=pytest.mark.more)])


@both_ways
def test_an_import(way: str, native: Path, writer: Callable, tmp_path: Path) -> None:
    made = writer(native, "import", TESTDATA / "shell.f.strace", "-o", tmp_path / "disk" / "rec")
    check_all(made, runs_of(way, made, tmp_path))


@both_ways
def test_a_scan(way: str, native: Path, writer: Callable, tmp_path: Path) -> None:
    image = image_of_a_disk(tmp_path)
    made = writer(native, "disk", "scan", image, "--no-measure", "-o", tmp_path / "disk" / "rec")
    check_all(made, runs_of(way, made, tmp_path))


@both_ways
def test_a_scan_into_a_recording(way: str, native: Path, writer: Callable, tmp_path: Path) -> None:
    image = image_of_a_disk(tmp_path)

    def before(folder: Path) -> None:
        subprocess.run([native, "import", TESTDATA / "shell.f.strace", "-o", folder / "rec"], check=True)

    scan = (native, "disk", "scan", image, "--no-measure", "--into", "-o", tmp_path / "disk" / "rec")
    made = writer(*scan, before=before)
    whole = rows_of(made.before / "rec")

    def more(what: str, _: Done) -> None:
        rows = rows_of(made.disk / "rec")
        assert all(whole[table] <= rows[table] for table in whole), what

    check_all(made, runs_of(way, made, tmp_path), more)


@more_on_disks
def test_salvage(way: str, native: Path, writer: Callable, tmp_path: Path) -> None:
    """What could not be brought back now can be later: the spool stays until the tables are whole."""
    kernel = recorder_or_skip(native, "kernel")
    made = writer(
        *(native, "salvage", tmp_path / "disk" / "rec"),
        before=lambda folder: kernel.record(
            folder / "rec", "sh", "-c", "cat /etc/hostname; sleep 1.2; kill -9 $PPID"
        ),
        taken={"rec/spool"},
    )

    def more(what: str, done: Done) -> None:
        if done.returncode != 0:
            assert (made.disk / "rec" / "spool").exists(), what

    check_all(made, runs_of(way, made, tmp_path), more)


# Recorders are tested with fewer faults, because each run starts programs.
RECORDER_FAULTS = (
    (WRITE, "ENOSPC"),
    (WRITE, "EIO"),
    (SYNC, "EIO"),
    (MOVE, "EIO"),
    ("mkdirat", "ENOSPC"),
    ("openat", "EMFILE"),
)
# The shell opens many files, and ends with a status of its own.
LOOP = "i=0; while [ $i -lt 300 ]; do : < /etc/hostname; i=$((i+1)); done; echo $i > {}; exit 37"


@more_on_disks
@pytest.mark.parametrize("name", ["strace", "kernel"])
def test_a_recorder(way: str, name: str, native: Path, writer: Callable, tmp_path: Path) -> None:
    """The command runs to its end, or was not started at all."""
    ended = tmp_path / "ended"
    command = recorder_or_skip(native, name).command(
        tmp_path / "disk" / "rec",
        "sh",
        "-c",
        LOOP.format(ended),
        options=("--ring", "1") if name == "kernel" else (),
    )
    made = writer(
        *command,
        status=37,
        follow=False,
        faults=RECORDER_FAULTS,
        # Fewer for the kernel recorder, because each run loads programs: from the first call on, one alone, from a later one on.
        some=sampled((1, 4), (1, 4, 9)) if name == "kernel" else sampled((1, 4), (1, 2, 4, 9, 20)),
        extra=("rec/spool",),
        elsewhere=[ended],
    )
    made.is_repeated = False

    def more(what: str, done: Done) -> None:
        assert done.returncode == (37 if ended.exists() else 2), f"{what}: {done.returncode}, {done.stderr}"
        assert not ended.exists() or ended.read_text() == "300\n", what

    check_all(made, runs_of(way, made, tmp_path), more)


# What the Python half writes

PYTHON_FAULTS = ((SYNC, "EIO"), (MOVE, "EIO"), (WRITE, "ENOSPC"), (WRITE, "EIO"), ("mkdir", "ENOSPC"))


@pytest.fixture
def python_writer(maker: RecordingMaker, writer: Callable, tmp_path: Path) -> Callable[..., Writer]:
    """Makes one that reads the recording `rec`, with other files next to it."""

    def make(*command: str | Path, others: dict[str, str] | None = None, **options: object) -> Writer:
        def before(folder: Path) -> None:
            shutil.copytree(maker.make(), folder / "rec")
            for name, text in (others or {}).items():
                (folder / name).write_text(text)

        return writer(
            *command, before=before, faults=PYTHON_FAULTS, some=sampled((1, 4), (1, 4, 40)), **options
        )

    return make


@more_on_disks
@pytest.mark.parametrize(
    "verb",
    [
        pytest.param("report", marks=pytest.mark.more),
        "chrome",
        pytest.param("disk map", marks=pytest.mark.more),
    ],
)
def test_a_file_that_is_replaced(
    verb: str, way: str, python_writer: Callable, tmp_path: Path, maker: RecordingMaker
) -> None:
    """It is as it was, or as it is to be."""
    out, rec = tmp_path / "disk" / "out.html", tmp_path / "disk" / "rec"
    commands = {
        "report": ("report", rec, "-o", out),
        "chrome": ("export", rec, "--to", "chrome", "-o", out),
        "disk map": ("disk", "map", maker.make_scan(), "-o", out),
    }
    made = python_writer(*SYSDOCK, *commands[verb], others={"out.html": "the one before"})

    def more(what: str, done: Done) -> None:
        is_new = out.read_bytes() == made.sound["out.html"]
        assert is_new or out.read_text() == "the one before", what
        assert is_new or done.returncode == 2, what

    check_all(made, runs_of(way, made, tmp_path), more)


@pytest.mark.more
@both_ways
@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_exported_tables(format_: str, way: str, python_writer: Callable, tmp_path: Path) -> None:
    """Each that is there is whole."""
    disk = tmp_path / "disk"
    made = python_writer(*SYSDOCK, "export", disk / "rec", "--to", format_, "-o", disk / "tables")

    def rows() -> dict[str, list[str]]:
        found = {}
        for path in (disk / "tables").glob("*.*"):
            # What is counted for the export has no order.
            found[path.name] = sorted(
                map(repr, duckdb.execute(f"FROM read_{format_}(?)", [str(path)]).fetchall())
            )
        return found

    made.run_soundly()
    whole = rows()

    def more(what: str, _: Done) -> None:
        assert all(whole[name] == found for name, found in rows().items()), what

    check_all(made, runs_of(way, made, tmp_path), more)


@pytest.mark.more
@both_ways
def test_a_bundle_and_its_key(way: str, python_writer: Callable, tmp_path: Path) -> None:
    """Both are there, or none."""
    disk = tmp_path / "disk"
    made = python_writer(*SYSDOCK, "checkup", disk / "rec", "-o", disk / "bundle.tar.gz", "--hash-names")

    def more(what: str, done: Done) -> None:
        names = {path.name for path in disk.glob("bundle*")}
        assert names in (set(), {"bundle.tar.gz", "bundle.tar.gz.key"}), what
        assert bool(names) is (done.returncode == 0), what

    check_all(made, runs_of(way, made, tmp_path), more)


@pytest.mark.more
@both_ways
def test_an_experiment(way: str, writer: Callable, tmp_path: Path) -> None:
    made = writer(
        *(sys.executable, "-c", EXPERIMENT, tmp_path / "disk" / "rec"),
        faults=PYTHON_FAULTS,
        some=sampled((1, 4), (1, 4, 33)),
    )
    made.is_repeated = False
    check_all(made, runs_of(way, made, tmp_path))
