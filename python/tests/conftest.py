"""Fixtures for all tests: recordings written from the table definitions, without the native importer."""

from __future__ import annotations

import faulthandler
import functools
import gc
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import browsing
import pytest
from make_recording import RecordingMaker
from scheduling import FilesOrTests, turn
from sysdock.analysis import Session
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording import Filters, Recording, engine_instances
from sysdock.recording.native import find_native
from xdist.remote import Producer

# Thousands of tests are collected, and are there until the end: looking for garbage among them takes a third of the time of a collection.
gc.disable()

KNOWHOW = Path(__file__).resolve().parents[2] / "knowhow"

# Settings of whoever runs the tests are none of theirs.
os.environ["SYSDOCK_CONFIG"] = ""
for _name in ("SYSDOCK_LANGUAGE", "SYSDOCK_RECORDER", "NO_COLOR"):
    os.environ.pop(_name, None)
# Recordings that tests make count as those of strangers, and a busy machine may need longer for one than strangers may ask for.
os.environ["SYSDOCK_LIMITS"] = "600"

engine_instances.reuse()

# A shell starts what it runs in the background with SIGINT and SIGQUIT ignored, and nohup with SIGHUP; every program that a test
# starts would inherit that, and no recorder passes on what it ignores.
signal.signal(signal.SIGINT, signal.default_int_handler)
for _ignored in (signal.SIGQUIT, signal.SIGHUP):
    signal.signal(_ignored, signal.SIG_DFL)

# What tests need, by folder or file; `serial` ones look at the whole system, at memory of their own, or at calls that overlap in time.
MARKS = {
    "serial": (
        "native/test_interrupts.py",
        "native/test_memory.py",
        "native/test_page_io.py",
        "native/test_block_requests.py",
        "native/test_shared_positions.py",
        "native/test_what_the_kernel_tells.py",
        "native/test_hidden_io.py",
        "native/test_file_faults.py",
        "native/test_kernel_counters.py",
        "native/test_killed_recorder.py",
        "native/test_kills.py",
        "export/test_profiles.py",
        "disk/test_device_cost.py",
        "experiment/state/",
    ),
    "timing": ("pairs/", "experiment/", "disk/test_device_cost.py"),
    "root": (
        "native/",
        "disk/",
        "pairs/",
        "experiment/",
        "report/test_disk",
        "recording/test_power_cuts.py",
        "recording/test_write_faults.py",
        "probe/test_series.py",
        "load/",
        "jobs/test_agent.py",
    ),
    # More than some three seconds of CPU time.
    "slow": (
        "analysis/test_check.py",
        "analysis/test_comparison.py",
        "analysis/test_diagnosis.py",
        "analysis/test_products.py",
        "analysis/test_query.py",
        "analysis/test_session.py",
        "analysis/test_spark_sql.py",
        "analysis/test_whose.py",
        "chart/test_flame.py",
        "chart/test_output.py",
        "chart/test_specs.py",
        "checkup/test_bundle.py",
        "checkup/test_volume.py",
        "cli/",
        "docs/test_add_family.py",
        "docs/test_howto_pages.py",
        "docs/test_printed_commands.py",
        "docs/test_readme.py",
        "docs/test_wheel.py",
        "dump/",
        "export/",
        "itrace/",
        "jobs/test_agent.py",
        "jobs/test_lake.py",
        "knowhow/",
        "load/",
        "probe/",
        "recording/test_hostile_recordings.py",
        "recording/test_mentions.py",
        "recording/test_merging.py",
        "recording/test_small.py",
        "report/test_brief.py",
        "report/test_flame_browser.py",
        "report/test_japanese_report.py",
        "report/test_report_browser.py",
        "report/test_report_page.py",
        "report/test_timeline_browser.py",
        "test_harmless.py",
        "test_hostile_files.py",
    ),
}


