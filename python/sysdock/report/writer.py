"""Writes the report: head, findings, each analysis with charts and table, environment, import."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from functools import partial
from typing import Any

from sysdock.analysis import Result, Session
from sysdock.analysis.side_by_side import side_by_side
from sysdock.chart.drawing import Drawing, drawings_of
from sysdock.errors import NotComputed
from sysdock.library import Analysis, Column
from sysdock.page.document import document, figure
from sysdock.page.markup import both, both_blocks, inline, join, prose, text
from sysdock.page.tables import copy_button, search_field, table
from sysdock.report.findings import findings_section
from sysdock.report.overview import overview_section
from sysdock.report.sources import sql_block, sql_link

ROWS = 200
ISSUES = 50
_STEPS = 120


def report(session: Session, lang: str = "en") -> str:
    """The report as HTML text."""
    findings = session.diagnose("en")
    answers = side_by_side(session, partial(_answer, lang=lang), _in_order(session))
    charts: list[dict[str, Any]] = []
    analyses = [_analysis(session, answer, charts) for answer in answers]
    head = both("What the program did", "プログラムの動作")
    body = join(
        [
            _top(lang),
            "<main>",
            overview_section(session, findings),
            findings_section(session, findings),
            f'<section id="analyses"><h2>{head}</h2>{_no_script()}{_range()}{join(analyses)}</section>',
            _undefined_tables(session),
            _environment(session),
            _issues(session),
            "</main>",
        ]
    )
    name = session.subject[lang == "ja"]
    return document(f"{name} - sysdock", lang, body, charts)


def _top(lang: str) -> str:
    links = [
        ("findings", both("Findings", "所見")),
        ("analyses", both("Analyses", "分析")),
        ("environment", both("Environment", "環境")),
        ("issues", both("Import", "取り込み")),
    ]
    nav = "".join(f'<a href="#{place}">{words}</a>' for place, words in links)
    languages = _switch("lang", "Language", [("en", "English"), ("ja", "日本語")], lang)
    themes = _switch("theme", "Theme", [("auto", "Auto"), ("light", "Light"), ("dark", "Dark")], "auto")
    return (
        f'<header class="top"><span class="mark">sysdock</span><nav>{nav}</nav>{languages}{themes}</header>'
    )


def _switch(name: str, label: str, choices: list[tuple[str, str]], chosen: str) -> str:
    """Radio buttons: the style sheet reads them, so that the switch works without a script."""
    inputs = "".join(
        f'<input type="radio" name="{name}" id="{name}-{value}" value="{value}"'
        f'{" checked" * (value == chosen)}><label for="{name}-{value}">{words}</label>'
        for value, words in choices
    )
    return f'<div class="switch" role="radiogroup" aria-label="{label}">{inputs}</div>'


def _no_script() -> str:
    words = both(
        "The charts need JavaScript; the tables hold the same numbers.",
        "グラフの表示には JavaScript が必要です。表には同じ数値があります。",
    )
    return f'<noscript><p class="warn">{words}</p></noscript>'


def _range() -> str:
    """The time range that all charts over time show; the page's code shows it and fills it in."""
    words = both("Time shown [s]:", "表示する時間 [秒]:")
    hint = both("or drag over a chart", "またはグラフ上をドラッグ")
    return (
        f'<form id="range" class="tools" hidden><label>{words} '
        '<input type="number" name="from" step="any"></label>'
        '<label>- <input type="number" name="until" step="any"></label>'
        f'<button type="submit">{both("Show", "表示")}</button>'
        f'<button type="reset">{both("All", "全体")}</button> <span class="muted">{hint}</span></form>'
    )


def _in_order(session: Session) -> list[Analysis]:
    """All analyses that the recording can answer, summaries first."""
    first = ("time/where", "time/calls", "time/states", "io/summary", "io/files", "io/errors")
    usable = session.answerable()
    return sorted(usable, key=lambda a: (first.index(a.id) if a.id in first else len(first), a.id))


