"""Findings name the line of the program that made most of the calls they are about, where calls have stacks."""

from __future__ import annotations

from make_recording import RecordingMaker

LIBC = {"object": "/usr/lib/x86_64-linux-gnu/libc.so.6", "function": "__write"}


def stack(number: int, *frames: dict[str, object]) -> list[dict[str, object]]:
    """Rows of `stacks`, the innermost first."""
    return [{"stack_id": number, "frame": place, **frame} for place, frame in enumerate(frames)]


def own(line: int, function: str = "save") -> dict[str, object]:
    """A frame of the program."""
    return {"object": "/srv/app", "function": function, "source": f"app.c:{line}"}


def writes(count: int, first: int, stack_id: int | None) -> list[dict[str, object]]:
    """Small writes, one behind another."""
    common = {
        "call": "write",
        "fd": 3,
        "path": "/srv/out",
        "dur_ns": 900_000,
        "requested_bytes": 8,
        "transferred_bytes": 8,
    }
    return [
        {**common, "t": number / 1000, "offset_bytes": 8 * number, "stack_id": stack_id}
        for number in range(first, first + count)
    ]


STACKS = [*stack(0, LIBC, own(7), own(20, "main")), *stack(1, LIBC, own(9), own(21, "main"))]


def test_a_finding_names_the_line_with_most_of_its_calls(maker: RecordingMaker, open_session) -> None:
    calls = [*writes(800, 0, 0), *writes(200, 800, 1)]
    session = open_session(maker.make(calls, stacks=STACKS))
    sources = {each.source for each in session.diagnose() if each.file == "/srv/out"}
    assert sources == {"app.c:7 (save), 80.0 %"}
    [first, second] = session.run("io/source_lines").rows()
    assert (first[0], first[3], second[0], second[3]) == ("app.c:7", 800, "app.c:9", 200)


def test_without_stacks_no_line_is_named(maker: RecordingMaker, open_session) -> None:
    for name, stacks in (("none", []), ("unused", STACKS)):
        session = open_session(maker.make(writes(1000, 0, None), name, stacks=stacks))
        found = [each for each in session.diagnose() if each.file == "/srv/out"]
        assert found
        assert {each.source for each in found} == {None}


def test_libraries_are_not_the_place(maker: RecordingMaker, open_session) -> None:
    fortran = {
        "object": "/usr/lib/x86_64-linux-gnu/libgfortran.so.5",
        "function": "st_write",
        "source": "io.c:3",
    }
    python = {"object": "/usr/bin/python3.11", "function": "_PyEval_EvalFrameDefault"}
    stacks = [*stack(0, LIBC, fortran, own(5)), *stack(1, LIBC, python), *stack(2, {"function": "[no file]"})]
    session = open_session(maker.make(writes(1, 0, 0), stacks=stacks))
    places = session.fetch("SELECT stack_id, function, source, own FROM stack_places ORDER BY stack_id")
    assert places == [
        (0, "save", "app.c:5", True),
        (1, "__write", None, False),
        (2, "[no file]", None, False),
    ]


def test_code_of_others_that_is_part_of_a_program_is_not_the_place(
    maker: RecordingMaker, open_session
) -> None:
    def python(file: str, function: str, line: int) -> dict[str, object]:
        return {"object": file, "function": function, "source": f"{file}:{line}"}

    module = python("/usr/lib/python3.11/shutil.py", "copy", 3)
    frozen = python("<frozen importlib._bootstrap>", "_find_and_load", 4)
    package = python("/srv/venv/lib/python3.12/site-packages/pandas/io.py", "read_csv", 5)
    script = python("/srv/job.py", "main", 6)
    rust = {"object": "/srv/app", "function": "std::fs::read", "source": "/rustc/abc/library/std/src/fs.rs:7"}
    stacks = [
        *stack(0, LIBC, module, package, script),
        *stack(1, LIBC, module, package, frozen),
        *stack(2, LIBC, frozen, module),
        *stack(3, LIBC, rust, own(8)),
    ]
    session = open_session(maker.make(writes(1, 0, 0), stacks=stacks))
    places = session.fetch("SELECT function, own FROM stack_places ORDER BY stack_id")
    assert places == [("main", True), ("read_csv", True), ("__write", False), ("save", True)]
