"""The units for systemd that come with the package: systemd takes them, and what they start is a verb that there is."""

from __future__ import annotations

import configparser
import shutil
import subprocess
from pathlib import Path

from click.testing import CliRunner
from sysdock.cli import sysdock

UNITS = Path(__file__).parents[2] / "wheel-data" / "data" / "lib" / "systemd" / "system"


def unit(name: str) -> configparser.ConfigParser:
    """A unit's sections."""
    parsed = configparser.ConfigParser(interpolation=None, strict=False)
    assert parsed.read(UNITS / name) != []
    return parsed


def test_what_the_service_starts_adds_a_scan_to_a_series(tmp_path: Path) -> None:
    command = unit("sysdock-disk@.service")["Service"]["ExecStart"].replace("/var/lib/sysdock", str(tmp_path))
    (tmp_path / "data").mkdir()
    program, *words = command.replace("%f", str(tmp_path / "data")).replace("%i", "series").split()
    assert program == "sysdock"
    for _ in range(2):
        CliRunner().invoke(sysdock, words, catch_exceptions=False, standalone_mode=False)
    assert len([each for each in (tmp_path / "series").iterdir() if (each / "recording.json").exists()]) == 2


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    timer = unit("sysdock-disk@.timer")
    assert timer["Timer"]["OnCalendar"] == "weekly"
    if shutil.which("systemd-analyze") is None:
        return
    for path in UNITS.iterdir():
        # Whether the program is installed is not asked here.
        text = path.read_text().replace("ExecStart=sysdock", "ExecStart=/bin/true")
        (tmp_path / path.name).write_text(text)
    names = [tmp_path / f"sysdock-disk@srv.{kind}" for kind in ("service", "timer")]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *names], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
