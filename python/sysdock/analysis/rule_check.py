"""What `sysdock check` wants of rules beside what it wants of all know-how: sentences, headings, states."""

from __future__ import annotations

from typing import Any

from sysdock.analysis.diagnosis import reasons
from sysdock.analysis.session import Result
from sysdock.library import Analysis, Page
from sysdock.library.page import RULE_HEADINGS, RULE_HEADINGS_JA
from sysdock.library.rule_shape import LANGUAGES, STATUSES

# What a diagnosis adds to a row of a rule.
SENTENCES = ["reason", "reason_ja"]


def sentence_problems(rule: Analysis) -> list[str]:
    """Statuses that the rule has no sentence for in some language."""
    held = set(rule.says.texts)
    problems = [
        f"no sentence `says: {status} {lang}`"
        for status in STATUSES
        for lang in LANGUAGES
        if not any(key[0] == status and key[2] == lang for key in held)
    ]
    alone = sorted(key for key in held if (*key[:2], "ja") not in held)
    return problems + [
        f"`says: {status}` with variant {variant} has no Japanese" for status, variant, _ in alone
    ]


def page_problems(page: Page) -> list[str]:
    """What the page of a rule lacks."""
    problems = []
    if page.title_ja is None:
        problems.append("no Japanese title (a second `# ` line)")
    wanted = RULE_HEADINGS + RULE_HEADINGS_JA
    problems += [f"no heading `## {heading}`" for heading in wanted if heading not in page.sections]
    problems += [f"nothing under `## {heading}`" for heading in wanted if page.sections.get(heading) == ""]
    shown = _shown_statuses(page)
    lacking = [status for status in ("finding", "ok", "unknown") if status not in shown]
    problems += [f"no example shows `{status}`" for status in lacking]
    return problems


def _shown_statuses(page: Page) -> set[str | None]:
    return {
        row[example.expected_columns.index("status")]
        for example in page.examples
        if "status" in example.expected_columns
        for row in example.expected_rows
    }


def with_sentences(result: Result, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows of a rule, each with its sentence in both languages."""
    names = [column.name for column in result.columns]
    params = result.values
    found = []
    for row in rows:
        values = dict(zip(names, row, strict=True))
        for rule in (values.get("explained_by") or "").split(","):
            if rule.strip():
                result.session.library.rule(rule.strip())
        found.append((*row, *reasons(result.analysis, params, values)))
    return found
