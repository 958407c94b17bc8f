"""Reads scripts about crash dumps, `knowhow/dumps/<name>.py`: a header of `#` lines, then a function `run`.

A question that tables of a dump answer needs no script: an analysis names itself one (`question:`).

The format is described in docs/reference/knowhow-files.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

from sysdock.errors import UserError
from sysdock.library.header import Analysis, Param, read_header
from sysdock.library.rule_shape import Column, Sentences
from sysdock.library.tables import SQL_TYPES, Table, TableColumn

KEYS = ("needs", "kernels", "cost", "param", "column", "rules")
# Time limits of a script [s], of wall-clock time and of CPU time.
COSTS = {"low": 10, "medium": 60, "high": 600}
_RUN = re.compile(r"^def run\(", re.MULTILINE)
_HINT = "docs/reference/knowhow-files.md shows what a script holds"


@dataclass(frozen=True)
class DumpScript:
    """A question about a crash dump.

    `reads`: parts of the dump that the native program reads for it. `shows`: the analysis that shows the
    answer (`dump/tasks`). `needs`: symbols and members
    (`task_struct.sched_info`) without which it has no answer. `columns`: of the rows that its function
    gives; none: an analysis is the answer, and it has no function.
    `kernels`: on which it was tried. `rules`: those that judge its answer.
    """

    name: str
    title: str
    text: str
    reads: tuple[str, ...]
    shows: str
    needs: tuple[str, ...]
    kernels: str | None
    cost: str
    params: tuple[Param, ...]
    columns: tuple[Column, ...]
    rules: tuple[str, ...]
    code: str
    path: Path

    @property
    def page_path(self) -> Path:
        """The page of the script."""
        return self.path.with_suffix(".md")

    @property
    def seconds(self) -> int:
        """Its time limit."""
        return COSTS[self.cost]

    @property
    def table_name(self) -> str:
        """The table of its rows."""
        return _table_name(self.name)

    @property
    def table(self) -> Table:
        """The table that its rows become."""
        types = {sql: word for word, sql in SQL_TYPES.items()}
        columns = tuple(
            TableColumn(column.name, types[column.type], column.unit, True, column.text)
            for column in self.columns
        )
        return Table(
            self.table_name, f"{self.title}.", "As the script gives them.", True, columns, about="dump"
        )

    @property
    def analysis(self) -> Analysis:
        """The question that shows its rows: `dump/list_find` of the script `list-find`."""
        names = ",\n".join(f'    "{column.name}"' for column in self.columns)
        return Analysis(
            id=self.shows,
            kind="analysis",
            title=self.title,
            text=self.text,
            needs=(self.table_name,),
            uses=(),
            otherwise=None,
            params=(),
            columns=self.columns,
            sums=(),
            match=(),
            charts=(),
            says=Sentences({}),
            evidence=None,
            at_least=(),
            portable=True,
            tags=(),
            was=(),
            sql=f"SELECT\n{names}\nFROM {self.table_name}",
            sql_path=self.path,
            page_path=self.page_path,
        )


def _table_name(script: str) -> str:
    return f"dump_{script.replace('-', '_')}"


def parse_dump_script(path: Path) -> DumpScript:
    """Reads one script; a UserError names file and line of a mistake. Nothing of it is run."""
    header, code, length = read_header(path, "#", KEYS)
    title = header.title("#")
    cost = header.single("cost") or "low"
    if cost not in COSTS:
        raise header.error(header.lines["cost"][0][0], f"unknown cost {cost}", f"one of {', '.join(COSTS)}")
    params = tuple(header.param(*line) for line in header.lines["param"])
    columns = tuple(header.column(*line) for line in header.lines["column"])
    header.unique("param", [param.name for param in params])
    header.unique("column", [column.name for column in columns])
    if not columns or not _RUN.search(code):
        raise header.error(length, "it needs `column:` lines and a function `run`", _HINT)
    return DumpScript(
        name=path.stem,
        title=title,
        text=header.text,
        reads=(),
        shows=_table_name(path.stem).replace("dump_", "dump/", 1),
        needs=header.words("needs"),
        kernels=header.single("kernels"),
        cost=cost,
        params=params,
        columns=columns,
        rules=header.words("rules"),
        code=code,
        path=path,
    )


def question_of(analysis: Analysis) -> DumpScript:
    """The question that an analysis answers by the tables that are read for it."""
    assert analysis.question
    return DumpScript(
        name=analysis.question[0],
        title=analysis.question[1],
        text=analysis.text,
        reads=analysis.reads,
        shows=analysis.id,
        needs=(),
        kernels=None,
        cost="low",
        params=(),
        columns=(),
        rules=(),
        code="",
        path=analysis.sql_path,
    )


def compile_script(script: DumpScript) -> CodeType:
    """Its compiled function; a UserError names the line of a mistake. Lines are numbered as in the file."""
    length = script.path.read_text("utf-8").count("\n", 0, _start(script))
    try:
        return compile("\n" * length + script.code, str(script.path), "exec")
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise UserError(f"not Python: {error.args[0]}", _HINT, f"{script.path}:{line}") from None
    except RecursionError:
        raise UserError("nested too deeply", place=str(script.path)) from None


def _start(script: DumpScript) -> int:
    return script.path.read_text("utf-8").index(script.code)
