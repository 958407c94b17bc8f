"""Stacks of calls against what the recorded programs say of themselves: each call names the lines that it comes from, in its offset."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from recorders import Recorder, recorder_or_skip
from scenes import NO_FRAME_POINTERS, build

PROGRAMS = Path(__file__).resolve().parents[3] / "testdata" / "programs"
Query = Callable[[Path, str], list[tuple]]
LIBRARIES = re.compile(r"/(ld-linux|libc|libgfortran|libquadmath|libm|libpthread)[-.]")


class Frame(NamedTuple):
    """A row of `stacks`."""

    object: str | None
    function: str | None
    source: str | None

    @property
    def line(self) -> int | None:
        """The line of the source."""
        return int(self.source.rpartition(":")[2]) if self.source else None


@pytest.fixture
def kernel(native: Path) -> Recorder:
    """The kernel recorder."""
    return recorder_or_skip(native, "kernel")


def record(recorder: Recorder, out: Path, *command: Path | str, stacks: str = "--stacks") -> None:
    """Record a command with stacks."""
    done = recorder.record(out, *command, recorder_options=(stacks,))
    assert (done.returncode, done.stderr) == (0, "")


def programs_in(tmp_path: Path) -> tuple[Path, Path]:
    """The program and its library, and a folder for its files."""
    build("call_sites_pie", tmp_path)
    (tmp_path / "files").mkdir()
    return tmp_path / "programs" / "call_sites", tmp_path / "programs" / "libsites.so"


def stacks_of(query: Query, recording: Path) -> dict[int, list[Frame]]:
    """The frames of each stack, the innermost first."""
    stacks: dict[int, list[Frame]] = defaultdict(list)
    sql = "SELECT stack_id, object, function, source FROM stacks ORDER BY stack_id, frame"
    for stack, *frame in query(recording, sql):
        stacks[stack].append(Frame(*frame))
    return stacks


def calls_of(query: Query, recording: Path, file: str) -> list[tuple]:
    """Offset, bytes and stack of each write into a file."""
    sql = f"""SELECT offset_bytes, transferred_bytes, stack_id FROM calls JOIN paths USING (path_id)
        WHERE path LIKE '%/{file}' AND class = 'write' ORDER BY ts_ns"""
    return query(recording, sql)


def wrong(calls: list[tuple], stacks: dict[int, list[Frame]], root: str, source: str = "") -> Counter:
    """Calls with a stack that contradicts their offset, by what was found. If a file name is given, only frames in
    that file are checked; the outer line is 0 if it is not given."""
    found: Counter = Counter()
    for offset, _, stack in calls:
        frames = stacks.get(stack, [])
        own = [frame for frame in frames if frame.object and not LIBRARIES.search(frame.object)]
        own = [frame for frame in own if source in (frame.source or "")]
        root_line = next((frame.line for frame in own if frame.function == root), None)
        lines = own[0].line if own else None, root_line if offset >= 100_000 else 0
        if lines != (offset % 100_000, offset // 100_000):
            found[(offset, lines, tuple(frame.function for frame in frames))] += 1
    return found


@pytest.mark.parametrize("kind", ["pie", "no_pie"])
def test_every_call_has_the_lines_that_it_comes_from(
    scene: Callable[..., Path], query: Query, manifest: Callable, kind: str
) -> None:
    recording = scene(f"call_sites_{kind}") / "rec"
    stacks = stacks_of(query, recording)
    for file, root, count in (("in_main", "main", 300 * 8 + 1 + 100 + 3 * 4), ("in_worker", "worker", 3200)):
        calls = calls_of(query, recording, file)
        assert len(calls) == count
        assert not wrong(calls, stacks, root)
    for _, moved, stack in calls_of(query, recording, "printed"):
        [line] = [frame.line for frame in stacks[stack] if frame.function == "main"]
        assert line == moved
    # A stack longer than the copy has its inner frames, and the last frame states that it was cut.
    [(offset, _, stack)] = calls_of(query, recording, "too_deep")
    innermost = next(frame for frame in stacks[stack] if frame.function == "descend")
    assert (innermost.line, stacks[stack][-1].function) == (offset % 100_000, "[stack copy ended]")
    assert "stack_differs" not in manifest(recording)["issues"]


def test_frames_are_those_that_addr2line_names(scene: Callable[..., Path], query: Query) -> None:
    folder = scene("call_sites_pie")
    program, recording = folder / "programs" / "call_sites", folder / "rec"
    # Those of calls; samples have others.
    ours = f"object = '{program}' AND source IS NOT NULL AND stack_id IN (SELECT stack_id FROM calls)"
    sql = f"SELECT DISTINCT address FROM stacks WHERE {ours} ORDER BY 1"
    addresses = [address for (address,) in query(recording, sql)]
    # The call stands before the address that it returns to.
    words = [hex(address - 1) for address in addresses]
    done = subprocess.run(
        ["addr2line", "-f", "-i", "-a", "-e", program, *words], capture_output=True, text=True, check=True
    )
    expected: dict[int, list[tuple[str, str]]] = {}
    for block in re.split(r"^0x", done.stdout, flags=re.MULTILINE)[1:]:
        address, *lines = block.splitlines()
        places = [line.partition(" (")[0] for line in lines]
        expected[int(address, 16) + 1] = list(zip(places[::2], places[1::2], strict=True))
    sql = f"""SELECT address, stack_id, list((function, source) ORDER BY frame) FROM stacks
        WHERE {ours} GROUP BY address, stack_id"""
    for address, _, found in query(recording, sql):
        # A function that calls itself is there more than once.
        assert found[: len(expected[address])] == expected[address]
    assert len(addresses) > 20


def test_without_debug_information_functions_and_files_are_left(
    kernel: Recorder, tmp_path: Path, query: Query
) -> None:
    program, library = programs_in(tmp_path)
    subprocess.run(["strip", program], check=True)
    record(kernel, tmp_path / "rec", program, tmp_path / "files", library)
    stacks = stacks_of(query, tmp_path / "rec")
    calls = calls_of(query, tmp_path / "rec", "in_main")
    # As many places as there are lines: all frames up to the beginning are found, without names.
    places: dict[int, set[tuple]] = defaultdict(set)
    sql = "SELECT stack_id, list(address ORDER BY frame) FROM stacks GROUP BY stack_id"
    addresses = dict(query(tmp_path / "rec", sql))
    for offset, _, stack in calls:
        assert any(frame.object == str(program) for frame in stacks[stack])
        places[offset // 100_000].add(tuple(addresses[stack]))
    lines = list(places)
    for one in lines:
        assert all(not places[one] & places[other] for other in lines if other != one)


def test_a_static_program(kernel: Recorder, tmp_path: Path, query: Query) -> None:
    source = tmp_path / "static.c"
    source.write_text(
        "#include <unistd.h>\n#include <fcntl.h>\n"
        "int main(int n, char **v) { int fd = open(v[1], O_RDWR | O_CREAT, 0600);\n"
        "for (int i = 0; i < 100; i++) {\n(void)!pwrite(fd, v, 1, __LINE__);\n(void)!pwrite(fd, v, 1, __LINE__);\n}\n"
        "return 0; }\n"
    )
    subprocess.run(["gcc", *NO_FRAME_POINTERS, "-static", "-o", tmp_path / "static", source], check=True)
    record(kernel, tmp_path / "rec", tmp_path / "static", tmp_path / "out")
    stacks = stacks_of(query, tmp_path / "rec")
    calls = calls_of(query, tmp_path / "rec", "out")
    assert len(calls) == 200
    for offset, _, stack in calls:
        assert [frame.line for frame in stacks[stack] if frame.function == "main"] == [offset]


@pytest.mark.skipif(not shutil.which("gfortran"), reason="needs gfortran")
def test_fortran(kernel: Recorder, tmp_path: Path, query: Query) -> None:
    program = tmp_path / "call_sites"
    options = ["-O2", "-g", "-cpp", "-fomit-frame-pointer", "-fno-inline"]
    subprocess.run(["gfortran", *options, "-o", program, PROGRAMS / "call_sites.f90"], check=True)
    record(kernel, tmp_path / "rec", program, tmp_path / "out")
    stacks = stacks_of(query, tmp_path / "rec")
    calls = calls_of(query, tmp_path / "rec", "out")
    assert len(calls) == 1200
    root = next(
        name
        for name in ("MAIN__", "call_sites")
        if any(f.function == name for s in stacks.values() for f in s)
    )
    assert not wrong(calls, stacks, root)


def compiled(tmp_path: Path, *compiler: str, source: str) -> Path:
    """A program of another language, without the rights that some compilers want for their caches."""
    if not shutil.which(compiler[0]):
        pytest.skip(f"needs {compiler[0]}")
    environment = os.environ | {"GOCACHE": str(tmp_path / "cache"), "GOFLAGS": "-mod=mod"}
    words = [*compiler, "-o", tmp_path / "program", PROGRAMS / source]
    subprocess.run(words, check=True, env=environment, cwd=tmp_path)
    return tmp_path / "program"


def names_of(stacks: dict[int, list[Frame]]) -> set[str]:
    """All functions."""
    return {frame.function or "" for frames in stacks.values() for frame in frames}


def test_cplusplus(kernel: Recorder, tmp_path: Path, query: Query) -> None:
    program = compiled(tmp_path, "g++", *NO_FRAME_POINTERS, source="call_sites.cpp")
    record(kernel, tmp_path / "rec", program, tmp_path / "out")
    stacks = stacks_of(query, tmp_path / "rec")
    calls = calls_of(query, tmp_path / "rec", "out")
    assert len(calls) == 100 * 15
    assert not wrong(calls, stacks, "main", "call_sites.cpp")
    names = names_of(stacks)
    assert not any(name.startswith("_Z") for name in names)
    assert {"shop::Book::sell(long)", "shop::Book::operator+=(long)", "shop::Book::~Book()"} <= names
    assert any(name.startswith("shop::Shelf<int>::put") for name in names)
    # A part of main.
    assert any("Shelf<int>::count" in name or name == "count" for name in names)


def test_rust(kernel: Recorder, tmp_path: Path, query: Query) -> None:
    options = ["--edition", "2024", "-O", "-g", "-C", "force-frame-pointers=no"]
    program = compiled(tmp_path, "rustc", *options, source="call_sites.rs")
    record(kernel, tmp_path / "rec", program, tmp_path / "out")
    stacks = stacks_of(query, tmp_path / "rec")
    calls = calls_of(query, tmp_path / "rec", "out")
    assert len(calls) == 100 * (1 + 2 + 1 + 2 + 1 + 3) + 100 * 2
    assert not wrong(calls, stacks, "call_sites::main", "call_sites.rs")
    names = names_of(stacks)
    assert not any(name.startswith(("_R", "_ZN")) for name in names)
    assert {"call_sites::shop::plain", "call_sites::shop::within"} <= names


@pytest.mark.more
def test_go(kernel: Recorder, tmp_path: Path, query: Query) -> None:
    program = compiled(tmp_path, "go", "build", source="call_sites.go")
    record(kernel, tmp_path / "rec", program, tmp_path / "out")
    stacks = stacks_of(query, tmp_path / "rec")
    calls = calls_of(query, tmp_path / "rec", "out")
    assert len(calls) == 100 * 10 + 4 * 50 * 2
    assert not wrong(calls, stacks, "main.main", "call_sites.go")
    # Each stack ends where its goroutine began.
    assert {stacks[stack][-1].function for _, _, stack in calls} == {"runtime.goexit"}
    assert {"main.(*book).sell", "main.within"} <= names_of(stacks)


def test_only_some_calls_have_stacks(kernel: Recorder, tmp_path: Path, query: Query) -> None:
    program, library = programs_in(tmp_path)
    folder = tmp_path / "files"
    record(kernel, tmp_path / "every", program, folder, library, stacks="--stacks=every:10")
    [(calls, with_stack)] = query(tmp_path / "every", "SELECT count(*), count(stack_id) FROM calls")
    assert 0.05 < with_stack / calls < 0.11
    record(kernel, tmp_path / "slower", program, folder, library, stacks="--stacks=slower:20us")
    sql = "SELECT count(*) FILTER (stack_id IS NOT NULL AND dur_ns <= 20000), count(stack_id) FROM calls"
    [(fast, with_stack)] = query(tmp_path / "slower", sql)
    assert fast == 0
    assert with_stack > 0


def test_a_process_that_runs_already(kernel: Recorder, tmp_path: Path, query: Query) -> None:
    source = tmp_path / "runs.c"
    source.write_text(
        "#include <unistd.h>\n#include <fcntl.h>\n"
        "int main(int n, char **v) { int fd = open(v[1], O_RDWR | O_CREAT, 0600);\n"
        "for (;;) {\n(void)!pwrite(fd, v, 1, __LINE__);\nusleep(1000);\n}\n}\n"
    )
    subprocess.run(["gcc", *NO_FRAME_POINTERS, "-o", tmp_path / "runs", source], check=True)
    with subprocess.Popen([tmp_path / "runs", tmp_path / "out"]) as running:
        words = [kernel.native, "record", "-p", str(running.pid), "--stacks", "--for", "500ms"]
        subprocess.run([*words, "-o", tmp_path / "rec"], check=True, timeout=600)
        running.kill()
    stacks = stacks_of(query, tmp_path / "rec")
    calls = calls_of(query, tmp_path / "rec", "out")
    assert len(calls) > 20
    for offset, _, stack in calls:
        assert [frame.line for frame in stacks[stack] if frame.function == "main"] == [offset]


def test_a_program_that_was_replaced_is_not_asked(kernel: Recorder, tmp_path: Path, query: Query) -> None:
    program, library = programs_in(tmp_path)
    script = f"{program} {tmp_path / 'files'} {library}; rm {program}; cp /bin/true {program}"
    record(kernel, tmp_path / "rec", "sh", "-c", script)
    sql = f"SELECT count(*), count(function), count(address) FROM stacks WHERE object = '{program}'"
    [(frames, functions, addresses)] = query(tmp_path / "rec", sql)
    assert frames == addresses > 0
    assert functions == 0
