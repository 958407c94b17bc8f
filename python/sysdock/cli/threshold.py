"""`sysdock threshold`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sysdock.cli.options import lang_option
from sysdock.sentences import Words, fact
from sysdock.sentences import say as say_in

if TYPE_CHECKING:
    from sysdock.checkup.threshold import Survey, Threshold

_EPILOG = """Example:

\b
  sysdock threshold /var/log/account/pacct* -o site.toml
  sysdock threshold jobs-2025.csv --rate /work=read:1.2e9,write:0.9e9 -o site.toml
  sysdock checkup --site site.toml --time job.log
"""
_BAR = 40


@click.command("threshold", epilog=_EPILOG)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    metavar="SITE.toml",
    type=click.Path(path_type=Path),
    help="New file for the values of this site.",
)
@click.option(
    "--rate",
    "rates",
    metavar="DIR=read:N,write:N",
    multiple=True,
    help="Rates in B/s that a file system reached when it was checked.",
)
@click.option(
    "--rates-from",
    metavar="OLD.toml",
    type=click.Path(path_type=Path),
    help="Copy the rates from that file.",
)
@click.option(
    "--min-real",
    metavar="S",
    type=click.FloatRange(0),
    default=1.0,
    show_default=True,
    help="Ignore jobs that are shorter.",
)
@click.option(
    "--without", metavar="A,B", default="", help="Ignore these programs, such as shells that only wait."
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["table", "json"]),
    default="table",
    help="table (default): for reading. json: exact values.",
)
@lang_option
def command(
    files: tuple[Path, ...],
    output: Path | None,
    rates: tuple[str, ...],
    rates_from: Path | None,
    min_real: float,
    without: str,
    format_: str,
    lang: str,
) -> None:
    """Compute this site's threshold for step 1 of `sysdock checkup` from a year of accounting.

    FILEs are process accounting files (package acct; also packed with gzip) or tables of jobs (CSV, TSV,
    `sacct -P`) with the columns job, user, system, real, cores, assistant_cores.
    """
    from sysdock.checkup.site import parse_rate, read_site, refuse_place, write_site
    from sysdock.checkup.threshold import decide, survey
    from sysdock.cli.output import remark, say

    known = read_site(rates_from).rates if rates_from else {}
    known |= dict(map(parse_rate, rates))
    if output:
        # Before a year of records is read.
        refuse_place(output)
    found = survey(files, min_real, {name for name in without.split(",") if name})
    threshold = decide(found)
    if format_ == "json":
        from sysdock.analysis.writing import json_text

        sys.stdout.write(json_text(_content(found, threshold, lang), indent=1) + "\n")
    else:
        heads = [say_in(fact(f"checkup/threshold_{name}"), lang) for name in ("quantiles", "histogram")]
        say(_lines(found, threshold, min_real, lang), heads=heads)
    if output:
        write_site(output, found, threshold, known)
        remark(f"{output} written")


def _content(found: Survey, threshold: Threshold, lang: str) -> dict[str, Any]:
    from sysdock.checkup.site import moment
    from sysdock.checkup.threshold import QUANTILES

    split = threshold.split
    return {
        "threshold": threshold.value,
        "method": threshold.method,
        "reason": say_in(threshold.reason, lang),
        "records": found.histogram.records,
        "too_short": found.short,
        "left_out": found.without,
        "from": None if found.first is None else moment(found.first),
        "until": None if found.last is None else moment(found.last),
        "separation": split and split.separation,
        "valley": split and split.valley,
        "quantiles": {str(share): found.histogram.quantile(share) for share in QUANTILES},
        "histogram": [
            {"from": low, "until": high, "share": share} for low, high, share in found.histogram.decades()
        ],
    }


def _lines(found: Survey, threshold: Threshold, min_real: float, lang: str) -> list[str]:
    from sysdock.checkup.site import moment
    from sysdock.checkup.threshold import QUANTILES

    method = fact(f"checkup/threshold_{threshold.method}")
    stated: list[Words] = [
        fact("checkup/threshold", value=threshold.value, method=method, reason=threshold.reason),
        fact(
            "checkup/threshold_records",
            records=found.histogram.records,
            short=found.short,
            without=found.without,
            min_real=min_real,
        ),
    ]
    if found.first is not None and found.last is not None:
        stated.append(fact("checkup/threshold_period", first=moment(found.first), last=moment(found.last)))
    lines = [say_in(each, lang) for each in stated]
    rows = found.histogram.decades()
    if not rows:
        return lines
    lines += ["", say_in(fact("checkup/threshold_quantiles"), lang)]
    lines += [f"  {share:>4.0%}  {found.histogram.quantile(share):.3g}" for share in QUANTILES]
    lines += ["", say_in(fact("checkup/threshold_histogram"), lang)]
    most = max(share for _, _, share in rows)
    here = say_in(fact("checkup/threshold_here"), lang)
    for low, high, share in rows:
        mark = f"  <- {here}" if low <= threshold.value < high else ""
        bar = "#" * round(share / most * _BAR)
        lines.append(f"  {low:>9.3g}  {share:>6.1%}  {bar}{mark}".rstrip())
    return lines