# Fixtures that boot a guest. What needs one is in test-more, but for one dump, whose tests are marked `guest`.
GUESTS = {"dumps", "panics", "saved", "flown", "read_twice"}


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    gc.enable()
    gc.freeze()


def pytest_sessionfinish() -> None:
    # Libraries look at the end for what nobody has freed.
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives tests the marks of their folder or file, and puts what takes long first."""
    for item in items:
        if GUESTS & set(getattr(item, "fixturenames", ())) and not item.get_closest_marker("guest"):
            item.add_marker("more")
        for mark, places in MARKS.items():
            if _place(item).startswith(places):
                item.add_marker(mark)
    items.sort(key=lambda item: turn(_place(item)))


# A test that takes longer than this hangs: the longest takes two minutes on a quiet machine, and some twenty times as long on the
# busiest on which the tests must pass.
PATIENCE_S = 45 * 60


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Lets a test that hangs fail, or ends its process, where nothing else helps; either says where it was."""

    def fail(_number: int, _frame: object) -> None:
        pytest.fail(f"{item.nodeid} takes more than {PATIENCE_S // 60} minutes")

    signal.signal(signal.SIGALRM, fail)
    signal.alarm(PATIENCE_S)
    faulthandler.dump_traceback_later(PATIENCE_S + 60, exit=True, file=sys.__stderr__)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.alarm(0)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FilesOrTests | None:
    """Who gets which tests, where `--dist loadfile` asks for whole files."""
    return FilesOrTests(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how many recordings were made that could have been kept ones."""
    afresh = {
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "recorded afresh"
    }
    if afresh:
        terminalreporter.write_line(f"pairs recorded afresh, as testdata/kept does not fit: {len(afresh)}")


def _place(item: pytest.Item) -> str:
    """The file of a test, in the folder of all tests."""
    return _below_all(item.path)


@functools.cache
def _below_all(path: Path) -> str:
    here = Path(__file__).parent
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else ""


@pytest.fixture(scope="session")
def library() -> Library:
    """The library of the checkout."""
    return Library(KNOWHOW)


@pytest.fixture
def maker(library: Library, tmp_path: Path) -> RecordingMaker:
    """Writes recordings below the test's folder."""
    return RecordingMaker(library, tmp_path)


@pytest.fixture
def open_session(library: Library) -> Iterator[Callable[..., Session]]:
    """Opens sessions on recordings, with filters as keywords, and closes them at the end."""
    opened: list[Session] = []

    def open_(folder: Path, knowhow: Library | None = None, **filters: object) -> Session:
        opened.append(Session(Recording.open(folder), knowhow or library, Filters(**filters)))
        return opened[-1]

    yield open_
    for session in opened:
        session.close()


class Pack:
    """A know-how folder of a test's own; tables and charts are those of the checkout."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("analyses", "rules"):
            (root / folder).mkdir(parents=True)
        for folder in ("tables", "charts"):
            (root / folder).symlink_to(KNOWHOW / folder)

    def add(self, id_: str, sql: str, page: str | None = None, kind: str = "analyses") -> Path:
        """Writes an analysis (or a rule), and its page if given; returns the .sql file."""
        path = self.root / kind / f"{id_}.sql"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(sql)
        if page is not None:
            path.with_suffix(".md").write_text(page)
        return path

    @property
    def library(self) -> Library:
        """A library that has read nothing yet."""
        return Library(self.root)


@pytest.fixture
def pack(tmp_path: Path) -> Pack:
    """An empty know-how folder."""
    return Pack(tmp_path / "pack")


@pytest.fixture(scope="session")
def launch() -> Iterator[Callable[..., Any]]:
    """Starts a browser; a process can have one playwright, which all tests share."""
    with browsing.launcher() as started:
        yield started


@pytest.fixture(scope="session")
def native() -> Path:
    """The native program; a test that needs it is skipped where it was not built."""
    try:
        return find_native()
    except UserError:
        pytest.skip("sysdock-native is not built (make setup)")
