"""What power cuts and failed writes have in common: the programs that write, and what must hold of what they wrote."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
from sysdock.recording import Recording

sys.path.insert(0, str(Path(__file__).parents[1] / "disk"))
import ext_images

TESTDATA = Path(__file__).parents[3] / "testdata" / "strace"
# A recording that a test made is one from elsewhere: on a busy machine the limit of time would end what reads it.
SYSDOCK = ("env", "SYSDOCK_LIMITS=off", sys.executable, "-m", "sysdock")
# What is written anew with each checkpoint: its rows grow, or gain what is known by then.
GROWING = ("paths", "commands", "processes", "object_use", "environment", "file_systems")
Rows = dict[str, Counter[str]]

# Runs an experiment of two scenarios that needs no device.
EXPERIMENT = """
import sys
from pathlib import Path
from sysdock import cli
from sysdock.experiment import running
from sysdock.experiment.one_off import of_commands
from sysdock.library import Library

def run(*, standalone_mode, prog_name):
    experiment = of_commands(["true", "true "], blocks=2, metric="elapsed_s", margin=0.01, minutes=60, explain=False)
    options = {"command": "experiment", "id": "compare", "seed": 1, "set": [], "blocks": None, "busy": False, "explain": False}
    running.run(experiment, Library(), Path(sys.argv[1]), options, running.Progress(say=print))

# Errors are reported like those of the verb.
cli.sysdock.main = lambda _, **options: run(**options)
sys.exit(cli.main())
"""


@contextmanager
def folder_in_memory(otherwise: Path) -> Iterator[Path]:
    """A new folder: in memory where that can be, as nothing that is synced there has to be waited for."""
    above = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else otherwise
    with tempfile.TemporaryDirectory(dir=above) as folder:
        yield Path(folder)


def image_of_a_disk(folder: Path) -> Path:
    """An image of a small file system, made in `folder`."""
    ext_images.needs("mke2fs")
    shutil.copytree(TESTDATA, folder / "content")
    ext_images.run("mke2fs", "-q", "-F", "-d", folder / "content", folder / "image", "8M")
    return folder / "image"


def rows_of(folder: Path) -> Rows:
    """All rows of a recording, whose parts must be whole."""
    recording = Recording.open(folder)
    recording.verify(recording.tables)
    found = {}
    for table in recording.tables:
        parts = [str(path) for path in recording.parts(table)]
        sql = "SELECT * FROM read_parquet($parts)"
        rows = duckdb.execute(sql, {"parts": parts}).fetchall() if parts else []
        assert len(rows) == recording.rows(table)
        found[table] = Counter(map(repr, rows))
    return found


def check_part_of(rows: Rows, whole: Rows) -> None:
    """That a recording holds nothing but what another one holds."""
    for table in rows:
        assert table in GROWING or rows[table] <= whole[table], table
        # What is known of the machine depends on where the recording lies.
        assert table == "environment" or rows[table].total() <= whole[table].total(), table
