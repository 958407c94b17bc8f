"""What is loaded while a command runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from sysdock.cli.recording import load_ahead
from sysdock.library import Library, default_root


def read_ahead(monkeypatch: pytest.MonkeyPatch) -> tuple[Library, list[str]]:
    """The library, and what was read from it before it was asked for."""
    read: list[str] = []
    for name in ("tables", "rules", "products"):
        monkeypatch.setattr(Library, name, lambda _library, name=name: read.append(name))
    library = load_ahead()()
    return library, read


def test_know_how_that_comes_with_sysdock_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYSDOCK_KNOWHOW", raising=False)
    library, read = read_ahead(monkeypatch)
    assert library.is_own
    assert read == ["tables", "rules", "products"]


def test_know_how_of_a_user_waits_for_the_rights_of_that_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Under sudo the thread runs as root, and a link in a user's folder may lead anywhere.
    shutil.copytree(default_root() / "rules", tmp_path / "rules")
    monkeypatch.setenv("SYSDOCK_KNOWHOW", str(tmp_path))
    library, read = read_ahead(monkeypatch)
    assert library.root == tmp_path
    assert read == []


def test_a_folder_that_is_missing_is_reported_when_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SYSDOCK_KNOWHOW", str(tmp_path / "none"))
    library = load_ahead()
    with pytest.raises(Exception, match="no such know-how folder"):
        library()
    assert capfd.readouterr().err == ""
