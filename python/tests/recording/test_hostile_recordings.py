"""Verbs end in order on recordings and inputs that a stranger could have made; `tools/break attack` runs a larger set."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sampling import sampled

ROOT = Path(__file__).resolve().parents[3]
RECORDINGS, INPUTS = sampled(5, 12), sampled(3, 6)


@pytest.mark.parametrize(
    ("words", "counted"),
    [
        (
            ["recordings", f"{RECORDINGS}", "--some"],
            f"{RECORDINGS} recordings, {2 * RECORDINGS} verbs: 0 wrong",
        ),
        (["inputs", f"{INPUTS}"], f"{INPUTS} inputs, {2 * INPUTS} verbs: 0 wrong"),
    ],
)
def test_verbs_end_in_order_on_what_is_hostile(words: list[str], counted: str) -> None:
    # A process of its own: verbs are forked from one that has not used the engine.
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "break.d" / "attack", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    *wrong, counts = done.stdout.splitlines() or [""]
    assert wrong == [], done.stdout
    assert done.returncode == 0, done.stderr
    assert counts.startswith(counted)
