"""Preparations that bring libraries and start servers of an experiment's own."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from sysdock.errors import UserError
from sysdock.experiment.bench import Bench
from sysdock.experiment.java_preparations import fetch_jars
from sysdock.experiment.preparation import PREPARATIONS
from sysdock.experiment.program_preparations import start_server
from sysdock.experiment.state import Journal, State
from sysdock.library import Library

JAR = "org.example:shop:1.0"
PLACE = "org/example/shop/1.0/shop-1.0.jar"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, library: Library) -> Iterator[Bench]:
    """A case, in a folder that every user may enter."""
    with tempfile.TemporaryDirectory() as public:
        os.chmod(public, 0o755)
        folder = Path(public)
        monkeypatch.setenv("SYSDOCK_STATE", str(folder / "journals"))
        monkeypatch.setenv("HOME", str(folder / "home"))
        (folder / "scratch").mkdir()
        journal = Journal.begin("a test")
        state = State(journal, folder / "scratch")
        yield Bench(1, folder / "scratch", folder / "scans", library, state, {"word": "hello"})
        assert state.undo() == []
        journal.close()


def kept(content: bytes) -> dict[str, str]:
    """A library in Maven's repository; what an experiment says of it."""
    file = Path.home() / ".m2" / "repository" / PLACE
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    return {JAR: hashlib.sha256(content).hexdigest()}


def test_a_library_that_is_there_needs_no_maven(bench: Bench) -> None:
    jars = kept(b"a library")
    assert PREPARATIONS["fetch_jars"].tools(jars=jars) == ()
    fetch_jars(bench, jars=jars)
    assert (bench.scratch / "jars" / "shop-1.0.jar").read_bytes() == b"a library"
    assert bench.environment == [("library", JAR, f"SHA-256 {jars[JAR]}", "recorder")]


def test_another_library_than_the_one_that_is_named_is_refused(bench: Bench) -> None:
    jars = kept(b"a library")
    (Path.home() / ".m2" / "repository" / PLACE).write_bytes(b"a library with more in it")
    with pytest.raises(UserError, match="its SHA-256 differs") as raised:
        fetch_jars(bench, jars=jars)
    assert "remove it" in str(raised.value)
    assert not (bench.scratch / "jars" / "shop-1.0.jar").exists()


def test_maven_is_asked_for_a_library_that_is_not_there(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert PREPARATIONS["fetch_jars"].tools(jars={JAR: "?"}) == ("mvn",)
    maven = tmp_path / "mvn"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    maven.write_text("#!/bin/sh\nexit 1\n")
    maven.chmod(0o755)
    with pytest.raises(UserError, match="Maven could not fetch this library"):
        fetch_jars(bench, jars={JAR: "?"})
    file = Path.home() / ".m2" / "repository" / PLACE
    maven.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\nmkdir -p {file.parent}\nprintf x > {file}\n')
    fetch_jars(bench, jars={JAR: hashlib.sha256(b"x").hexdigest()})
    assert f"-Dartifact={JAR}" in (tmp_path / "asked").read_text().split()


@pytest.mark.parametrize("name", ["shop", "a:b", "a:b:c:d", "a:../b:1", "a/b:c:1"])
def test_names_that_are_no_coordinates_are_refused(bench: Bench, name: str) -> None:
    with pytest.raises(UserError, match="are not coordinates of a library"):
        fetch_jars(bench, jars={name: "?"})


@pytest.mark.root
def test_a_server_runs_as_nobody_in_a_folder_of_its_own_and_is_asked_at_its_port(bench: Bench) -> None:
    if os.geteuid() != 0:
        pytest.skip("running as another user needs root")
    # That of the system, as others may not be able to reach the one that runs this.
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if python is None:
        pytest.skip("needs a Python that every user may run")
    program = (
        "import http.server, os, pathlib, sys;"
        "pathlib.Path('word').write_text(f'{sys.argv[2]} {os.getuid()}');"
        "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])),"
        " http.server.SimpleHTTPRequestHandler).serve_forever()"
    )
    start_server(bench, command=[python, "-c", program, "{own_port}", "{word}"], name="own")
    url = (bench.scratch / "own.url").read_text()
    assert url == f"http://127.0.0.1:{bench.names['own_port']}" == bench.names["own"]
    with urllib.request.urlopen(f"{url}/word", timeout=600) as answer:
        said, user = answer.read().decode().split()
    assert said == "hello"
    assert int(user) == (bench.scratch / "own").stat().st_uid != 0


def test_a_user_that_is_not_there_is_said(bench: Bench) -> None:
    with pytest.raises(UserError, match="there is no user `no-such-user`"):
        start_server(bench, command=["true"], user="no-such-user")
