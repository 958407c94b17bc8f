"""`sysdock diagnose`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sysdock.cli.options import (
    color_option,
    complete_rule,
    filter_options,
    format_option,
    lang_option,
    open_session,
    parse_params,
    raw_option,
    recording_argument,
)
from sysdock.errors import UserError
from sysdock.sentences import say

if TYPE_CHECKING:
    from sysdock.analysis import Finding, Session

KEYS = (
    "rule",
    "status",
    "subject",
    "value",
    "limit_value",
    "cost_ns",
    "gain_ns",
    "certainty",
    "certainty_reason",
    "share",
    "share_of",
    "file",
    "process",
    "program",
    "from_s",
    "until_s",
    "part_of",
    "others",
    "reason",
    "title",
    "advice",
    "product",
    "product_advice",
)
_EPILOG = """Example:

\b
  sysdock diagnose rec
  sysdock diagnose rec io/small_requests                    one rule, with all it finds
  sysdock diagnose rec io/small_requests -p small_bytes=65536
  sysdock diagnose rec --format json --fail-on finding
"""


@click.command("diagnose", epilog=_EPILOG)
@recording_argument
@click.argument("rule", required=False, shell_complete=complete_rule)
@click.option(
    "-p",
    "--param",
    "pairs",
    metavar="NAME=VALUE",
    multiple=True,
    help="Set a parameter of RULE, such as a limit.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["finding", "unknown"]),
    help="Exit with 1 on findings; with `unknown` also on inconclusive rules.",
)
@format_option
@raw_option
@filter_options
@lang_option
@color_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    recording: Path,
    rule: str | None,
    pairs: tuple[str, ...],
    fail_on: str | None,
    format_: str,
    raw: bool,
    lang: str,
    **options: Any,
) -> None:
    """Evaluate all rules: findings with advice first, the largest potential saving at the top.

    With RULE, only that rule is evaluated, and all its subjects are shown.
    """
    if pairs and rule is None:
        raise UserError(
            "-p sets a limit of one rule", "name the rule: `sysdock diagnose REC RULE -p ...`", "-p"
        )
    from sysdock.cli.output import print_rows, remark, remark_on, terminal_width
    from sysdock.library import Column
    from sysdock.sections.description import statements
    from sysdock.text import printable

    with open_session(recording, options) as session:
        findings = _by_one(session, rule, parse_params(pairs), lang) if rule else session.diagnose(lang)
        stated = [
            line
            for statement in ([] if rule else statements(session, str(recording)))
            for line in (say(statement.text, lang), *(f"  {shown}" for shown in statement.commands))
        ]
        if format_ == "table":
            from sysdock.analysis.tracer import tracer_cost
            from sysdock.screen.answer import COLUMNS, diagnosis_lines, words_to_paint
            from sysdock.screen.color import painted
            from sysdock.text import fitted, wrapped

            # Only rules of the user apply to an experiment.
            judged = diagnosis_lines(findings, recording, lang, terminal_width())
            if cost := tracer_cost(session):
                judged[1:1] = wrapped(say(cost.words, lang), min(terminal_width() or COLUMNS, COLUMNS))
            lines = fitted(map(printable, stated), terminal_width())
            lines += judged if findings or not stated else []
            sys.stdout.write("\n".join(painted(lines, words_to_paint(lang), sys.stdout)) + "\n")
        else:
            names = (*KEYS, "evidence")
            rows = [[_cell(getattr(finding, name)) for name in names] for finding in findings]
            print_rows([Column(name, "VARCHAR", None, "") for name in names], rows, format_, raw=raw)
            if stated:
                remark("\n".join(stated))
        remark_on(session, lang=lang)
    bad = {"finding": {"finding"}, "unknown": {"finding", "unknown"}, None: set()}[fail_on]
    if any(finding.status in bad and not finding.is_note for finding in findings):
        ctx.exit(1)


def _by_one(session: Session, rule: str, params: dict[str, str], lang: str) -> list[Finding]:
    from sysdock.analysis.diagnosis import diagnose_by

    found = diagnose_by(session, session.library.rule(rule), params)
    return [finding.in_language(lang) for finding in found]


def _cell(value: Any) -> Any:
    """`part_of` is a rule and its subject; all else is what it is."""
    return ": ".join(value) if isinstance(value, tuple) else value
