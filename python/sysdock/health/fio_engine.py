"""The same steps run by fio, as a second opinion: its rows are added to ours, with `engine` fio."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sysdock.analysis import Session
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.recording.native import import_quietly
from sysdock.recording.writing import add_part
from sysdock.scratch import scratch_folder

_SYNC = {"fdatasync": ["--fdatasync=1"], "fsync": ["--fsync=1"], "dsync": ["--sync=dsync"], "none": []}
_METADATA = {"create": "filecreate", "stat": "filestat", "remove": "filedelete"}
_USUAL_SIZE = 256 << 20
# Beyond the time of a job, for files that it makes first [s].
_PATIENCE_S = 120


def commands(step: dict[str, Any], folder: Path) -> list[tuple[str, list[str]]]:
    """The operations of a step that fio has, each with its command line, to be run in this order."""
    base = _base(step, folder)
    match step["item"]:
        case "transfer" | "volume" | "mmap":
            engine = ["--ioengine=mmap"] if step["item"] == "mmap" else ["--ioengine=psync"]
            found = [
                ("write", [*base, *engine, "--rw=write", "--end_fsync=1"]),
                ("read", [*base, *engine, "--rw=read"]),
            ]
        case "log":
            sync = _SYNC[step.get("sync", "fdatasync")]
            overwrite = ["--overwrite=1"] if step.get("prefilled") else ["--fallocate=none"]
            found = [("append", [*base, "--ioengine=psync", "--rw=write", "--time_based", *sync, *overwrite])]
        case "random_read":
            found = [("read", [*base, "--ioengine=psync", "--rw=randread", "--time_based"])]
        case "depth":
            depth = f"--iodepth={step.get('depth', 1)}"
            found = [("read", [*base, "--ioengine=io_uring", "--rw=randread", "--time_based", depth])]
        case "metadata":
            found = [(name, [*base, f"--ioengine={engine}"]) for name, engine in _METADATA.items()]
        case _:
            found = []
    wanted = step.get("operations")
    return [each for each in found if not wanted or each[0] in wanted]


def _base(step: dict[str, Any], folder: Path) -> list[str]:
    processes, length = step.get("processes", 1), step.get("length_bytes", 4096)
    share = max(step.get("size_bytes", _USUAL_SIZE) // processes // length, 1) * length
    arguments = [
        "fio",
        "--name=job",
        f"--directory={folder}",
        f"--numjobs={processes}",
        "--group_reporting",
        "--invalidate=1",
        "--refill_buffers",
        "--output-format=json",
    ]
    if step["item"] == "metadata":
        files = step.get("files", 1000)
        # With a request that is longer than a file, fio counts nothing of it.
        arguments += [f"--nrfiles={files}", "--filesize=4k", "--bs=4k", "--fallocate=none", "--openfiles=1"]
        arguments += ["--filename_format=f$jobnum-$filenum"]
    else:
        # Names that a later run removes, should this one be killed.
        names = "w0" if step.get("layout") == "shared" else "w$jobnum"
        arguments += [f"--size={share}", f"--bs={length}", f"--filename_format={names}"]
    if "time_ns" in step:
        arguments.append(f"--runtime={max(step['time_ns'] // 1_000_000, 1)}ms")
    return arguments + (["--direct=1"] if step.get("direct") else [])


def add(recording: Path, directory: Path, steps: Sequence[dict[str, Any]]) -> list[str]:
    """Does the steps by fio, and adds their rows to a recording. Returns what went wrong, one line each.

    UserError: fio is not there, or the directory cannot be written.
    """
    if shutil.which("fio") is None:
        raise UserError("fio was not found", "install it (on Debian: apt-get install fio)")
    library, trouble = Library(), []
    with Session(Recording.open(recording)) as session:
        [(last,)] = session.fetch("SELECT coalesce(max(result_id), 0) FROM load_results")
    for step in steps:
        with _folder(directory) as folder:
            for operation, arguments in commands(step, folder):
                rows, wrong = _measured(arguments, step, operation)
                trouble += [f"{step['item']} {operation}: {wrong}"] if wrong else []
                columns = [column.name for column in library.table("load_results").columns]
                numbered = [{**row, "result_id": last + number} for number, row in enumerate(rows, 1)]
                values = [[row[column] for column in columns] for row in numbered]
                add_part(recording, library, "load_results", values)
                last += len(rows)
    return trouble


def _measured(
    arguments: list[str], step: dict[str, Any], operation: str
) -> tuple[list[dict[str, Any]], str | None]:
    """The rows of one call of fio, in our words, or why there are none."""
    limit = step.get("time_ns", 60_000_000_000) / 1e9 + _PATIENCE_S
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return [], f"fio did not end within {limit:.0f} s"
    if not done.stdout.strip():
        return [], (done.stderr.strip().splitlines() or ["fio printed nothing"])[-1]
    with scratch_folder() as name:
        log, folder = Path(name) / "fio.json", Path(name) / "rec"
        log.write_text(done.stdout, "utf-8")
        try:
            import_quietly(log, folder)
            with Session(Recording.open(folder)) as session:
                rows = session.dicts("SELECT * FROM load_results WHERE operations > 0 ORDER BY result_id")
        except UserError as error:
            return [], error.fact
    kind = "write" if operation in ("write", "append") else operation
    ours = [row for row in rows if row["operation"] in (kind, operation)]
    if not ours:
        return [], "fio printed no result of it"
    sync = step.get("sync", "fdatasync") if step["item"] == "log" else None
    stated = {
        "item": step["item"],
        "operation": operation,
        "layout": step.get("layout", "own"),
        "sync": "end" if operation == "write" else sync,
        "processes": step.get("processes", 1),
        "hosts": platform.node(),
    }
    return [{**row, **stated} for row in ours[:1]], None


@contextmanager
def _folder(directory: Path) -> Iterator[Path]:
    """A folder for the files of fio, like the generator's: the next run removes that of a killed one.

    Its name and the file `owner` are those of crates/load/src/workspace.rs; a test holds them together.
    """
    pid = os.getpid()
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    read = {
        name: Path(f"/proc/sys/kernel/{name}").read_text("utf-8").strip()
        for name in ("hostname", "random/boot_id")
    }
    host = read["hostname"].replace(" ", "_")
    folder = directory.resolve() / f".sysdock-load-{host}-{pid}-{fields[19]}"
    owner = f"{host}/{os.readlink('/proc/self/ns/pid')} {read['random/boot_id']}"
    folder.mkdir(mode=0o700)
    try:
        (folder / "owner").write_text(f"made by sysdock load\n{owner}\n{pid} {fields[19]}\n", "utf-8")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
