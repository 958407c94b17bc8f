"""Export of the tables."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

import duckdb
import pytest
from make_recording import RecordingMaker
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording import Filters, Recording
from sysdock.recording.export import export


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_joined_columns_are_filled_in(
    maker: RecordingMaker, library: Library, tmp_path: Path, format_: str
) -> None:
    out = tmp_path / "it's out"
    files, _ = export(Recording.open(maker.make()), library, out, format_)
    assert {file.table: file.rows for file in files}["calls"] == 8
    assert {file.path.name for file in files} == {f"{file.table}.{format_}" for file in files}
    reader = "read_csv" if format_ == "csv" else "read_parquet"
    path = str(out / f"calls.{format_}").replace("'", "''")
    rows = duckdb.execute(f"SELECT call, path, comm, pid, tid, result FROM {reader}('{path}')").fetchall()
    assert rows[0] == ("openat", "/usr/share/doc/a.txt", "tar", 100, 100, 3)
    assert rows[1][5] == 100
    # In order of time, although joined.
    assert [row[0] for row in rows][-3:] == ["getpid", "read", "newfstatat"]


def test_names_with_quotes_and_newlines_survive_csv(
    maker: RecordingMaker, library: Library, tmp_path: Path
) -> None:
    export(Recording.open(maker.make()), library, tmp_path / "out", "csv", raw=True)
    with open(tmp_path / "out" / "paths.csv", newline="") as file:
        paths = [row["path"] for row in csv.DictReader(file)]
    assert '/tmp/it\'s "<script>"\n,[x]*' in paths


def test_filters_apply(maker: RecordingMaker, library: Library, tmp_path: Path) -> None:
    files, notes = export(
        Recording.open(maker.make()), library, tmp_path / "out", "csv", Filters(call="read")
    )
    assert {file.table: file.rows for file in files}["calls"] == 3
    assert any("--call cannot be applied" in note for note in notes)


def test_nothing_is_overwritten(maker: RecordingMaker, library: Library, tmp_path: Path) -> None:
    recording = Recording.open(maker.make())
    (tmp_path / "out").mkdir()
    export(recording, library, tmp_path / "out", "csv", raw=True)
    with pytest.raises(UserError, match="already exists"):
        export(recording, library, tmp_path / "out", "csv", raw=True)


def test_a_part_with_damaged_pages_is_an_error(
    maker: RecordingMaker, library: Library, tmp_path: Path
) -> None:
    folder = maker.make()
    # Its footer is whole, and its hash right: what is wrong shows when the summaries of calls are counted.
    part = folder / "calls" / "part-0000.parquet"
    before = part.read_bytes()
    data = before[:4] + b"\xff" * 396 + before[400:]
    part.write_bytes(data)
    manifest = folder / "recording.json"
    hashes = [hashlib.sha256(each).hexdigest() for each in (before, data)]
    manifest.write_text(manifest.read_text().replace(*hashes))
    with pytest.raises(UserError, match="the tables cannot be read"):
        export(Recording.open(folder), library, tmp_path / "out", "parquet")
    assert not (tmp_path / "out").exists()


def test_half_a_file_is_not_left(
    maker: RecordingMaker, library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(UserError, match="cannot be written: No space left on device"):
        export(Recording.open(maker.make()), library, tmp_path / "out", "csv", raw=True)
    assert not (tmp_path / "out").exists()
