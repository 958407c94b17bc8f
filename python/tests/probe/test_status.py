"""What `probe status` answers, of series whose truth is known."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from made_series import STARTED_NS, TEN_MINUTES_NS, Maker, as_history, make_series
from sysdock.library import Library
from sysdock.probe import slowdown
from sysdock.probe.slowdown import Answer, Settings
from sysdock.sentences import say

DAY = 144


def answer(maker: Maker, probes: int) -> Answer:
    """What is said right after the last of so many probes."""
    found = as_history(maker.rows(probes))
    return slowdown.judge_history(found, TEN_MINUTES_NS, found.times_ns[-1], Settings())


def slow_from(first: int, *items: str) -> Callable[[int, str], float]:
    """The truth: these items lose 30 % with the probe of that number."""
    return lambda number, item: 0.7 if number >= first and item in items else 1.0


def statuses(found: Answer) -> dict[str, str]:
    return {item.item: item.status for item in found.items}


def test_a_file_system_as_usual_is_usual() -> None:
    found = [answer(Maker(seed=seed), 2 * DAY).status for seed in range(20)]
    assert found.count("usual") >= 19


def test_a_slower_device_is_found_with_its_beginning_and_size() -> None:
    first = 5 * DAY - 24
    found = answer(Maker(truth=slow_from(first, "log")), 5 * DAY)
    [log] = [item for item in found.items if item.item == "log append"]
    assert (found.status, found.exit_status, log.status) == ("slower", 1, "slower")
    assert log.since_ns is not None
    assert abs(log.since_ns - (STARTED_NS + first * TEN_MINUTES_NS)) <= 6 * TEN_MINUTES_NS
    assert log.low is not None
    assert log.high is not None
    assert log.low <= -0.3 <= log.high
    assert log.confidence is not None
    assert log.confidence > 0.99
    assert statuses(found)["control"] == "usual"
    assert statuses(found)["random_read read"] == "usual"


def test_what_began_weeks_ago_is_found_too() -> None:
    first = 40 * DAY
    found = answer(Maker(truth=slow_from(first, "log")), 60 * DAY)
    [log] = [item for item in found.items if item.item == "log append"]
    assert log.status == "slower"
    assert log.since_ns is not None
    assert abs(log.since_ns - (STARTED_NS + first * TEN_MINUTES_NS)) <= DAY * TEN_MINUTES_NS


def test_a_slower_machine_is_not_called_a_slower_file_system() -> None:
    found = answer(Maker(truth=slow_from(5 * DAY - 36, "machine")), 5 * DAY)
    assert (found.status, found.exit_status) == ("machine", 1)
    assert [item for item, status in statuses(found).items() if status == "slower"] == ["control"]


def test_a_slower_file_system_on_a_slower_machine_is_told_apart() -> None:
    def truth(number: int, item: str) -> float:
        return 1.0 if number < 5 * DAY - 48 else {"machine": 0.7, "log": 0.4}.get(item, 1.0)

    found = answer(Maker(truth=truth), 5 * DAY)
    assert found.status == "slower"
    assert statuses(found)["control"] == "slower"
    assert statuses(found)["log append"] == "slower"
    assert statuses(found)["metadata create"] == "usual"


def test_a_backup_each_night_is_usual() -> None:
    def truth(number: int, item: str) -> float:
        hour = time.localtime((STARTED_NS + number * TEN_MINUTES_NS) // 10**9).tm_hour
        return 0.5 if hour == 2 and item != "control" else 1.0

    first_of_hour = next(
        number
        for number in range(20 * DAY, 21 * DAY)
        if time.localtime((STARTED_NS + number * TEN_MINUTES_NS) // 10**9).tm_hour == 2
    )
    # At the end of the hour of the backup.
    found = answer(Maker(truth=truth, noise=0.05), first_of_hour + 6)
    assert found.status == "usual"


def test_a_baseline_survives_a_kernel_update_and_names_it() -> None:
    first = 5 * DAY - 24
    maker = Maker(
        truth=slow_from(first, "log"), kernel=lambda number: "6.1.0" if number < first else "6.12.0"
    )
    found = answer(maker, 5 * DAY)
    [log] = [item for item in found.items if item.item == "log append"]
    assert log.status == "slower"
    assert log.note is not None
    assert say(log.note, "en") == "the kernel changed then, from 6.1.0 to 6.12.0"
    quiet = answer(Maker(kernel=lambda number: "6.1.0" if number < first else "6.12.0"), 5 * DAY)
    assert quiet.status == "usual"


def test_times_that_go_backwards_do_not_break_the_order() -> None:
    back = 4 * DAY

    def clock(number: int) -> int:
        return STARTED_NS + (number - (3 * DAY if number >= back else 0)) * TEN_MINUTES_NS

    found = answer(Maker(truth=slow_from(5 * DAY - 24, "log"), times=clock), 5 * DAY)
    [log] = [item for item in found.items if item.item == "log append"]
    assert log.since_ns is not None
    assert abs(log.since_ns - clock(5 * DAY - 24)) <= 6 * TEN_MINUTES_NS


@pytest.mark.parametrize(("probes", "status"), [(0, 3), (5, 3), (14, 3)])
def test_too_few_probes_are_not_known_yet(
    probes: int, status: int, library: Library, tmp_path: Path, call: Callable[..., Result], monkeypatch: Any
) -> None:
    place = make_series(tmp_path / "series", library, Maker().rows(probes))
    monkeypatch.setattr(time, "time_ns", lambda: STARTED_NS + probes * TEN_MINUTES_NS)
    done = call("status", "--series", place, "--lang", "en")
    assert done.return_value == status
    assert "not known yet: it takes 15 probes" in done.stdout
    done = call("status", "--series", place, "--lang", "ja")
    assert "まだわかりません" in done.stdout


def test_an_old_series_is_not_known(library: Library, tmp_path: Path, call: Callable[..., Result]) -> None:
    place = make_series(tmp_path / "series", library, Maker().rows(100))
    done = call("status", place, "--lang", "en")
    assert done.return_value == 3
    assert "the last probe is too old" in done.stdout


@pytest.fixture
def slow_series(library: Library, tmp_path: Path, monkeypatch: Any) -> Path:
    """A series that is slow for four hours; the clock stands at its end."""
    rows = Maker(truth=slow_from(2 * DAY - 24, "log")).rows(2 * DAY)
    monkeypatch.setattr(time, "time_ns", lambda: STARTED_NS + 2 * DAY * TEN_MINUTES_NS)
    return make_series(tmp_path / "series", library, rows, mount='/srv "a"')


def test_json_has_the_rows_that_others_rely_on(slow_series: Path, call: Callable[..., Result]) -> None:
    done = call("status", slow_series, "--format", "json")
    rows = {row["item"]: row for row in json.loads(done.stdout)}
    assert done.return_value == 1
    assert list(rows["log append"]) == ["item", "status", "since", "change", "low", "high", "confidence"]
    assert rows["log append"]["status"] == "slower"
    assert rows["log append"]["since"].endswith("Z")
    assert -0.4 < rows["log append"]["change"] < -0.2
    assert rows["control"] | {"change": 0, "low": 0, "high": 0} == {
        "item": "control", "status": "usual", "since": None, "change": 0, "low": 0, "high": 0, "confidence": None
    }  # fmt: skip


def test_openmetrics_is_what_a_collector_reads(
    slow_series: Path, tmp_path: Path, call: Callable[..., Result]
) -> None:
    output = tmp_path / "probe.prom"
    call("status", slow_series, "--format", "openmetrics", "-o", output)
    lines = output.read_text().splitlines()
    assert lines[-1] == "# EOF"
    assert r'sysdock_probe_status{mount="/srv \"a\""} 1' in lines
    assert r'sysdock_probe_item_slower{mount="/srv \"a\"",item="log append"} 1' in lines
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(families) == len(set(families))
    for line in lines:
        if not line.startswith("#"):
            assert line.split("{")[0] in families
            float(line.rsplit(" ", 1)[1])


def test_a_command_is_called_once_for_each_news(
    slow_series: Path, tmp_path: Path, call: Callable[..., Result]
) -> None:
    script = f'cat > "{tmp_path}/mail-$SYSDOCK_PROBE_STATUS"; echo >> "{tmp_path}/calls"'
    command = shlex.join(["sh", "-c", script])
    for _ in range(2):
        assert call("status", slow_series, "--call", command, "--lang", "en").return_value == 1
    assert "slower than usual, since" in (tmp_path / "mail-slower").read_text()
    assert (tmp_path / "calls").read_text() == "\n"


def test_text_says_since_when_how_much_and_how_sure(slow_series: Path, call: Callable[..., Result]) -> None:
    text = call("status", slow_series, "--lang", "en").stdout
    assert "slower than usual, since 20" in text.splitlines()[0]
    [log] = [line for line in text.splitlines() if line.startswith("log append")]
    assert "slower" in log
    assert log.rstrip().endswith("%")
    assert "100 %" not in log
