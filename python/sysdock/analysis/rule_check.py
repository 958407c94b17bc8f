"""Checks of `sysdock check` for rules only: sentences, headings, states."""

from __future__ import annotations

import re
from typing import Any

from sysdock.analysis.diagnosis import reasons
from sysdock.analysis.least_data import too_little
from sysdock.analysis.session import Result
from sysdock.errors import UserError
from sysdock.library import Analysis, Page
from sysdock.library.page import HOW_SURE, RULE_HEADINGS, heading
from sysdock.library.rule_shape import CERTAINTIES, STATUSES
from sysdock.sentences import catalogue, is_source, languages, say

# Columns that a diagnosis adds to a row of a rule.
SENTENCES = ["reason" if is_source(lang) else f"reason_{lang}" for lang in languages()]


def sentence_problems(rule: Analysis) -> list[str]:
    """Statuses that the rule has no sentence for in some language."""
    held = set(rule.says.texts)
    problems = [
        f"no sentence `says: {status} {lang}`"
        for status in STATUSES
        for lang in languages()
        if not any(key[0] == status and key[2] == lang for key in held)
    ]
    alone = sorted((*key[:2], lang) for key in held for lang in languages() if (*key[:2], lang) not in held)
    return problems + [
        f"`says: {status}` with variant {variant} has no {catalogue().languages[lang]['name']}"
        for status, variant, lang in dict.fromkeys(alone)
        if variant
    ]


def certainty_problems(rule: Analysis, page: Page) -> list[str]:
    """Certainties that the rule may state and its page does not explain, and explanations without use."""
    stated = set(re.findall(rf"'({'|'.join(CERTAINTIES)})'", rule.sql))
    problems = []
    for lang in languages():
        title = heading(HOW_SURE, lang)
        explained = page.clauses(lang)
        levels = {name.partition(".")[0] for name in explained}
        problems += [
            f"nothing under `## {title}` says why it is `{one}`: write `- {one}: ...`"
            for one in sorted(stated - levels)
        ]
        problems += [f"`## {title}`: the rule is never `{one}`" for one in sorted(levels - stated)]
        problems += [
            f"`## {title}`: no finding has the variant of `{name}`"
            for name in explained
            if "." in name and name.partition(".")[2] not in rule.says.variants("finding")
        ]
        if set(explained) != set(page.clauses()):
            problems.append(f"`## {title}` has other entries than `## {heading(HOW_SURE, languages()[0])}`")
    return problems


def page_problems(page: Page) -> list[str]:
    """Parts that the page of a rule lacks."""
    problems = []
    for lang in languages():
        if lang not in page.titles.texts:
            problems.append(f"no title in {catalogue().languages[lang]['name']} (a further `# ` line)")
    wanted = [heading(name, lang) for lang in languages() for name in RULE_HEADINGS]
    problems += [f"no heading `## {title}`" for title in wanted if title not in page.sections]
    problems += [f"nothing under `## {title}`" for title in wanted if page.sections.get(title) == ""]
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


def require_reach(result: Result, rows: list[tuple[Any, ...]]) -> None:
    """UserError: a diagnosis would not run the rule, by its `at_least:`, although it finds something."""
    status = [column.name for column in result.columns].index("status")
    if not any(row[status] == "finding" for row in rows):
        return
    if reason := too_little(result.session, result.analysis, result.values):
        raise UserError(
            "`at_least:` leaves out what the rule finds", say(reason, languages()[0]), result.place
        )


def with_sentences(result: Result, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows of a rule, each with its sentence in every language."""
    names = [column.name for column in result.columns]
    params = result.values
    found = []
    for row in rows:
        values = dict(zip(names, row, strict=True))
        for rule in (values.get("explained_by") or "").split(","):
            if rule.strip():
                result.session.library.rule(rule.strip())
        found.append((*row, *reasons(result.analysis, params, values).texts.values()))
    return found
