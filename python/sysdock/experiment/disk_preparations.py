"""Preparations about where files lie: a file system, fragmented files, defragmenting, predicted requests."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Literal

from sysdock.disk.broken_files import Plan, interleave
from sysdock.disk.comb import MODES
from sysdock.disk.comb import remove_teeth as remove_small_files
from sysdock.errors import UserError
from sysdock.experiment.bench import Bench
from sysdock.experiment.file_system_kinds import FILE_SYSTEMS, FileSystem, FileSystemName
from sysdock.experiment.loop_device import queue_settings
from sysdock.experiment.prediction import Queue, predict
from sysdock.experiment.preparation import preparation
from sysdock.experiment.state.mounts import mounted_at
from sysdock.experiment.tools import run_tool
from sysdock.recording import Recording
from sysdock.recording.native import scan_quietly

_KIB = 1024
_FOLDERS_IN_ONE = 20


@preparation(lambda file_system, **_: ("losetup", "mount", "umount", FILE_SYSTEMS[file_system].make[0]))
def make_file_system(
    bench: Bench,
    *,
    file_system: FileSystemName,
    device_bytes: int,
    name: str = "data",
    options: str = "noatime",
) -> None:
    """Makes a file system on a loop device over a sparse file, and mounts it: `{data}`, `{data_device}`."""
    kind = FILE_SYSTEMS[file_system]
    point = bench.state.file_system(name, file_system, device_bytes, options=options)
    device = bench.state.device(name)
    bench.names |= {name: point, f"{name}_device": device}
    bench.devices.append(device)
    bench.about("file system", f"made by, {file_system}", " ".join(kind.make))
    mount = mounted_at(str(point))
    bench.about("file system", f"mount options, {file_system}", mount.options if mount else None)
    bench.about("tool", file_system, _version(kind))
    for setting, value in queue_settings(Path("/dev") / device).items():
        bench.about("device", setting, value)


@preparation()
def make_whole_files(
    bench: Bench, *, files: int, size_bytes: int, folder: str = "whole", data: str = "data"
) -> None:
    """Makes files in one piece each, in a folder of the file system."""
    interleave(_new_folder(bench, data, folder), Plan(files, size_bytes, size_bytes, 1))


@preparation()
def make_tree(
    bench: Bench, *, folders: int, files: int, file_bytes: int, folder: str = "tree", data: str = "data"
) -> None:
    """Makes a tree: folders in folders, `files` small files in each."""
    top = _new_folder(bench, data, folder)
    content = bytes(file_bytes)
    for number in range(folders):
        place = top / f"{number // _FOLDERS_IN_ONE:03}" / f"{number % _FOLDERS_IN_ONE:03}"
        place.mkdir(parents=True)
        for file in range(files):
            (place / f"{file:04}").write_bytes(content)
    run_tool("sync", "--file-system", top)


@preparation()
def make_broken_files(
    bench: Bench,
    *,
    mode: Literal["interleave", "comb", "classic"],
    files: int,
    size_bytes: int,
    piece_bytes: int,
    folder: str = "broken",
    data: str = "data",
) -> None:
    """Makes fragmented files, as `sysdock disk fragment` does."""
    foretold = MODES[mode](_new_folder(bench, data, folder), Plan(files, size_bytes, piece_bytes, files))
    if foretold is not None:
        bench.fact(folder, "foretold_fragments", foretold)


@preparation()
def remove_teeth(bench: Bench, *, folder: str = "broken", data: str = "data") -> None:
    """Removes the small files of a comb: there is nowhere to defragment to without free space."""
    remove_small_files(bench.place(data) / folder)


@preparation(lambda file_system, **_: (str(FILE_SYSTEMS[file_system].defragment(Path("/sys"))[0]),))
def defragment(
    bench: Bench, *, file_system: FileSystemName, folder: str = "broken", data: str = "data"
) -> None:
    """Brings the files of a folder into one piece, by the file system's own program."""
    point = bench.place(data)
    run_tool("sync", "--file-system", point)
    began = time.monotonic_ns()
    run_tool(*FILE_SYSTEMS[file_system].defragment(point / folder))
    run_tool("sync", "--file-system", point)
    bench.fact(folder, "defragmenting_s", (time.monotonic_ns() - began) / 1e9)


@preparation()
def predict_requests(bench: Bench, *, folders: list[str], data: str = "data") -> None:
    """Scans the files of some folders, and predicts the number of requests of a sequential read."""
    point = bench.place(data)
    run_tool("sync", "--file-system", point)
    scan = bench.scans / f"case-{bench.case_id:03}"
    scan_quietly(point, scan)
    queue = _queue(Path("/dev") / bench.state.device(data))
    for folder in folders:
        found = predict(Recording.open(scan), bench.library, point / folder, queue)
        bench.fact(folder, "content_bytes", sum(file.stat().st_size for file in (point / folder).iterdir()))
        bench.fact(folder, "fragments", found.fragments)
        bench.fact(folder, "predicted_requests", found.requests)
        bench.fact(folder, "most_requests", found.most_requests)


def _queue(device: Path) -> Queue:
    settings = queue_settings(device)
    return Queue(
        int(settings["read_ahead_kb"]) * _KIB,
        int(settings["max_sectors_kb"]) * _KIB,
        int(settings["max_segments"]) * os.sysconf("SC_PAGE_SIZE"),
    )


def _new_folder(bench: Bench, data: str, name: str) -> Path:
    folder = bench.place(data) / name
    try:
        folder.mkdir()
    except FileExistsError:
        raise UserError(f"two steps create the folder `{name}`", "give one another `folder`") from None
    return folder


def _version(kind: FileSystem) -> str:
    """The first line with the version; e2fsck prints it as an error."""
    return run_tool("sh", "-c", 'exec "$@" 2>&1', "sh", *kind.version).strip().splitlines()[0]
