"""Locations of the files of sysdock: inside the installed package, or in a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def own_root() -> Path:
    """The know-how that comes with sysdock."""
    inside = _PACKAGE / "knowhow"
    return inside if inside.is_dir() else _PACKAGE.parent.parent / "knowhow"
