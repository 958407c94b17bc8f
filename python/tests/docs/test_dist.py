"""What `make dist` does with a wheel and what is in it. That both are built, and run elsewhere, is for tools/check-dist."""

from __future__ import annotations

import base64
import hashlib
import importlib.machinery
import importlib.util
import re
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def dist() -> ModuleType:
    """tools/dist as a module."""
    loader = importlib.machinery.SourceFileLoader("dist", str(ROOT / "tools/dist"))
    spec = importlib.util.spec_from_loader("dist", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel as maturin makes it, in little."""
    path = tmp_path / "sysdock-1.2.3-py3-none-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sysdock/__init__.py", "")
        archive.writestr("sysdock-1.2.3.data/scripts/sysdock", "#!python\nimport sys\n")
        archive.writestr("sysdock-1.2.3.data/scripts/sysdock-native", b"\x7fELF")
        archive.writestr("sysdock-1.2.3.data/data/lib/sysdock/itrace-guest-init", b"\x7fELF")
        archive.writestr("sysdock-1.2.3.data/data/lib/systemd/system/sysdock-agent.service", "[Unit]\n")
        archive.writestr("sysdock-1.2.3.data/data/share/man/man1/sysdock.1", ".TH\n")
    return path


def test_a_line_of_the_list_of_files_is_as_wheels_have_it(dist: ModuleType) -> None:
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"abc").digest()).decode().rstrip("=")
    assert dist.record_line("a/b", b"abc") == f"a/b,sha256={digest},3"


def test_files_of_a_wheel_go_where_a_package_has_them(dist: ModuleType, wheel: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    packages = tree / "usr/lib/sysdock/lib/python3.11/site-packages"
    dist.unpack(wheel, packages, tree)
    found = {path.relative_to(tree).as_posix(): path for path in tree.rglob("*") if path.is_file()}
    assert set(found) == {
        "usr/lib/sysdock/lib/python3.11/site-packages/sysdock/__init__.py",
        "usr/bin/sysdock",
        "usr/bin/sysdock-native",
        "usr/lib/sysdock/lib/sysdock/itrace-guest-init",
        "usr/lib/systemd/system/sysdock-agent.service",
        "usr/share/man/man1/sysdock.1",
    }
    assert found["usr/bin/sysdock"].read_text().startswith("#!/usr/lib/sysdock/bin/python3\n")
    modes = {name: path.stat().st_mode & 0o777 for name, path in found.items()}
    assert {name for name, mode in modes.items() if mode == 0o755} == {
        "usr/bin/sysdock",
        "usr/bin/sysdock-native",
        "usr/lib/sysdock/lib/sysdock/itrace-guest-init",
    }


def test_the_package_says_which_pythons_it_has_libraries_for(dist: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "usr").mkdir()
    dist.ready_control(tmp_path, "1.2.3")
    control = (tmp_path / "DEBIAN/control").read_text()
    assert "\nVersion: 1.2.3\n" in control
    assert "python3 (>= 3.11), python3 (<< 3.15~), libc6 (>= 2.28)" in control
    assert (tmp_path / "DEBIAN/postinst").stat().st_mode & 0o777 == 0o755


def test_tools_are_pinned_by_hash() -> None:
    lines = (ROOT / "requirements-dist.lock").read_text().splitlines()
    named = [line for line in lines if re.match(r"[\w-]+==", line)]
    assert named
    assert all(line.endswith(" \\") for line in named)
    assert sum("--hash=sha256:" in line for line in lines) >= len(named)


def test_setup_and_checks_do_without_it() -> None:
    makefile = (ROOT / "Makefile").read_text()
    users = re.findall(r"(?m)^(\S+):.*\n(?:\t.*\n)*?\ttools/dist$", makefile)
    assert users == ["dist"]
    for name in (".ci/run", "tools/setup", "tools/check"):
        text = (ROOT / name).read_text()
        assert "requirements-dist" not in text
        assert "zig" not in text
