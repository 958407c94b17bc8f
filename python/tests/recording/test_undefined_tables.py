"""Tables of a recorder that is not known here: listed, queried, exported and reported like any other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import fork_server
import pytest
from click.testing import CliRunner
from make_recording import RecordingMaker, part_entry
from sysdock.cli import sysdock
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.recording.export import export
from sysdock.report import as_text


@pytest.fixture
def folder(maker: RecordingMaker) -> Path:
    """A recording of a power meter."""
    folder = maker.write(
        {}, about="power", recorder="meter", unit="samples", lines_total=3, lines_understood=3
    )
    part = folder / "watts" / "part-0000.parquet"
    part.parent.mkdir()
    duckdb.sql(
        "COPY (SELECT i AS ts_ns, i * 1.5 AS watts, 'rack <' || i AS place FROM range(3) t(i)) "
        f"TO '{part}' (FORMAT parquet)"
    )
    manifest = json.loads((folder / "recording.json").read_text())
    manifest["tables"]["watts"] = {"rows": 3, "lost": 0, "parts": [part_entry(folder, part, 3)]}
    manifest["tables"]["volts"] = {"rows": 0, "lost": 0, "parts": []}
    (folder / "recording.json").write_text(json.dumps(manifest))
    return folder


def said(*words: object) -> str:
    return CliRunner().invoke(sysdock, [str(word) for word in words], catch_exceptions=False).stdout


def test_info_names_what_it_is_about_and_counts_in_its_unit(folder: Path) -> None:
    lines = said("info", folder).splitlines()
    assert "kind         power" in lines
    assert "recorded by  meter -f -ttt -T -y" in lines
    assert "samples      3 of 3 understood (100 %)" in lines


def test_it_is_queried(folder: Path, open_session: Callable) -> None:
    session = open_session(folder)
    assert session.fetch("SELECT count(*), sum(watts) FROM watts") == [(3, 4.5)]
    sql = "SELECT place FROM watts ORDER BY ts_ns DESC LIMIT 1"
    done = fork_server.run("query", folder, sql, "--format", "json", check=True)
    assert json.loads(done.stdout) == [{"place": "rack <2"}]


def test_it_is_exported(folder: Path, library: Library, tmp_path: Path) -> None:
    written, _ = export(Recording.open(folder), library, tmp_path / "out", "csv")
    assert {(one.table, one.rows) for one in written} >= {("watts", 3)}
    assert (tmp_path / "out" / "watts.csv").read_text().splitlines()[0] == "ts_ns,watts,place"


def test_it_is_reported(folder: Path, open_session: Callable) -> None:
    html = as_text(open_session(folder))
    assert "<code>watts</code>" in html
    assert "rack &lt;2" in html


def test_rules_about_other_things_are_silent(folder: Path, open_session: Callable) -> None:
    assert open_session(folder).diagnose() == []


def test_a_damaged_part_is_refused(folder: Path, open_session: Callable) -> None:
    (folder / "watts" / "part-0000.parquet").write_bytes(b"PAR1")
    out = CliRunner().invoke(sysdock, ["query", str(folder), "SELECT * FROM watts"])
    assert out.exit_code != 0
