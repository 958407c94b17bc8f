"""`sysdock check`: whether analyses and rules are what their headers and pages say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sysdock.analysis.compare import blessed, difference, picked
from sysdock.analysis.errors import engine_errors
from sysdock.analysis.example_rows import add_rows, begin_without_log
from sysdock.analysis.portable import violations
from sysdock.analysis.products import product_problems
from sysdock.analysis.rule_check import (
    SENTENCES,
    certainty_problems,
    page_problems,
    require_reach,
    sentence_problems,
    with_sentences,
)
from sysdock.analysis.session import Engine, Session
from sysdock.errors import UserError
from sysdock.library import Analysis, Example, Experiment, Library, Page
from sysdock.library.dump_scripts import compile_script, parse_dump_script
from sysdock.library.environment import parse_environment
from sysdock.library.experiments import parse_experiment
from sysdock.library.header import TIMES, parse
from sysdock.library.load_plan import parse_load_plan
from sysdock.library.products import parse_product
from sysdock.recording import Recording
from sysdock.recording.mentions import mentions
from sysdock.recording.native import find_native, import_quietly
from sysdock.recording.writing import empty_capture, empty_manifest
from sysdock.scratch import scratch_folder

_FOLDERS = {
    "analyses": "analysis",
    "rules": "rule",
    "experiments": "experiment",
    "health": "plan",
    "products": "product",
    "environment": "environment",
    "dumps": "script",
}
_ENDINGS = {
    "analyses": (".sql", ".md"),
    "rules": (".sql", ".md"),
    "experiments": (".toml",),
    "health": (".toml",),
    "products": (".toml",),
    "environment": (".toml",),
    "dumps": (".py", ".md"),
}
_WRONG = "not an analysis, a rule, an experiment or a product, nor a plan of a load or a script"
_HINT = (
    "give an .sql or .md file below `analyses` or `rules`, a .py or .md file below `dumps`, "
    "or a .toml file below `experiments`, `health`, `products` or `environment`"
)
# Examples are short: a statement that takes this long, or this much memory, would not end.
_FOR_EXAMPLES = {"max_execution_time": "8000", "memory_limit": "768MB"}
# Keys of a `chart:` line that name columns.
_CHANNELS = ("x", "x2", "y", "y2", "color", "size")
Report = Callable[[str, bool], None]


@dataclass
class Summary:
    """Number of checks that passed, failed, and were skipped."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0


@dataclass
class _Checker:
    """Counts and reports."""

    report: Report
    bless: bool
    native: bool
    summary: Summary = field(default_factory=Summary)

    def passed(self, name: str) -> None:
        self.summary.passed += 1
        self.report(f"ok       {name}", False)

    def failed(self, name: str, why: Iterable[str]) -> None:
        self.summary.failed += 1
        self.report(f"FAILED   {name}", True)
        for line in why:
            self.report(f"         {line}", True)

    def skipped(self, name: str, why: str) -> None:
        self.summary.skipped += 1
        self.report(f"SKIPPED  {name}: {why}", True)

    def check(self, name: str, problems: Callable[[], list[str]]) -> None:
        """Runs one check; a UserError in it is a problem too."""
        try:
            found = problems()
        except UserError as error:
            found = str(error).splitlines()
        if found:
            self.failed(name, found)
        else:
            self.passed(name)


def check(
    paths: Iterable[Path],
    *,
    bless: bool = False,
    report: Report,
    library: Library | None = None,
    experiment_problems: Callable[[Library, Experiment], list[str]] | None = None,
) -> Summary:
    """Checks the files at `paths` (default: the whole library) and reports the result of each.

    `report` gets a line and whether it matters. With `bless` pages are changed to what the SQL really
    returns. `experiment_problems` says what is wrong with an experiment: its workloads are not known here,
    and without it experiments are left out.
    """
    try:
        find_native()
        native = True
    except UserError:
        native = False
    checker = _Checker(report, bless, native)
    targets = _targets(list(paths), library)
    if not targets:
        raise UserError("nothing to check there", _HINT)
    for found, sql_path, id_, kind in targets:
        if kind == "product":
            checker.check(f"product {id_}", partial(_product_problems, found, sql_path))
        elif kind == "environment":
            checker.check(f"environment {id_}", partial(_environment_problems, sql_path))
        elif kind == "plan":
            checker.check(f"plan {id_}", partial(_plan_problems, sql_path))
        elif kind == "script":
            _check_script(checker, found, sql_path)
        elif kind != "experiment":
            _check_file(checker, found, sql_path, id_, kind)
        elif experiment_problems:
            _check_experiment(checker, found, sql_path, id_, experiment_problems)
    return checker.summary


