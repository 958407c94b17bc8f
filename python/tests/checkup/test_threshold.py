"""A site's threshold from many records, and the file that holds it."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path

import pytest
from accounting_file import process, write
from sysdock.checkup.histogram import Histogram
from sysdock.checkup.site import parse_rate, read_site, update_rates, write_site
from sysdock.checkup.threshold import Survey, decide, survey
from sysdock.errors import UserError
from sysdock.sentences import say


def of(ratios: list[float]) -> Survey:
    found = Survey()
    for ratio in ratios:
        found.histogram.add(ratio, 1.0)
    return found


def normal(mean: float, deviation: float, number: int) -> list[float]:
    """Ratios whose logarithms are spread normally."""
    source = random.Random(f"{mean} {deviation}")
    return [10 ** source.gauss(mean, deviation) for _ in range(number)]


def test_two_classes_are_split_between_them() -> None:
    threshold = decide(of(normal(-2.5, 0.4, 3000) + normal(-0.05, 0.03, 7000)))
    assert threshold.method == "computed"
    assert 0.01 < threshold.value < 0.5
    assert "two classes" in say(threshold.reason, "en")


def test_an_empty_gap_is_split_in_its_middle() -> None:
    assert decide(of([0.001] * 500 + [1.0] * 500)).value == pytest.approx(0.0316, rel=0.05)


@pytest.mark.parametrize(
    ("ratios", "reason"),
    [
        (normal(-1, 0.5, 5000), "no two classes"),
        ([10 ** -(n / 1000) for n in range(5000)], "no two classes"),
        (normal(-0.05, 0.02, 9900) + normal(-4, 0.1, 100), "smaller class has only"),
        ([0.001] * 400 + [0.9] * 400, "800 records are too few"),
        ([0.5] * 2000, "same ratio"),
        ([], "0 records are too few"),
    ],
)
def test_without_two_classes_it_is_the_usual_value_with_the_reason(ratios: list[float], reason: str) -> None:
    threshold = decide(of(ratios))
    assert (threshold.value, threshold.method) == (0.1, "default")
    assert reason in say(threshold.reason, "en")


def test_quantiles_are_weighted() -> None:
    histogram = Histogram()
    histogram.add(0.01, 3.0)
    histogram.add(0.9, 1.0)
    assert histogram.quantile(0.5) == pytest.approx(0.01, rel=0.02)
    assert histogram.quantile(0.9) == pytest.approx(0.9, rel=0.02)
    assert Histogram().quantile(0.5) is None


def test_ratios_beyond_the_ends_are_counted_at_the_ends() -> None:
    histogram = Histogram()
    for ratio in (0.0, 1e-9, 500.0):
        histogram.add(ratio, 1.0)
    assert (histogram.weights[0], histogram.weights[-1], histogram.records) == (2.0, 1.0, 3)


def test_accounting_files_and_tables_go_together(tmp_path: Path) -> None:
    records = [
        process("io", 10_000, 20),
        process("short", 50, 20),
        process("sh", 90_000, 0),
        process("hpl", 10_000, 8000),
    ]
    path = write(tmp_path / "pacct", records)
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("job,user,real,cores,end\n1,320,100,4,2024-01-01\n2,0.1,0.2,1,2024-01-01\n")
    found = survey([path, jobs], without={"sh"})
    assert (found.histogram.records, found.short, found.without) == (3, 2, 1)
    # 100 s, 100 s, and 100 s on four cores.
    assert found.histogram.weight == pytest.approx(600)
    assert (found.first, found.last) == (1_700_000_000, 1_704_067_200)


def test_a_damaged_time_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a process took nan ticks"):
        survey([write(tmp_path / "pacct", [process("a", float("nan"), 1)])])


def test_the_file_of_a_site(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    found = of(normal(-2.5, 0.4, 3000) + normal(-0.05, 0.03, 7000))
    found.cover(0, 86400)
    threshold = decide(found)
    write_site(
        path, found, threshold, dict([parse_rate("/work=read:1.2e9,write:0.9e9"), parse_rate('/o"dd=read:5')])
    )
    content = tomllib.loads(path.read_text())
    assert content["ratio"]["records"] == 10_000
    assert content["ratio"]["until"].isoformat() == "1970-01-02T00:00:00+00:00"
    assert list(content["ratio"]["quantiles"]) == ["p05", "p10", "p25", "p50", "p75", "p90", "p95"]
    site = read_site(path)
    assert site.threshold == threshold.value
    assert site.rates == {"/work": {"read": 1.2e9, "write": 0.9e9}, '/o"dd': {"read": 5.0}}
    with pytest.raises(UserError, match="already exists"):
        write_site(path, found, threshold, {})
    assert [file.name for file in tmp_path.iterdir()] == ["site.toml"]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("threshold = ", "not TOML"),
        ("", "no `threshold`"),
        ("ratio = 3", "no `threshold`"),
        ("[ratio]\nthreshold = 2", "no `threshold`"),
        ("[ratio]\nthreshold = true", "no `threshold`"),
        ("[ratio]\nthreshold = nan", "no `threshold`"),
        ('[ratio]\nthreshold = 0.1\n[rates."/w"]\nread = 3', "rates of `/w`"),
        ('[ratio]\nthreshold = 0.1\n[rates."/w"]\nread_bytes_s = 0', "rates of `/w`"),
        ("rates = 3\n[ratio]\nthreshold = 0.1", "`rates` is not a table"),
    ],
)
def test_broken_files_of_a_site(tmp_path: Path, text: str, fact: str) -> None:
    path = tmp_path / "site.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=fact):
        read_site(path)


@pytest.mark.parametrize(
    "text", ["/work", "/work=read", "/work=read:x", "/work=read:-1", "work=read:1", "/work=seek:1"]
)
def test_rates_that_state_nothing(text: str) -> None:
    with pytest.raises(UserError, match="states no rate"):
        parse_rate(text)


def test_rates_are_put_into_the_file_of_a_site(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    update_rates(path, Path("/work"), {"read": 2e9})
    # A file of rates has the threshold of the rule.
    assert read_site(path).threshold is None
    path.write_text(
        '# Ours.\n[ratio]\nthreshold = 0.2  # mine\n\n[rates."/work"]\n# 2024\nread_bytes_s = 1\n'
    )
    path.chmod(0o640)
    update_rates(path, Path("/work"), {"read": 3e9, "write": 1e9})
    update_rates(path, Path('/o"dd'), {"write": 5.0})
    site = read_site(path)
    assert site.rates == {"/work": {"read": 3e9, "write": 1e9}, '/o"dd': {"write": 5.0}}
    assert path.read_text().startswith("# Ours.\n[ratio]\nthreshold = 0.2  # mine\n\n[rates.")
    assert "# 2024\n" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o640
    assert [file.name for file in tmp_path.iterdir()] == ["site.toml"]


@pytest.mark.parametrize(
    "text", ['rates = {"/w" = {read_bytes_s = 1}}\n', '[rates]\n"/w".read_bytes_s = 1\n']
)
def test_rates_in_another_form_are_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "site.toml"
    path.write_text(text)
    with pytest.raises(UserError, match="line by line"):
        update_rates(path, Path("/w"), {"read": 2.0})
    assert path.read_text() == text
