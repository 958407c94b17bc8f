"""Views of small recordings, against the plain ones."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import duckdb
import pytest
from make_recording import RecordingMaker
from sampling import some
from sysdock.analysis import Session
from sysdock.analysis import session as session_module
from sysdock.analysis.diagnosis import judge, lack
from sysdock.errors import NotComputed
from sysdock.library import Library, Table
from sysdock.recording import Filters, Recording, Views, small
from sysdock.recording.small import SmallViews, is_small

KINDS = ("make", "make_scan", "make_experiment", "make_ranks", "make_jobs", "make_itrace", "make_dump")
KINDS += ("make_load", "make_probes", "make_waits")


def answers(folder: Path, library: Library, filters: Filters | None = None) -> dict[str, object]:
    """The rows of all analyses, or why there are none, and what the rules find."""
    found: dict[str, object] = {}
    with Session(Recording.open(folder), library, filters) as session:
        found["small"] = isinstance(session.views, SmallViews)
        for analysis in session.answerable():
            try:
                found[analysis.id] = sorted(map(repr, session.run(analysis).rows()))
            except NotComputed as error:
                found[analysis.id] = str(error)
        found["findings"] = session.diagnose()
        # A diagnosis leaves out what cannot find anything here.
        rules = [rule for rule in library.rules() if not lack(session, rule)]
        found["rules"] = [judge(session, rule) for rule in rules]
        found["notes"] = sorted(map(repr, session.notes))
    return found


@pytest.mark.parametrize("kind", some(KINDS, 2))
def test_all_answers_are_those_of_plain_views(
    kind: str, tmp_path: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if it had been made here.
    monkeypatch.setenv("SYSDOCK_LIMITS", "off")
    folder = getattr(RecordingMaker(library, tmp_path), kind)()
    by_tables = answers(folder, library)
    monkeypatch.setattr(session_module, "is_small", lambda _recording: False)
    by_views = answers(folder, library)
    assert (by_tables.pop("small"), by_views.pop("small")) == (True, False)
    assert by_tables == by_views
    assert len(by_views) > 5


def test_filters_apply_to_tables_too(
    tmp_path: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYSDOCK_LIMITS", "off")
    folder = RecordingMaker(library, tmp_path).make()
    filters = Filters(call="read,openat,write", from_="0.001")
    by_tables = answers(folder, library, filters)
    monkeypatch.setattr(session_module, "is_small", lambda _recording: False)
    by_views = answers(folder, library, filters)
    assert by_tables.pop("small") != by_views.pop("small")
    assert by_tables == by_views


def test_what_is_large_or_from_elsewhere_is_not_small(
    tmp_path: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = Recording.open(RecordingMaker(library, tmp_path).make())
    assert not is_small(recording)
    monkeypatch.setenv("SYSDOCK_LIMITS", "off")
    assert is_small(recording)
    monkeypatch.setattr(small, "MOST_ROWS", 3)
    assert not is_small(recording)


def test_another_statement_finds_the_joined_columns_of_the_first(
    tmp_path: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYSDOCK_LIMITS", "off")
    with Session(Recording.open(RecordingMaker(library, tmp_path).make()), library) as session:
        other = session.for_thread()
        assert session.fetch("SELECT count(path) > 0 FROM calls") == [(True,)]
        assert other.fetch("SELECT count(comm) > 0 FROM calls") == [(True,)]
        connection = session.views.connection
        assert connection.execute("SELECT count(path) > 0 AND count(comm) > 0 FROM calls").fetchall() == [
            (True,)
        ]
        other.close()


def test_summaries_that_read_everything_do_not_wait_for_each_other(
    tmp_path: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQL of a pack may read all tables, so that counting one summary asks for another one."""
    monkeypatch.setenv("SYSDOCK_LIMITS", "off")
    begun = {name: threading.Event() for name in ("totals", "call_use")}
    count = Views._count

    def count_all(views: Views, table: Table, sql: str) -> None:
        if table.name in begun:
            begun[table.name].set()
            other = "call_use" if table.name == "totals" else "totals"
            # Only where each had a lock of its own, both would be counted now.
            begun[other].wait(0.5)
            # What is not counted yet cannot be read, which is an error of the pack.
            with contextlib.suppress(duckdb.Error):
                views.make([other])
        count(views, table, sql)

    monkeypatch.setattr(Views, "_count", count_all)
    with Session(Recording.open(RecordingMaker(library, tmp_path).make()), library) as session:
        other = session.for_thread()
        threads = [
            threading.Thread(target=views.make, args=([name],), daemon=True)
            for views, name in ((session.views, "totals"), (other.views, "call_use"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(600)
        assert [thread.is_alive() for thread in threads] == [False, False]
        assert session.fetch("SELECT count(*) > 0 FROM call_use") == [(True,)]
        other.close()