def _targets(paths: list[Path], library: Library | None) -> list[tuple[Library, Path, str, str]]:
    """(library, file, id, kind) of all below `paths`; the library is the folder that holds the file."""
    library = library or Library()
    libraries = {library.root.resolve(): library}
    files: dict[Path, tuple[Library, Path, str, str]] = {}
    for path in paths or [library.root]:
        endings = ("*.sql", "*.py", "*.md", "*.toml")
        found = [file for end in endings for file in sorted(path.rglob(end))] if path.is_dir() else [path]
        for file in found:
            parts = file.resolve().parts
            folder = next((part for part in reversed(parts[:-1]) if part in _FOLDERS), None)
            if folder is None or file.suffix not in _ENDINGS[folder]:
                if not path.is_dir():
                    raise UserError(_WRONG, _HINT, str(file))
                continue
            place = file.resolve().with_suffix(_ENDINGS[folder][0])
            cut = len(parts) - 1 - parts[::-1].index(folder)
            root = Path(*parts[:cut])
            owner = libraries.setdefault(root, Library(root))
            id_ = place.relative_to(root / folder).with_suffix("").as_posix()
            files[place] = (owner, place, id_, _FOLDERS[folder])
    return list(files.values())


def _check_file(checker: _Checker, library: Library, sql_path: Path, id_: str, kind: str) -> None:
    if not sql_path.exists():
        checker.failed(f"{kind} {id_}", [f"{sql_path.with_suffix('.md')}: a page without an .sql file"])
        return
    try:
        analysis = parse(sql_path, id_, kind)
    except UserError as error:
        checker.failed(f"{kind} {id_}: header", str(error).splitlines())
        return
    checker.check(f"{kind} {id_}: header and columns", lambda: _header_problems(library, analysis))
    _check_page(checker, library, analysis)


def _check_page(checker: _Checker, library: Library, analysis: Analysis) -> None:
    """Checks the page of an analysis, a rule or a script, and runs its examples."""
    kind, id_ = analysis.kind, analysis.id
    try:
        page = library.page(analysis)
    except UserError as error:
        checker.failed(f"{kind} {id_}: page", str(error).splitlines())
        return
    checker.check(f"{kind} {id_}: page", lambda: _page_problems(analysis, page))
    lines = page.path.read_text("utf-8").splitlines()
    # From the last to the first, so that line numbers stay right while tables are replaced.
    for number in reversed(range(len(page.examples))):
        lines = _check_example(checker, library, analysis, page, number, lines)
    text = "\n".join(lines) + "\n"
    if checker.bless and text != page.path.read_text("utf-8"):
        page.path.write_text(text, "utf-8")
        checker.report(f"blessed  {page.path}", True)


def _check_script(checker: _Checker, library: Library, path: Path) -> None:
    """A script about dumps: its header and its page. `sysdock dump test` runs it."""
    name = f"script {path.stem}"
    checker.check(f"{name}: header and code", lambda: _script_problems(library, path))
    if path.exists():
        _check_page(checker, library, parse_dump_script(path).analysis)


def _script_problems(library: Library, path: Path) -> list[str]:
    script = parse_dump_script(path)
    problems = [f"no rule `{name}`" for name in script.rules if name not in {r.id for r in library.rules()}]
    library.analysis(script.shows)
    compile_script(script)
    if script.table_name in {table.name for table in library.tables() if table != script.table}:
        problems.append(f"there is a table {script.table_name} already: choose another name")
    return problems


def _check_experiment(
    checker: _Checker,
    library: Library,
    path: Path,
    id_: str,
    problems: Callable[[Library, Experiment], list[str]],
) -> None:
    name = f"experiment {id_}: parameters and steps"
    checker.check(name, lambda: problems(library, parse_experiment(path, id_)))


def _plan_problems(path: Path) -> list[str]:
    # The generator checks values; a test gives it the plans that come with sysdock.
    parse_load_plan(path)
    return []


def _environment_problems(path: Path) -> list[str]:
    parse_environment(path)
    return []


def _product_problems(library: Library, path: Path) -> list[str]:
    return product_problems(library, parse_product(path))


def _otherwise_problems(library: Library, analysis: Analysis) -> list[str]:
    """Problems of the analysis that replaces this one."""
    if analysis.otherwise is None:
        return []
    try:
        other = library.analysis(analysis.otherwise)
    except UserError as error:
        return [f"else: {error.fact}"]
    columns = [(column.name, column.type) for column in analysis.columns]
    if columns != [(column.name, column.type) for column in other.columns]:
        return [f"else: `{other.id}` has other columns"]
    if set(analysis.needs) <= set(other.needs):
        return [f"else: `{other.id}` needs the same tables"]
    return []


def _at_least_problems(library: Library, analysis: Analysis) -> list[str]:
    """`at_least:` lines that no diagnosis would apply."""
    if analysis.at_least and analysis.kind != "rule":
        return ["at_least: only rules have it"]
    known = {*TIMES, *library.sources(analysis.needs)}
    return [
        f"at_least: `{line.quantity}` is neither a time nor a table that the rule needs"
        for line in analysis.at_least
        if line.quantity not in known
    ]


