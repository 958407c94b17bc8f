"""Fixtures: the real importer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
from stated import stated

sys.path.insert(0, str(Path(__file__).parent))
from recorders import RECORDERS, Recorder, recorder_or_skip
from scenes import OUTCOME, SCENES, SKIPPED, CannotBeMadeError, build

NATIVE = Path(os.environ.get("SYSDOCK_NATIVE", Path(sys.executable).parent / "sysdock-native"))
# Scenes that were recorded elsewhere: then only what they hold is tested.
RECORDED = os.environ.get("SYSDOCK_RECORDED")
Scene = Callable[..., Path]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where recordings come from elsewhere: leave out the tests that record for themselves, or want those of strace."""

    def compares(item: pytest.Item) -> bool:
        names = getattr(item, "fixturenames", ())
        values = item.callspec.params.values() if hasattr(item, "callspec") else ()
        return "scene" in names and "both" not in names and "strace" not in values

    if RECORDED:
        config.hook.pytest_deselected(items=[item for item in items if not compares(item)])
        items[:] = [item for item in items if compares(item)]


@pytest.fixture(scope="session")
def native() -> Path:
    """The executable under test."""
    assert NATIVE.exists(), f"{NATIVE} is missing: make setup"
    return NATIVE


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody may write, which those of pytest are not."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        os.chmod(made, 0o777)
        yield Path(made)


@pytest.fixture(params=RECORDERS)
def recorder(request: pytest.FixtureRequest, native: Path) -> Recorder:
    """Each recorder; a test is skipped with the reason where one cannot run."""
    return recorder_or_skip(native, request.param)


@pytest.fixture(scope="session")
def scene(native: Path, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """The folder of a scene by its name, recorded once by each recorder."""
    made: dict[tuple[str, str], Path] = {}

    def folder_of(name: str, recorder: str = "kernel") -> Path:
        if RECORDED:
            return recorded_elsewhere(Path(RECORDED) / name)
        if (name, recorder) not in made:
            folder = tmp_path_factory.mktemp(f"{name}_{recorder}")
            how = recorder_or_skip(native, recorder)
            build(name, folder)
            try:
                SCENES[name](how, folder)
            except CannotBeMadeError as error:
                pytest.skip(str(error))
            made[name, recorder] = folder
        return made[name, recorder]

    return folder_of


def recorded_elsewhere(folder: Path) -> Path:
    """The folder, if its scene came off."""
    outcome = (folder / OUTCOME).read_text() if (folder / OUTCOME).exists() else "it was not recorded"
    if outcome.startswith(SKIPPED):
        pytest.skip(outcome.removeprefix(SKIPPED))
    if outcome:
        pytest.fail(f"{folder.name}: {outcome}", pytrace=False)
    return folder


@pytest.fixture
def import_log(native: Path, tmp_path: Path) -> Callable[..., Path]:
    """Import logs; returns the recording's folder. Text may be given instead of a path."""

    def run(*logs: Path | str | bytes, options: tuple[str, ...] = ()) -> Path:
        number = len(list(tmp_path.glob("recording-*")))
        recording = tmp_path / f"recording-{number}"
        paths = []
        for index, log in enumerate(logs):
            if not isinstance(log, Path):
                path = tmp_path / f"text-{number}-{index}"
                path.write_bytes(log.encode() if isinstance(log, str) else log)
                log = path
            paths.append(log)
        subprocess.run(
            [native, "import", *paths, "-o", recording, *options], check=True, stdin=subprocess.DEVNULL
        )
        return recording

    return run


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder that all may enter."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder == Path(folder.anchor) or folder.name == "tmp":
            break
        folder.chmod(0o711)
    return tmp_path


@pytest.fixture
def query() -> Callable[[Path, str], list[tuple]]:
    """Run SQL over the tables of a recording, side tables as they lie on disk."""

    def run(recording: Path, sql: str) -> list[tuple]:
        connection = duckdb.connect()
        for name, entry in json.loads((recording / "recording.json").read_text())["tables"].items():
            files = [str(recording / part["file"]) for part in entry["parts"]]
            if files:
                connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({files})")
        return connection.execute(sql).fetchall()

    return run


@pytest.fixture
def manifest() -> Callable[[Path], dict]:
    """Reads recording.json."""
    return stated