@dataclass(frozen=True)
class _Answer:
    """An analysis with what was asked of it, and what came out: its charts, and its table as HTML.

    `trouble`: why there are no charts, as HTML.
    """

    analysis: Analysis
    params: dict[str, Any]
    drawings: list[Drawing]
    table: str
    trouble: str = ""


def _answer(session: Session, analysis: Analysis, lang: str) -> _Answer:
    params = _params(session, analysis)
    try:
        result = session.run(analysis, params).keep()
        shown = _result_table(result, _place(analysis))
    except NotComputed as error:
        return _Answer(analysis, params, [], not_computed(error))
    drawn, trouble = [], ""
    try:
        drawn = drawings_of(result, lang)
    except NotComputed as error:
        trouble = not_computed(error)
    result.forget()
    return _Answer(analysis, params, drawn, shown, trouble)


def _place(analysis: Analysis) -> str:
    """Where it stands in the page."""
    return analysis.id.replace("/", "-")


def _analysis(session: Session, answer: _Answer, charts: list[dict[str, Any]]) -> str:
    analysis, params = answer.analysis, answer.params
    figures = []
    for drawing in answer.drawings:
        if drawing.shown:
            named = both(text(drawing.title), text(drawing.title_ja))
            caption = both(text(drawing.caption), text(drawing.caption_ja)) + f" {sql_link(analysis, 'SQL')}"
            label = f"{analysis.title}: {drawing.title}, {drawing.caption}"
            figures.append(figure(len(charts), named, caption, label))
            charts.append(drawing.spec)
    drawn = f'<div class="charts">{join(figures)}</div>' if figures else answer.trouble
    said = " ".join(f"{key} = {value}" for key, value in params.items())
    head = f"<h3>{_analysis_title(session, analysis)}</h3><code>{text(analysis.id)}</code>"
    return f"""<section class="card analysis" id="{text(_place(analysis))}">
<header>{head} <span class="muted">{text(said)}</span></header>
{_description(session, analysis)}
{drawn}
{answer.table}
{_source(session, analysis, params)}
</section>"""


def _source(session: Session, analysis: Analysis, params: dict[str, Any]) -> str:
    """Where the numbers come from: the command that prints them all, and its SQL."""
    words = ("How these numbers are made (SQL)", "この数値の求め方 (SQL)")
    options = "".join(f" -p {key}={value}" for key, value in params.items())
    command = f"sysdock show {shlex.quote(session.recording.folder.name)} {analysis.id}{options}"
    filters = session.filters.describe()
    command += f" {filters}" if filters else ""
    return sql_block(analysis, words, command, params)


def _params(session: Session, analysis: Analysis) -> dict[str, Any]:
    """For analyses with a step of time, one that gives about a hundred: a page cannot ask for it."""
    seconds = session.recording.manifest["duration_ns"] / 1e9
    if not any(param.name == "interval_s" for param in analysis.params) or seconds <= 0:
        return {}
    rough = seconds / _STEPS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(lead * power for lead in (1, 2, 5, 10) if lead * power >= rough)
    return {"interval_s": float(f"{step:.3g}")}


def _analysis_title(session: Session, analysis: Analysis) -> str:
    if not analysis.page_path.exists():
        return text(analysis.title)
    page = session.library.page(analysis)
    return both(text(page.title), text(page.title_ja or page.title))


def _description(session: Session, analysis: Analysis) -> str:
    if not analysis.page_path.exists():
        return f"<p>{inline(analysis.text)}</p>"
    page = session.library.page(analysis)
    return both_blocks(prose(page.text), prose(page.text_ja or page.text))


def _result_table(result: Result, name: str) -> str:
    rows = result.rows(ROWS)
    if not rows:
        return f'<p class="empty">{both("No rows.", "該当する行はありません。")}</p>'
    total = result.row_count()
    words = both(f"{total:,} rows", f"{total:,} 行")
    if total > len(rows):
        words = both(f"the first {len(rows):,} of {total:,} rows", f"{total:,} 行のうち先頭 {len(rows):,} 行")
    body = table(f"t-{name}", result.columns, rows, result.analysis.title)
    tools = search_field(f"t-{name}") + copy_button(f"t-{name}") + sql_link(result.analysis, "SQL")
    return f"""<details class="more" open><summary>{both("Table", "表")}: {words}</summary>
<div class="tools">{tools}</div>
{body}</details>"""