def _header_problems(library: Library, analysis: Analysis) -> list[str]:
    """Runs the SQL on a recording with empty tables and compares it with its header."""
    from sysdock.engine import duckdb

    problems = [
        f"there is no chart `{line.template}`"
        for line in analysis.charts
        if not _has_chart(library, line.template)
    ]
    names = {column.name for column in analysis.columns}
    for line in analysis.charts:
        stated = {name for channel in _CHANNELS for name in line.options.get(channel, "").split(",") if name}
        problems += [f"chart {line.template}: no column `{name}`" for name in sorted(stated - names)]
    problems += _otherwise_problems(library, analysis)
    problems += _at_least_problems(library, analysis)
    with Session(_empty_recording(library), library, checked=True) as session:
        session.require(analysis)
        with engine_errors(str(analysis.sql_path)):
            statements = duckdb.extract_statements(analysis.sql)
        used = {name for statement in statements for name in statement.named_parameters}
        stated = {param.name for param in analysis.params}
        problems += [f"${name} has no `param:` line" for name in sorted(used - stated)]
        problems += [f"parameter {name} is not used" for name in sorted(stated - used)]
        if problems:
            return problems
        problems += _needs_problems(session, analysis)
        if analysis.kind == "rule":
            problems += sentence_problems(analysis)
        rows = session.run(analysis).rows()
        if analysis.kind == "rule" and [row[1] for row in rows] != ["unknown"]:
            problems.append(
                "an empty recording must give one row, `unknown`: absence of data is never a pass"
            )
        if analysis.portable:
            found = violations(session.views.connection, analysis.sql)
            problems += [f"not portable: {what} (or say `portable: false`)" for what in found]
    return problems


def _has_chart(library: Library, name: str) -> bool:
    try:
        library.chart(name)
    except UserError:
        return False
    return True


def _needs_problems(session: Session, analysis: Analysis) -> list[str]:
    named = mentions(session.views.connection, analysis.sql)
    if named is None or named.everything:
        return []
    read = named.tables & {table.name for table in session.library.tables()}
    named_tables = {*analysis.needs, *analysis.uses}
    missing, idle = sorted(read - named_tables), sorted(named_tables - read)
    return [f"`needs:` lacks the table {name}" for name in missing] + [
        f"the header names the table {name}, which the SQL does not read" for name in idle
    ]


def _empty_recording(library: Library) -> Recording:
    """A recording of nothing, which is nowhere on disk."""
    tables = {table.name: {"rows": 0, "lost": 0, "parts": []} for table in library.tables() if table.stored}
    return Recording(Path("empty recording"), empty_manifest(tables, empty_capture("check", "rows", "calls")))


def _page_problems(analysis: Analysis, page: Page) -> list[str]:
    problems = []
    if analysis.kind == "rule":
        problems = page_problems(page) + certainty_problems(analysis, page)
    if not page.examples:
        problems.append("no example (a ```strace or ```rows block, and a table)")
    return problems


def _check_example(
    checker: _Checker, library: Library, analysis: Analysis, page: Page, number: int, lines: list[str]
) -> list[str]:
    """Runs one example; returns the lines of the page, changed where that was asked for."""
    example = page.examples[number]
    name = f"{analysis.kind} {analysis.id}: example at {page.path.name}:{example.line_no}"
    if not checker.native:
        checker.skipped(name, "sysdock-native is not there")
        return lines
    names = [column.name for column in analysis.columns]
    if analysis.kind == "rule":
        names += SENTENCES
    columns = example.expected_columns or names
    unknown = [column for column in columns if column not in names]
    if unknown:
        checker.failed(
            name, [f"the table has a column `{column}`, the analysis has not" for column in unknown]
        )
        return lines
    try:
        rows = picked(names, run_example(library, analysis, example), columns)
    except UserError as error:
        checker.failed(name, str(error).splitlines())
        return lines
    if checker.bless:
        checker.passed(name)
        changed = not example.table_lines or difference(example, rows)
        return blessed(lines, example, columns, rows) if changed else lines
    if not example.table_lines:
        checker.failed(name, ["no table follows it; `sysdock check --bless` writes one"])
    elif found := difference(example, rows):
        checker.failed(name, found)
    else:
        checker.passed(name)
    return lines


def run_example(
    library: Library, analysis: Analysis, example: Example, engine: Engine | None = None
) -> list[tuple[Any, ...]]:
    """Imports the log of an example, if it has one, adds its rows, and runs the analysis on it."""
    with scratch_folder() as folder:
        recording = Path(folder) / "rec"
        if example.log_text:
            log = Path(folder) / "example.log"
            log.write_text(example.log_text, "utf-8")
            import_quietly(log, recording)
        else:
            begin_without_log(recording, library, example.rows)
        for table, added in example.rows.items():
            add_rows(recording, library, table, added)
        opened = Recording.open(recording)
        with Session(opened, library, settings=_FOR_EXAMPLES, engine=engine) as session:
            result = session.run(analysis, example.params)
            rows = result.rows()
            if analysis.kind != "rule":
                return rows
            require_reach(result, rows)
            return with_sentences(result, rows)
