"""The file with settings: what it may say, what goes before it, and errors that name file and key."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest
from make_recording import RecordingMaker
from sysdock.config import recorder


@pytest.fixture
def folder(maker: RecordingMaker) -> Path:
    """A recording in which one file is read in small pieces, by fewer calls than a finding takes."""
    reads = [
        {"t": i / 10, "call": "read", "path": "/data", "dur_ns": 10_000_000, "transferred_bytes": 100}
        for i in range(150)
    ]
    return maker.make(reads)


def findings(cli, folder: Path, *words: str, **options: object) -> int:
    done = cli("diagnose", folder, "io/small_requests", "--format", "json", *words, **options)
    assert (done.returncode, done.stderr) == (0, "")
    return sum(row["status"] == "finding" for row in json.loads(done.stdout))


def said(cli, tmp_path: Path, content: str) -> str:
    """What `diagnose` complains about with this file."""
    (tmp_path / "sysdock.toml").write_text(content)
    done = cli("list", "rules", env={"SYSDOCK_CONFIG": "sysdock.toml"})
    assert done.returncode == 0, "verbs that need no setting do not read it"
    done = cli("diagnose", "rec", env={"SYSDOCK_CONFIG": "sysdock.toml"})
    assert done.returncode == 2
    return done.stderr


def test_a_limit_of_a_rule_holds_where_no_option_says_another(cli, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "sysdock.toml").write_text('[rules."io/small_requests"]\nmin_calls = 100\n')
    env = {"SYSDOCK_CONFIG": "sysdock.toml"}
    assert findings(cli, folder) == 0
    assert findings(cli, folder, env=env) == 1
    assert findings(cli, folder, "-p", "min_calls=200", env=env) == 0
    done = cli("diagnose", folder, env=env)
    assert "FINDING" in done.stdout


def test_the_file_is_where_xdg_says(cli, folder: Path, tmp_path: Path) -> None:
    del cli.environment["SYSDOCK_CONFIG"]
    for place, variables in (
        (tmp_path / "xdg", {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}),
        (tmp_path / "home" / ".config", {"XDG_CONFIG_HOME": "", "HOME": str(tmp_path / "home")}),
        (tmp_path / "home" / ".config", {"XDG_CONFIG_HOME": "relative", "HOME": str(tmp_path / "home")}),
    ):
        place.mkdir(parents=True, exist_ok=True)
        (place / "sysdock.toml").write_text('language = "ja"\n')
        assert "所見" in cli("diagnose", folder, env=variables).stdout


@pytest.mark.root
def test_under_sudo_the_file_is_read_with_the_rights_of_who_called_it(cli, folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can stand for sudo")
    with tempfile.TemporaryDirectory() as place:
        # pytest's own folders are closed to other users.
        os.chmod(place, 0o755)
        file = Path(place) / "sysdock.toml"
        file.write_text('language = "ja"\n')
        sudo = {"SYSDOCK_CONFIG": str(file), "SUDO_UID": "65534", "SUDO_GID": "65534", "SUDO_USER": "nobody"}
        file.chmod(0o600)
        refused = cli("diagnose", folder, env=sudo)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert f"{file}: cannot be read: Permission denied" in refused.stderr
        file.chmod(0o644)
        assert "所見" in cli("diagnose", folder, env=sudo).stdout


def test_a_language_is_that_of_option_environment_file_and_locale(cli, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "sysdock.toml").write_text('language = "ja"\n')
    file = {"SYSDOCK_CONFIG": "sysdock.toml"}

    def is_japanese(*words: str, **env: str) -> bool:
        return "所見" in cli("diagnose", folder, *words, env={"PYTHONUTF8": "1", **env}).stdout

    assert not is_japanese()
    assert is_japanese(LC_ALL="ja_JP.UTF-8")
    assert is_japanese(**file)
    assert not is_japanese(**file, SYSDOCK_LANGUAGE="en")
    assert not is_japanese("--lang", "en", **file)
    assert is_japanese("--lang", "ja", SYSDOCK_LANGUAGE="en")


def test_a_recorder_is_that_of_the_environment_or_file(monkeypatch, tmp_path: Path) -> None:
    from sysdock.config import config

    (tmp_path / "sysdock.toml").write_text('recorder = "strace"\n')
    monkeypatch.setenv("SYSDOCK_CONFIG", str(tmp_path / "sysdock.toml"))
    config.cache_clear()
    assert recorder() == "strace"
    monkeypatch.setenv("SYSDOCK_RECORDER", "kernel")
    assert recorder() == "kernel"
    monkeypatch.delenv("SYSDOCK_RECORDER")
    monkeypatch.setenv("SYSDOCK_CONFIG", "")
    config.cache_clear()
    assert recorder() == "auto"


@pytest.mark.parametrize(
    ("content", "place", "fact"),
    [
        ('lang = "ja"', "lang", "unknown key `lang`"),
        ('language = "fr"', "language", "must be one of en, ja"),
        ("language = 3", "language", "must be one of en, ja"),
        ('recorder = "ptrace"', "recorder", "must be one of auto, kernel, strace"),
        ("rules = 3", "rules", "must be a table"),
        ('[rules]\n"io/seeks" = 3', 'rules."io/seeks"', "must be a table of parameters"),
        ('[rules."io/seeks"]\nx = []', 'rules."io/seeks".x', "must be a number or a string"),
    ],
)
def test_a_wrong_key_is_named_with_its_file(cli, tmp_path: Path, content: str, place: str, fact: str) -> None:
    head = said(cli, tmp_path, content).split("\n")[0]
    assert head == f"sysdock: sysdock.toml: {place}: {fact}"


def test_what_is_no_toml_is_named_with_its_line(cli, tmp_path: Path) -> None:
    assert said(cli, tmp_path, "language = ").startswith("sysdock: sysdock.toml: not TOML: ")


@pytest.mark.parametrize(
    ("content", "place", "fact"),
    [
        ('[rules."io/nope"]\nx = 1', 'rules."io/nope"', "io/nope"),
        ('[rules."io/small_requests"]\nmin = 1', 'rules."io/small_requests".min', "has no parameter `min`"),
    ],
)
def test_a_rule_or_a_parameter_that_is_unknown_is_named(
    cli, folder: Path, tmp_path: Path, content: str, place: str, fact: str
) -> None:
    (tmp_path / "sysdock.toml").write_text(content)
    done = cli("diagnose", folder, env={"SYSDOCK_CONFIG": "sysdock.toml"})
    assert done.returncode == 2
    assert done.stderr.startswith(f"sysdock: sysdock.toml: {place}: ")
    assert fact in done.stderr


def test_a_wrong_variable_is_named(cli, folder: Path) -> None:
    done = cli("diagnose", folder, env={"SYSDOCK_LANGUAGE": "fr"})
    assert done.returncode == 2
    assert done.stderr.startswith("sysdock: SYSDOCK_LANGUAGE: `fr` is not one of en, ja")
