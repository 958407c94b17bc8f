"""Calls that name files in unusual ways: both recorders say which files they mean."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from recorders import RECORDERS, recorder_or_skip

SOURCE = Path(__file__).parents[3] / "testdata" / "programs" / "named.c"
CONTEXT = "anon_inode:[fscontext]"

ROWS = """SELECT call, class, fd, path, open_flags FROM calls LEFT JOIN paths USING (path_id)
    WHERE call IN ('mq_open', 'mq_unlink', 'landlock_add_rule', 'fsconfig') ORDER BY ts_ns"""
# The program opens 3, 4 and 5 first: the directory, the rules and the file system.
EXPECTED = [
    ("mq_open", "open", 6, "/sysdock-named", "O_RDWR|O_CREAT"),
    ("mq_open", "open", None, "/sysdock-none", "O_RDONLY"),
    ("mq_unlink", "name", None, "/sysdock-named", None),
    ("mq_unlink", "name", None, "/sysdock-none", None),
    ("landlock_add_rule", "process", 3, "/usr/share", None),
    ("landlock_add_rule", "process", 77, None, None),
    ("fsconfig", "name", 5, CONTEXT, None),
    ("fsconfig", "name", None, "/usr/share/dict/words", None),
    ("fsconfig", "name", None, "/usr/lib/none", None),
    ("fsconfig", "name", None, "/etc/hostname", None),
    ("fsconfig", "name", 3, "/usr/share", None),
    ("fsconfig", "name", 3, "/usr/share", None),
]


@pytest.mark.parametrize("name", RECORDERS)
def test_files_have_their_names(name: str, native: Path, tmp_path: Path, query: Callable) -> None:
    program = tmp_path / "named"
    subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-o", program, SOURCE], check=True)
    done = recorder_or_skip(native, name).record(tmp_path / "rec", program)
    if done.returncode == 77:
        pytest.skip("this kernel or user may not use Landlock, message queues or fsopen")
    assert (done.returncode, done.stderr) == (0, "")
    assert query(tmp_path / "rec", ROWS) == EXPECTED
