"""Functions of Python on recorded stacks against what the recorded program finds by sys._getframe at each of its writes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from recorders import Recorder, recorder_or_skip
from sampling import some
from sysdock.analysis import Session
from sysdock.library import Library
from sysdock.recording import Filters, Recording

PROGRAM = Path(__file__).resolve().parents[3] / "testdata" / "programs" / "python_sites.py"
KNOWHOW = Path(__file__).resolve().parents[3] / "knowhow"
Query = Callable[[Path, str], list[tuple]]
# The kernel side keeps so many of a stack.
MOST_FRAMES = 64


def interpreters() -> list[Path]:
    """Every Python on this machine that the recorder knows: Debian's, that of the virtual environment, and those of pyenv."""
    others = sorted(Path("~/.pyenv/versions").expanduser().glob("3.1[1-3].*/bin/python3"))
    known = [path for path in (Path("/usr/bin/python3"), Path(sys.executable), *others) if path.exists()]
    version = "import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))"
    return [path for path in known if subprocess.run([path, "-c", version], check=False).returncode == 0]


@pytest.fixture
def kernel(native: Path) -> Recorder:
    """The kernel recorder."""
    return recorder_or_skip(native, "kernel")


def chains(query: Query, recording: Path) -> dict[int, list[list]]:
    """The Python functions of each stack, innermost first: name, file, line."""
    found: dict[int, list[list]] = defaultdict(list)
    # Frames of Python lie at no address.
    sql = """SELECT stack_id, function, object, source FROM stacks
        WHERE address IS NULL AND object IS NOT NULL ORDER BY stack_id, frame"""
    for stack, function, file, source in query(recording, sql):
        found[stack].append([function, file, int(source.rpartition(":")[2]) if source else None])
    return found


def writes(query: Query, recording: Path) -> list[tuple[int, int]]:
    """Offset and stack of each write into the file `calls`."""
    sql = """SELECT offset_bytes, stack_id FROM calls JOIN paths USING (path_id)
        WHERE path LIKE '%/calls' AND class = 'write' ORDER BY ts_ns"""
    return query(recording, sql)


def compare(query: Query, manifest: Callable, folder: Path) -> None:
    """Holds the functions of each write against what the program noted."""
    books = json.loads((folder / "books").read_text())
    books |= json.loads((folder / "books-of-child").read_text())
    calls = writes(query, folder / "rec")
    found = chains(query, folder / "rec")
    assert len(calls) == len(books) > 3000
    wrong: Counter = Counter()
    for offset, stack in calls:
        expected = books[str(offset)][:MOST_FRAMES]
        if found.get(stack) != expected:
            wrong[(str(expected[:3]), str(found.get(stack, [])[:3]))] += 1
    assert not wrong, f"{wrong.total()} of {len(calls)}: {wrong.most_common(5)}"
    assert "stack_differs" not in manifest(folder / "rec")["issues"]


@pytest.mark.parametrize("python", some(interpreters(), 2), ids=str)
def test_every_write_has_the_functions_that_it_comes_from(
    kernel: Recorder, tmp_path: Path, query: Query, manifest: Callable, python: Path
) -> None:
    done = kernel.record(tmp_path / "rec", python, PROGRAM, tmp_path, recorder_options=("--stacks",))
    assert (done.returncode, done.stderr) == (0, "")
    compare(query, manifest, tmp_path)


def test_the_same_where_another_kernel_recorded(
    scene: Callable[..., Path], query: Query, manifest: Callable
) -> None:
    """By `tools/vmtest`; else it is this one."""
    compare(query, manifest, scene("python_sites"))


def test_functions_stand_before_the_loop_that_evaluates_them(
    kernel: Recorder, tmp_path: Path, query: Query
) -> None:
    kernel.record(tmp_path / "rec", "/usr/bin/python3", PROGRAM, tmp_path, recorder_options=("--stacks",))
    sql = """SELECT stack_id, list(coalesce(function, '') ORDER BY frame) FROM stacks GROUP BY stack_id"""
    stacks = dict(query(tmp_path / "rec", sql))
    books = json.loads((tmp_path / "books").read_text())
    # The C library's sort calls `key`, the loop below `all_forms`: two calls of the evaluation loop, each with its own functions above it.
    for offset, stack in writes(query, tmp_path / "rec"):
        chain = [name for name, _, _ in books.get(str(offset), [])]
        if chain[:2] == ["write", "key"]:
            names = stacks[stack]
            loops = [place for place, name in enumerate(names) if name.startswith("_PyEval_EvalFrameDefault")]
            assert [names.index(name) for name in ("write", "key")] == [loops[0] - 2, loops[0] - 1]
            assert loops[0] < names.index("all_forms") < names.index("main") < loops[1]
            break
    else:
        pytest.fail("no such write")


def test_a_process_that_runs_already(kernel: Recorder, tmp_path: Path, query: Query) -> None:
    source = tmp_path / "runs.py"
    source.write_text(
        "import os, sys, threading, time\n"
        "fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)\n"
        "def work(line):\n    while True:\n        os.pwrite(fd, b'x', line)\n        time.sleep(0.001)\n"
        "threading.Thread(target=work, args=(5,), daemon=True).start()\nwork(5)\n"
    )
    with subprocess.Popen([sys.executable, source, tmp_path / "calls"]) as running:
        try:
            while not (tmp_path / "calls").exists():
                assert running.poll() is None
            words = [kernel.native, "record", "-p", str(running.pid), "--stacks", "--for", "500ms"]
            subprocess.run([*words, "-o", tmp_path / "rec"], check=True, timeout=600)
        finally:
            running.kill()
    found = chains(query, tmp_path / "rec")
    calls = writes(query, tmp_path / "rec")
    assert len(calls) > 40
    assert {tuple(found[stack][0]) for _, stack in calls} == {("work", str(source), 5)}
    # The first thread and the other.
    assert {len(found[stack]) for _, stack in calls} == {2, 4}


def test_a_line_of_a_program_stands_for_calls_of_the_library(kernel: Recorder, tmp_path: Path) -> None:
    source = tmp_path / "copies.py"
    source.write_text("import shutil, sys\nfor _ in range(50):\n    shutil.copy(sys.argv[1], sys.argv[2])\n")
    (tmp_path / "from").write_bytes(b"x" * 100_000)
    kernel.record(
        tmp_path / "rec",
        sys.executable,
        source,
        tmp_path / "from",
        tmp_path / "to",
        recorder_options=("--stacks",),
    )
    with Session(Recording.open(tmp_path / "rec"), Library(KNOWHOW), Filters()) as session:
        lines = session.run("io/source_lines").rows()
    by_source = {row[0]: row for row in lines}
    assert by_source[f"{source}:3"][1] == "<module>"
    assert by_source[f"{source}:3"][3] > 200
