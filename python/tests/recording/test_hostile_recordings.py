"""Verbs end in order on recordings that a stranger could have made; `tools/attack` runs a larger set."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_verbs_end_in_order_on_a_hundred_hostile_recordings() -> None:
    # A process of its own: verbs are forked from one that has not used the engine.
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "attack", "recordings", "100", "--some"],
        capture_output=True,
        text=True,
        check=False,
    )
    *wrong, counts = done.stdout.splitlines() or [""]
    assert wrong == [], done.stdout
    assert done.returncode == 0, done.stderr
    assert counts.startswith("100 recordings, 200 verbs: 0 wrong")
