"""`sysdock show`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sysdock.cli.options import (
    color_option,
    complete_analysis,
    engine_option,
    filter_options,
    format_option,
    lang_option,
    open_session,
    parse_params,
    raw_option,
    recording_argument,
)
from sysdock.errors import UserError

if TYPE_CHECKING:
    from sysdock.analysis import Session

_EPILOG = """Example:

\b
  sysdock show rec io/summary
  sysdock show rec io/files --file '/usr/share/*' --format csv
  sysdock show rec io/calls_over_time -p interval_s=0.5 --plot calls.png
  sysdock show rec time/where --per 100000
  sysdock show rec itrace/dump -p function=memcpy
  sysdock show /data/lake jobs/history --engine spark://head:7077
"""


@click.command("show", epilog=_EPILOG)
@recording_argument
@click.argument("analysis", required=False, shell_complete=complete_analysis)
@click.option(
    "-p", "--param", "pairs", metavar="NAME=VALUE", multiple=True, help="Set a parameter of the analysis."
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    help="Maximum number of rows; 0: all. Default: 50 for a table, otherwise all.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    metavar="OUT.png|svg|html",
    help="Draw its charts into this file (replaced if it exists).",
)
@click.option(
    "--per",
    metavar="N|requests",
    help="Per unit of work: divide calls, bytes and times by N, or by the number of recorded requests.",
)
@engine_option
@format_option
@raw_option
@filter_options
@lang_option
@color_option
def command(
    recording: Path,
    analysis: str | None,
    pairs: tuple[str, ...],
    limit: int | None,
    plot: Path | None,
    per: str | None,
    engine: str,
    format_: str,
    raw: bool,
    lang: str,
    **options: Any,
) -> None:
    """Answer one question about a recording: run ANALYSIS and print or draw the result.

    Without ANALYSIS the analyses are listed.
    """
    if analysis is None:
        from sysdock.cli.list_all import print_list

        print_list("analyses", format_)
        return
    from sysdock.cli.output import print_result, remark, remark_on

    params = parse_params(pairs)
    if analysis == "itrace/dump":
        from sysdock.cli.itrace import show_instructions

        show_instructions(recording, params, limit, format_)
        return
    with open_session(recording, options, engine) as session:
        found = session.library.analysis(analysis)
        if plot and per:
            raise UserError("--per is for tables, not for charts", "leave out one of --per and --plot")
        if plot:
            from sysdock import chart

            chart.write(session, found, params, plot, lang)
            remark(f"{plot} written")
        else:
            result = session.run(found, params)
            if per:
                units = _units(session, per)
                result = result.per(units)
                remark(f"per unit of work, of {units:,.15g}: {', '.join(found.sums)}")
            print_result(result, format_, limit, raw=raw)
        remark_on(session, session.library.sources((*found.needs, *found.uses)), lang)


def _units(session: Session, per: str) -> float:
    """Number of units of work: as stated, or the number of requests in the recording."""
    if per == "requests":
        session.require(session.library.analysis("requests/latency"))
        [(units,)] = session.fetch("SELECT count(*) FROM requests")
        if not units:
            raise UserError("no requests in this recording", "give their number: --per N")
        return float(units)
    try:
        units = float(per)
    except ValueError:
        units = 0.0
    if not 0 < units < math.inf:
        raise UserError(f"--per {per}: not a number of units above 0", "give a number, or `requests`")
    return units
