"""Workloads about where files lie: a file system, files in pieces, cold reads in order, defragmenting."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from sysdock.disk.broken_files import Plan, interleave
from sysdock.disk.comb import MODES
from sysdock.disk.comb import remove_teeth as remove_small_files
from sysdock.errors import UserError
from sysdock.experiment.bench import Bench
from sysdock.experiment.loop_device import counters, loop_device, mount_anew, mounted, queue_settings
from sysdock.experiment.prediction import Queue, predict
from sysdock.experiment.tools import run_tool
from sysdock.experiment.workload import workload
from sysdock.recording import Recording
from sysdock.recording.native import scan_quietly
from sysdock.recording.signals import held_back

WHOLE, BROKEN = "whole", "broken"
# A program that reads in order asks for so much at once.
_READ = 1 << 20
_KIB = 1024


@dataclass(frozen=True)
class FileSystem:
    """How one is made, and how files in a folder of it are brought into one piece; `version` prints it."""

    make: tuple[str, ...]
    version: tuple[str, ...]
    defragment: Callable[[Path], tuple[str | Path, ...]]


FileSystemName = Literal["ext4", "xfs", "btrfs"]
FILE_SYSTEMS = {
    # Its tables are written at once, or the kernel would do that while reads are counted.
    "ext4": FileSystem(
        ("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0"),
        ("e2fsck", "-V"),
        lambda folder: ("e4defrag", folder),
    ),
    # With a reverse map, by which a scan knows whose the nodes of extent trees are.
    "xfs": FileSystem(
        ("mkfs.xfs", "-q", "-m", "rmapbt=1"),
        ("mkfs.xfs", "-V"),
        lambda folder: ("xfs_fsr", *sorted(folder.iterdir())),
    ),
    "btrfs": FileSystem(
        ("mkfs.btrfs", "-q"),
        ("btrfs", "--version"),
        lambda folder: ("btrfs", "filesystem", "defragment", "-r", folder),
    ),
}


@workload(lambda file_system, **_: ("losetup", "mount", "umount", FILE_SYSTEMS[file_system].make[0]))
def make_file_system(bench: Bench, *, file_system: FileSystemName, device_bytes: int) -> None:
    """Makes a file system on a loop device over a sparse file, with direct I/O, and mounts it."""
    kind = FILE_SYSTEMS[file_system]
    free = os.statvfs(bench.folder).f_bavail * os.statvfs(bench.folder).f_frsize
    if free < device_bytes:
        fact = f"a device of {device_bytes:,} bytes is to be made, and {free:,} are free"
        raise UserError(fact, "choose a folder on a larger disk with -o", str(bench.folder))
    # Between its being made and its being noted for the end, nothing may come.
    with held_back():
        bench.device = bench.opened.enter_context(loop_device(bench.folder / "image", device_bytes))
    run_tool(*kind.make, bench.device)
    with held_back():
        bench.mount_point = bench.opened.enter_context(mounted(bench.device, bench.folder / "mount"))
    bench.fact("file system", f"made by, {file_system}", " ".join(kind.make))
    bench.fact("file system", f"mount options, {file_system}", _mount_options(bench.mount_point))
    bench.fact("tool", file_system, _version(kind))
    for name, value in queue_settings(bench.device).items():
        bench.fact("device", name, value)


@workload()
def make_whole_files(bench: Bench, *, files: int, size_bytes: int) -> None:
    """Makes the control: files of the same number and size, each in one piece."""
    interleave(_made(bench, WHOLE), Plan(files, size_bytes, size_bytes, 1))


@workload()
def make_broken_files(
    bench: Bench,
    *,
    mode: Literal["interleave", "comb", "classic"],
    files: int,
    size_bytes: int,
    piece_bytes: int,
) -> None:
    """Makes files in pieces, as `sysdock disk fragment` does."""
    foretold = MODES[mode](_made(bench, BROKEN), Plan(files, size_bytes, piece_bytes, files))
    if foretold is not None:
        bench.measured("made", BROKEN, None, "foretold_fragments", foretold)


@workload()
def remove_teeth(bench: Bench) -> None:
    """Removes the small files of a comb: there is nowhere to defragment to without free space."""
    remove_small_files(_mounted(bench) / BROKEN)


@workload(lambda file_system, **_: (str(FILE_SYSTEMS[file_system].defragment(Path("/sys"))[0]),))
def defragment(bench: Bench, *, file_system: FileSystemName) -> None:
    """Brings the broken files into one piece, by the file system's own program."""
    run_tool("sync", "--file-system", _mounted(bench))
    began = time.monotonic_ns()
    run_tool(*FILE_SYSTEMS[file_system].defragment(_mounted(bench) / BROKEN))
    run_tool("sync", "--file-system", _mounted(bench))
    bench.measured("defragmenting", BROKEN, None, "dur_ns", time.monotonic_ns() - began)


@workload()
def read_cold(bench: Bench, *, state: str, subjects: list[str]) -> None:
    """Predicts requests from a scan, then reads the subjects in turns, each with nothing of it in memory."""
    point = _mounted(bench)
    mount_anew(_device(bench), point)
    folder = bench.scans / f"case-{bench.case_id:03}-{state}"
    scan_quietly(point, folder)
    queue = _queue(bench)
    for subject in subjects:
        found = predict(Recording.open(folder), bench.library, point / subject, queue)
        bench.measured(state, subject, None, "fragments", found.fragments)
        bench.measured(state, subject, None, "predicted_requests", found.requests)
        bench.measured(state, subject, None, "most_requests", found.most_requests)
    for round_ in range(1, bench.rounds + 1):
        for subject in subjects:
            for measure, value in _read_cold(bench, point / subject).items():
                bench.measured(state, subject, round_, measure, value)


def _read_cold(bench: Bench, folder: Path) -> dict[str, int]:
    """Reads the files of a folder in order; what that took, and what the device counted."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    Path("/proc/sys/vm/drop_caches").write_text("3")
    before = counters(_device(bench))
    began = time.monotonic_ns()
    buffer = bytearray(_READ)
    content = 0
    for path in files:
        with open(path, "rb", buffering=0) as file:
            while got := file.readinto(buffer):
                content += got
    taken = time.monotonic_ns() - began
    return {
        "dur_ns": taken,
        "content_bytes": content,
        **asdict(counters(_device(bench)).since(before)),
    }


def _queue(bench: Bench) -> Queue:
    settings = queue_settings(_device(bench))
    return Queue(
        int(settings["read_ahead_kb"]) * _KIB,
        int(settings["max_sectors_kb"]) * _KIB,
        int(settings["max_segments"]) * os.sysconf("SC_PAGE_SIZE"),
    )


def _made(bench: Bench, name: str) -> Path:
    folder = _mounted(bench) / name
    folder.mkdir()
    return folder


def _mounted(bench: Bench) -> Path:
    if bench.mount_point is None:
        raise UserError("a step needs a file system", "begin with the workload `make_file_system`")
    return bench.mount_point


def _device(bench: Bench) -> Path:
    if bench.device is None:
        raise UserError("a step needs a device", "begin with the workload `make_file_system`")
    return bench.device


def _mount_options(point: Path) -> str | None:
    for line in Path("/proc/self/mounts").read_text().splitlines():
        words = line.split()
        if words[1].replace("\\040", " ") == str(point):
            return words[3]
    return None


def _version(kind: FileSystem) -> str:
    """The first line that says it; e2fsck prints it as an error."""
    return run_tool("sh", "-c", f"{' '.join(kind.version)} 2>&1").strip().splitlines()[0]
