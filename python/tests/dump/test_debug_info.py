"""Source lines of stacks, out of a file that is the debug information of a kernel as far as its build and its addresses go."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from made_dumps import MadeDump
from sysdock.analysis import Session
from sysdock.cli import sysdock
from sysdock.dump import Dump
from sysdock.errors import UserError
from sysdock.recording import Recording

SOURCE = """\
static inline __attribute__((always_inline)) void inner(void)
{
	asm volatile(".skip 200, 0x90");
}

void outer(void)
{
	inner();
}
"""


@pytest.fixture
def vmlinux(dumps: dict[str, MadeDump], tmp_path: Path) -> Callable[[str], Path]:
    """A program at the place of `ksys_write`, of which all code lies on line 3, within an inlined function."""
    source = tmp_path / "made.c"
    source.write_text(SOURCE)
    with Dump.open(dumps["6.12"].core) as dump:
        start = dump.symbol("ksys_write")

    def build(build_id: str) -> Path:
        out = tmp_path / f"vmlinux-{build_id[:4]}"
        words = ["cc", "-g", "-O2", "-nostdlib", "-static", "-mcmodel=kernel", "-fno-pic", "-no-pie"]
        link = [f"-Wl,--build-id=0x{build_id}", f"-Wl,-Ttext={start:#x}", "-Wl,-e,outer"]
        subprocess.run([*words, *link, "-o", out, source], check=True, capture_output=True)
        return out

    return build


def test_frames_have_lines_and_inlined_functions(
    dumps: dict[str, MadeDump], vmlinux: Callable[[str], Path], read: Callable[..., Session]
) -> None:
    # Without random addresses, the kernel runs where it was linked.
    core = dumps["6.12"].core
    with Dump.open(core) as dump:
        build = dump.capabilities()["build_id"]
    session = read(core, "--vmlinux", vmlinux(build))
    sql = "SELECT DISTINCT source, inlined FROM dump_frames WHERE function = 'ksys_write'"
    [(source, inlined)] = session.fetch(sql)
    assert source.endswith("made.c:3")
    assert inlined == "inner"
    # What the file says nothing about has none.
    assert session.fetch("SELECT count(source) FROM dump_frames WHERE function = 'schedule'") == [(0,)]
    with Dump.open(core, vmlinux=vmlinux(build)) as dump:
        assert "inner" in dump.frames()["inlined"]


def test_another_build_is_refused_unless_it_is_forced(
    dumps: dict[str, MadeDump], vmlinux: Callable[[str], Path], tmp_path: Path
) -> None:
    core, other = dumps["6.12"].core, vmlinux("00112233445566778899aabbccddeeff00112233")
    with pytest.raises(UserError, match="debug information of build 00112233") as error:
        Dump.open(core, vmlinux=other)
    assert "--force" in (error.value.hint or "")
    with Dump.open(core, vmlinux=other, force=True) as dump:
        assert "inner" in dump.frames()["inlined"]
    (tmp_path / "text").write_text("no debug information")
    with pytest.raises(UserError, match="no ELF file"):
        Dump.open(core, vmlinux=tmp_path / "text")
    with pytest.raises(UserError, match="No such file"):
        Dump.open(core, vmlinux=tmp_path / "none")


def test_a_report_has_source_lines(
    dumps: dict[str, MadeDump], vmlinux: Callable[[str], Path], tmp_path: Path
) -> None:
    core = dumps["6.12"].core
    with Dump.open(core) as dump:
        build = dump.capabilities()["build_id"]
    words = ["dump", "report", core, "-o", tmp_path / "rec", "--vmlinux", vmlinux(build)]
    done = CliRunner().invoke(sysdock, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    with Session(Recording.open(tmp_path / "rec")) as session:
        sql = "SELECT DISTINCT source FROM dump_frames WHERE function = 'ksys_write'"
        [(source,)] = session.fetch(sql)
    assert source.endswith("made.c:3")
    assert (tmp_path / "rec" / "report.html").exists()
