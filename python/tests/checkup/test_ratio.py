"""The ratio of step 1: the worked examples of the published report, and how times are written."""

from __future__ import annotations

from fractions import Fraction

import pytest
from sysdock.checkup.observed import observed
from sysdock.checkup.ratio import TABLE, JobTimes, no_times, ratio_part
from sysdock.checkup.site import Site
from sysdock.checkup.statement import Part
from sysdock.checkup.times import seconds
from sysdock.errors import UserError
from sysdock.text import truncated


def judged(job: JobTimes, threshold: float | None = None) -> Part:
    """What the rule of step 1 says of these times."""
    with observed({TABLE: [job.row()]}) as session:
        return ratio_part(session, job, Site(threshold))


def ratio(user: str, real: str, cores: int = 1, assistant_cores: int = 0) -> float:
    return judged(
        JobTimes(seconds(user), seconds(real), cores=cores, assistant_cores=assistant_cores)
    ).values["ratio"]


def test_ior_interactive() -> None:
    assert truncated(ratio("0.76", "26:27.30")) == "0.000478"


def test_ior_parallel() -> None:
    assert truncated(ratio("320 ms", "1,204,940 ms")) == "0.000265"


def test_hpl_batch() -> None:
    assert truncated(ratio("29,663,089 ms", "16:40", 34, 2)) == "0.926"


def test_ior_batch_which_the_report_prints_as_0_0442() -> None:
    """Its figures give 0.04638...: 0.0464 to three digits, 0.0463 truncated as the other three are."""
    found = ratio("51,023 ms", "18:20", 3, 2)
    assert f"{float(found):.3g}" == "0.0464"
    assert round(found, 4) == 0.0464
    assert truncated(found) == "0.0463"
    assert found == 51023 / 1_100_000


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1, "1.00"),
        (0.9999, "0.999"),
        (12.39, "12.3"),
        (1239.9, "1239"),
        (0.00047899, "0.000478"),
        (0.29, "0.290"),
    ],
)
def test_digits_are_cut_off(value: float, text: str) -> None:
    assert truncated(value) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.76", "0.76"),
        (" 0.76 s ", "0.76"),
        ("26:27.30", "1587.3"),
        ("1:02:03", "3723"),
        ("2-03:04:05", "183845"),
        ("320 ms", "0.32"),
        ("320ms", "0.32"),
        ("51,023 ms", "51.023"),
        ("1,204,940", "1204940"),
        ("0m0.76s", "0.76"),
        ("0m0,760s", "0.76"),
        ("1h2m3s", "3723"),
        ("12 µs", "0.000012"),
        ("5 min", "300"),
    ],
)
def test_times_as_people_and_tools_print_them(text: str, expected: str) -> None:
    assert seconds(text) == Fraction(expected)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-1",
        "1.2.3",
        "0,76",
        "1,2",
        "12,34",
        "nan",
        "inf",
        "1e5",
        "5 parsecs",
        "\uff11\uff12",
        "1:",
        "9" * 100,
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        seconds(text)


def test_verdicts() -> None:
    io, compute = JobTimes(Fraction(1), Fraction(100)), JobTimes(Fraction(90), Fraction(100))
    assert judged(io).verdict == "look closer"
    assert judged(compute).verdict == "ok"
    assert judged(io, 0.005).verdict == "ok"
    assert no_times().verdict == "unknown"
    assert judged(JobTimes(Fraction(0), Fraction(0))).verdict == "unknown"


def test_a_ratio_above_one_asks_for_the_cores() -> None:
    many = JobTimes(Fraction(300), Fraction(100))
    part = judged(many)
    assert (part.verdict, "--cores" in part.text("en")) == ("unknown", True)
    assert judged(many.on(4, None)).verdict == "ok"


def test_cores_that_leave_none_to_compute_are_refused() -> None:
    with pytest.raises(UserError, match="leave none to compute"):
        judged(JobTimes(Fraction(1), Fraction(1), cores=2, assistant_cores=2))


def test_times_that_no_table_holds_are_refused() -> None:
    with pytest.raises(UserError, match="146 years"):
        judged(JobTimes(Fraction(1), Fraction(10**10)))


def test_both_languages_have_the_same_numbers() -> None:
    part = judged(JobTimes(Fraction("0.76"), Fraction("1587.3"), Fraction(900)))
    assert "0.000478" in part.text("en")
    assert "0.000478" in part.text("ja")
    assert "system time" in part.text("en")
    assert "steps 2 and 3" in part.advice("en")
