"""Two loads compared: values that only one of them measured are unknown for the other."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner
from sysdock.cli import sysdock
from sysdock.library import Library
from sysdock.recording.writing import add_part, empty_capture, empty_manifest, write_manifest


def _recorded(folder: Path, library: Library, rates: dict[str, float]) -> Path:
    folder.mkdir()
    write_manifest(folder, empty_manifest({}, empty_capture("load", "results", "load")))
    columns = [column.name for column in library.table("load_results").columns]
    shared = {"item": "transfer", "processes": 1, "engine": "sysdock", "status": "measured"}
    numbers = {"bytes": 4096, "operations": 1, "errors": 0, "length_bytes": 4096, "operations_per_s": 1.0}
    rows = [
        {**shared, **numbers, "result_id": number, "operation": operation, "bytes_per_s": rate}
        for number, (operation, rate) in enumerate(rates.items(), 1)
    ]
    add_part(folder, library, "load_results", [[row.get(column) for column in columns] for row in rows])
    return folder


def test_rates_of_two_loads(tmp_path: Path, library: Library):
    first = _recorded(tmp_path / "first", library, {"write": 100.0, "read": 300.0})
    second = _recorded(tmp_path / "second", library, {"read": 150.0})
    done = CliRunner().invoke(sysdock, ["compare", str(first), str(second), "--format", "json"])
    assert done.exit_code == 0, done.output
    totals = {row["what"]: row for row in json.loads(done.stdout)["totals"]}
    assert (totals["transfer read"]["a"], totals["transfer read"]["b"]) == (300, 150)
    assert (totals["transfer write"]["a"], totals["transfer write"]["b"]) == (100, None)
