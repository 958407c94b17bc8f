"""The units of services: systemd takes them, and gives them few rights. Whether these are enough is tried by tools/units."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNITS = Path(__file__).resolve().parents[3] / "python/wheel-data/data/lib/systemd/system"
MOST_EXPOSED = 3.0


@pytest.mark.parametrize("name", sorted(unit.name for unit in UNITS.glob("*.service")))
class TestUnits:
    def exposure(self, unit: Path) -> float:
        """What `systemd-analyze security` says of a unit, from 0 to 10."""
        command = ["systemd-analyze", "security", "--offline=true", "--no-pager", unit]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
        assert found, done.stdout + done.stderr
        return float(found[1])

    def test_few_rights_are_left(self, name: str) -> None:
        if shutil.which("systemd-analyze") is None:
            pytest.skip("systemd-analyze is not installed")
        assert self.exposure(UNITS / name) <= MOST_EXPOSED

    def test_systemd_takes_it(self, name: str, tmp_path: Path) -> None:
        if shutil.which("systemd-analyze") is None:
            pytest.skip("systemd-analyze is not installed")
        unit = tmp_path / name
        # A command that is installed nowhere is no error of the unit.
        text = (UNITS / name).read_text()
        unit.write_text(re.sub("(?m)^(Exec[A-Za-z]+)=sysdock", r"\1=/bin/true", text))
        command = ["systemd-analyze", "verify", "--man=no", unit]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert name not in done.stdout + done.stderr, done.stdout + done.stderr