def _undefined_tables(session: Session) -> str:
    """The first rows of tables of a recorder that is not known here: no analysis reads them."""
    names = [name for name in session.recording.tables if not session.library.has_table(name)]
    if not names:
        return ""
    head = both("Tables without a definition", "定義のない表")
    return (
        f'<section id="others"><h2>{head}</h2>{join(_undefined(session, name) for name in names)}</section>'
    )


def _undefined(session: Session, name: str) -> str:
    columns = [Column(c.name, c.sql_type, None, c.text) for c in session.views.table(name).columns]
    head = f"<h3><code>{text(name)}</code></h3>"
    try:
        rows = session.fetch(f'SELECT * FROM "{name}" LIMIT {ROWS}') if columns else []
    except NotComputed as error:
        return f'<div class="card">{head}{not_computed(error)}</div>'
    total = session.recording.rows(name)
    words = both(f"the first {len(rows):,} of {total:,} rows", f"{total:,} 行のうち先頭 {len(rows):,} 行")
    shown = table(f"t-{text(name)}", columns, rows, name)
    return f'<div class="card">{head}<p class="muted">{words}</p>{shown}</div>'


def _environment(session: Session) -> str:
    head = f'<section id="environment"><h2>{both("Environment", "環境")}</h2>'
    if "environment" not in session.recording.tables:
        return f'{head}<p class="empty">{both("Not recorded.", "記録されていません。")}</p></section>'
    try:
        rows = session.fetch("SELECT section, name, value, source FROM environment")
    except NotComputed as error:
        return f"{head}{not_computed(error)}</section>"
    table_ = session.library.table("environment")
    columns = [Column(column.name, "VARCHAR", None, column.text) for column in table_.columns]
    return f'{head}<div class="card">{table("t-environment", columns, rows, "Environment")}</div></section>'


def _issues(session: Session) -> str:
    head = f'<section id="issues"><h2>{both("Issues of the import", "取り込みで見つかった問題")}</h2>'
    if "import_issues" not in session.recording.tables:
        return f'{head}<p class="empty">{both("Not recorded.", "記録されていません。")}</p></section>'
    try:
        return f"{head}{_issue_table(session)}</section>"
    except NotComputed as error:
        return f"{head}{not_computed(error)}</section>"


def _issue_table(session: Session) -> str:
    """How many issues there are of each kind, and the first of them."""
    [(total,)] = session.fetch("SELECT count(*) FROM import_issues")
    if not total:
        words = both("None: every line was understood and matched.", "なし。すべての行を解釈できました。")
        return f'<p class="card">{words}</p>'
    kinds = session.fetch("SELECT issue, count(*) FROM import_issues GROUP BY issue ORDER BY 2 DESC, 1")
    listed = ", ".join(f"{text(kind)} {count:,}" for kind, count in kinds)
    names = ("source", "line", "issue", "understood", "detail", "excerpt")
    rows = session.fetch(f"SELECT {', '.join(names)} FROM import_issues LIMIT {ISSUES}")
    texts = {column.name: column for column in session.library.table("import_issues").columns}
    columns = [
        Column(name, "INTEGER" if name == "line" else "VARCHAR", None, texts[name].text) for name in names
    ]
    words = both(f"the first {len(rows):,} of {total:,}", f"{total:,} 件のうち先頭 {len(rows):,} 件")
    shown = table("t-issues", columns, rows, "Issues of the import")
    return f'<div class="card"><p>{listed}</p><p class="muted">{words}</p>{shown}</div>'


def not_computed(error: NotComputed) -> str:
    """What stands in place of an answer that the engine could not compute, as HTML."""
    return f'<p class="warn">{both(*map(text, error.sentence))}</p>'
