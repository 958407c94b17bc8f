"""The wheel holds what was promised: every know-how file, the pages' code, the units of systemd, both commands."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names of the files in the wheel, built by the profile that the tests are built by."""
    out = tmp_path_factory.mktemp("wheel")
    command = [
        BIN / "maturin",
        "build",
        "--profile",
        "tests",
        "--locked",
        "--offline",
        "--quiet",
        "--out",
        out,
    ]
    # As in tools/setup, so that nothing is compiled twice.
    environment = {**os.environ, "RUSTC_WORKSPACE_WRAPPER": "clippy-driver", "VIRTUAL_ENV": str(BIN.parent)}
    environment["PATH"] = f"{BIN}:{os.environ['PATH']}"
    subprocess.run(command, cwd=ROOT, check=True, env=environment, capture_output=True)
    [built] = out.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        # What comes with data lies in a folder whose name holds the version.
        return {name.partition(".data/")[2] or name for name in archive.namelist()}


def files(folder: str, *endings: str) -> set[str]:
    """Files of the checkout below a folder, as paths within it."""
    base = ROOT / folder
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return {
        path.relative_to(base).as_posix()
        for path in paths
        if path.is_file() and path.name.endswith(endings or ("",))
    }


@pytest.mark.parametrize(
    ("folder", "endings", "inside"),
    [
        ("knowhow", (".sql", ".md", ".toml", ".json"), "sysdock/knowhow"),
        ("web", (".js", ".css"), "sysdock/web"),
        ("python/sysdock", (".py",), "sysdock"),
        ("python/wheel-data/data", (), "data"),
        ("python/wheel-data/scripts", (), "scripts"),
    ],
)
def test_every_file_of_a_folder_is_in_it(
    wheel: set[str], folder: str, endings: tuple[str, ...], inside: str
) -> None:
    expected = files(folder, *endings)
    assert expected
    assert {f"{inside}/{name}" for name in expected} - wheel == set()


@pytest.mark.parametrize(
    "name",
    [
        "scripts/sysdock-native",
        "scripts/sysdock",
        "data/lib/sysdock/libsysdock_itrace_plugin.so",
        "data/lib/sysdock/itrace-guest-init",
        "sysdock/itrace/services/apache.toml",
        "data/lib/systemd/system/sysdock-disk@.service",
        "data/lib/systemd/system/sysdock-disk@.timer",
        "data/lib/systemd/system/sysdock-flight.service",
        "data/lib/systemd/system/sysdock-probe@.service",
        "data/lib/systemd/system/sysdock-probe@.timer",
        "data/lib/systemd/system/sysdock-agent.service",
        "data/lib/systemd/system/sysdock-collect.service",
        "data/share/sysdock/clickhouse/tables.sql",
        "data/share/sysdock/pbs/epilogue",
        "data/share/sysdock/slurm/epilog",
        "data/share/sysdock/grafana/sysdock-nodes.json",
        "sysdock/page/assets/vega.js",
        "sysdock/library/assets/tables.json",
        "sysdock/recording/assets/mentions.json",
    ],
)
def test_what_was_promised_is_in_it(wheel: set[str], name: str) -> None:
    assert name in wheel


def test_nothing_else_is_in_it(wheel: set[str]) -> None:
    other = {name for name in wheel if "__pycache__" in name or name.endswith((".pyc", ".toml.orig", ".rs"))}
    assert other == set()
