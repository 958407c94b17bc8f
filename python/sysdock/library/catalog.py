"""Finds know-how files by a folder scan."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sysdock.entries import parse_toml
from sysdock.errors import UserError, did_you_mean
from sysdock.library.header import Analysis, parse
from sysdock.library.page import Page, parse_page
from sysdock.library.tables import Table, parse_table
from sysdock.own_files import own_root
from sysdock.sentences import Prose, prose

# Modules that few verbs need are imported by those verbs.
if TYPE_CHECKING:
    from sysdock.library.dump_scripts import DumpScript
    from sysdock.library.environment import EnvironmentSection
    from sysdock.library.experiments import Experiment
    from sysdock.library.load_plan import LoadPlan
    from sysdock.library.products import Product


@dataclass(frozen=True)
class ChartTemplate:
    """A chart template: a Vega-Lite specification with strings to replace."""

    name: str
    path: Path

    def spec(self) -> dict[str, Any]:
        """The specification; a UserError where it is not JSON, or no specification."""
        import json

        try:
            spec = json.loads(self.path.read_text("utf-8"))
        except OSError as error:
            raise UserError(f"cannot be read: {error.strerror}", place=str(self.path)) from None
        except ValueError as error:
            raise UserError(f"not JSON: {error}", place=str(self.path)) from None
        except RecursionError:
            raise UserError("nested too deeply", place=str(self.path)) from None
        if not isinstance(spec, dict):
            hint = "a template is one object: a Vega-Lite specification"
            raise UserError("not an object of JSON", hint, str(self.path))
        return spec

    @property
    def title(self) -> str:
        """Its title, on one line."""
        text = self.spec().get("description", "")
        return " ".join(map(str, text if isinstance(text, list) else [text]))


def _toml(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(path.read_text("utf-8"))
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", place=str(path)) from None


_SHARED = ("tables", "charts", "products", "health", "environment")
# The result of parsing a file of the library.
_Parsed = TypeVar("_Parsed")


def default_root() -> Path:
    """$SYSDOCK_KNOWHOW, else the folder inside the package, else the one of the checkout."""
    stated = os.environ.get("SYSDOCK_KNOWHOW")
    return Path(stated) if stated else own_root()


class Library:
    """The know-how below one folder. Files are read when they are asked for."""

    def __init__(self, root: Path | str | None = None) -> None:
        self.root = Path(root) if root is not None else default_root()
        if not self.root.is_dir():
            hint = "set SYSDOCK_KNOWHOW to the folder that holds analyses, rules, charts and tables"
            raise UserError("no such know-how folder", hint, str(self.root))
        self._read: dict[Path, Any] = {}

    def analyses(self) -> list[Analysis]:
        """All analyses, sorted by id; what shows the rows of scripts about dumps is among them."""
        found = [self._parsed("analysis", id_, path) for id_, path in self._analysis_files.items()]
        of_scripts = [script.analysis for script in self._scripts()]
        return sorted(found + of_scripts, key=lambda analysis: analysis.id)

    def rules(self) -> list[Analysis]:
        """All rules, sorted by id."""
        return [self._parsed("rule", id_, path) for id_, path in self._rule_files.items()]

    def charts(self) -> list[ChartTemplate]:
        """All chart templates, sorted by name."""
        return [ChartTemplate(name, path) for name, path in self._scan("charts", ".json").items()]

    def experiments(self) -> list[Experiment]:
        """All experiments, sorted by id."""
        return [self._experiment(id_, path) for id_, path in self._scan("experiments", ".toml").items()]

    def environment(self) -> list[EnvironmentSection]:
        """All sections of an environment definition, sorted by name."""
        from sysdock.library.environment import parse_environment

        return [self._cached(path, parse_environment) for path in self._scan("environment", ".toml").values()]

    def products(self) -> list[Product]:
        """All products, sorted by name."""
        from sysdock.library.products import parse_product

        return [self._cached(path, parse_product) for path in self._product_files.values()]

    def load_plans(self) -> list[LoadPlan]:
        """All plans of loads, sorted by name."""
        from sysdock.library.load_plan import parse_load_plan

        return [self._cached(path, parse_load_plan) for path in self._scan("health", ".toml").values()]

    def dump_scripts(self) -> list[DumpScript]:
        """All questions about crash dumps, sorted by name: scripts, and analyses that are one."""
        from sysdock.library.dump_scripts import question_of

        files = {id_: path for id_, path in self._analysis_files.items() if id_.startswith("dump/")}
        analyses = [self._parsed("analysis", id_, path) for id_, path in files.items()]
        asked = [question_of(analysis) for analysis in analyses if analysis.question]
        return sorted(self._scripts() + asked, key=lambda script: script.name)

    def _scripts(self) -> list[DumpScript]:
        from sysdock.library.dump_scripts import parse_dump_script

        return [self._cached(path, parse_dump_script) for path in self._scan("dumps", ".py").values()]

    def dump_script(self, name: str) -> DumpScript:
        """The question of that name; UserError with near names where there is none."""
        known = {script.name: script for script in self.dump_scripts()}
        if name not in known:
            raise UserError(
                f"there is no question `{name}` about a dump",
                did_you_mean(name, known, f"one of {', '.join(known)}"),
            )
        return known[name]

    def tables(self) -> list[Table]:
        """All tables, sorted by name; those of scripts about dumps are among them."""
        return self.tables_for(self._tables_of_scripts)

    def tables_for(self, names: Iterable[str]) -> list[Table]:
        """All tables that files define, and those of dump scripts that are among `names`; sorted by name."""
        found = [self._cached(path, parse_table) for path in self._table_files.values()]
        # The scripts are read only where there is a name that no file has.
        others = [name for name in names if name not in self._table_files]
        found += [self._tables_of_scripts[name] for name in others if name in self._tables_of_scripts]
        return sorted(found, key=lambda table: table.name)

    def analysis(self, id_: str) -> Analysis:
        """The analysis of that id (an earlier one will do); UserError with near names where there is none."""
        return self._find("analysis", id_, self._analysis_files, self.analyses)

    def rule(self, id_: str) -> Analysis:
        """The rule of that id (an earlier one will do); UserError with near names where there is none."""
        return self._find("rule", id_, self._rule_files, self.rules)

    @cached_property
    def areas(self) -> dict[str, Prose]:
        """Names of areas of analyses, in the order of reports."""
        path = self.root / "analyses" / "areas.toml"
        if not path.exists():
            return {}
        try:
            return {area: prose(texts.pop("en"), **texts) for area, texts in _toml(path).items()}
        except (AttributeError, KeyError, TypeError) as error:
            hint = 'each line is: area = { en = "English name", ja = "its translation" }'
            raise UserError(f"not a list of areas: {error}", hint, str(path)) from None

    def chart(self, name: str) -> ChartTemplate:
        """The chart template of that name; UserError with near names where there is none."""
        files = self._scan("charts", ".json")
        if name not in files:
            raise _unknown("chart", name, files)
        return ChartTemplate(name, files[name])

    def experiment(self, id_: str) -> Experiment:
        """The experiment of that id; UserError with near names where there is none."""
        files = self._scan("experiments", ".toml")
        if id_ not in files:
            raise _unknown("experiment", id_, files)
        return self._experiment(id_, files[id_])

    def load_plan(self, name: str) -> LoadPlan:
        """The plan of a load of that name (`probe`); UserError with near names where there is none."""
        from sysdock.library.load_plan import parse_load_plan

        files = self._scan("health", ".toml")
        if name not in files:
            raise _unknown("plan", name, files)
        return self._cached(files[name], parse_load_plan)

    @property
    def is_own(self) -> bool:
        """Whether this is the know-how that comes with sysdock, not a pack of somebody else's."""
        return self.root.resolve() == self.own_root.resolve()

    @property
    def own_root(self) -> Path:
        """The folder of the know-how that comes with sysdock."""
        return own_root()

    def has_table(self, name: str) -> bool:
        """Whether a file defines a table of that name."""
        return name in self._table_files or name in self._tables_of_scripts

    def table(self, name: str) -> Table:
        """The table of that name; UserError with near names where there is none."""
        if name in self._table_files:
            return self._cached(self._table_files[name], parse_table)
        if name in self._tables_of_scripts:
            return self._tables_of_scripts[name]
        raise _unknown("table", name, self._table_files)

    def sources(self, names: Iterable[str]) -> list[str]:
        """The tables `names`, and those that the summaries among them are made of; each once."""
        found: dict[str, None] = {}
        waiting = list(names)
        while waiting:
            name = waiting.pop(0)
            if name not in found:
                found[name] = None
                waiting.extend(self.table(name).needs)
        return list(found)

    def page(self, analysis: Analysis) -> Page:
        """The page of an analysis or rule."""
        return self._cached(analysis.page_path, parse_page)

    @cached_property
    def _analysis_files(self) -> dict[str, Path]:
        return self._scan("analyses", ".sql")

    @cached_property
    def _tables_of_scripts(self) -> dict[str, Table]:
        """The tables that scripts about dumps fill, in addition to those that the native half does."""
        tables = [script.table for script in self._scripts()]
        return {table.name: table for table in tables if table.name not in self._table_files}

    @cached_property
    def _rule_files(self) -> dict[str, Path]:
        return self._scan("rules", ".sql")

    @cached_property
    def _product_files(self) -> dict[str, Path]:
        return self._scan("products", ".toml")

    @cached_property
    def _table_files(self) -> dict[str, Path]:
        return self._scan("tables", ".toml")

    def _scan(self, folder: str, ending: str) -> dict[str, Path]:
        base = self.root / folder
        if folder in _SHARED and not base.is_dir():
            # A pack of analyses need not repeat what all packs share.
            base = own_root() / folder
        found = {path.relative_to(base).with_suffix("").as_posix(): path for path in base.rglob(f"*{ending}")}
        return dict(sorted(found.items()))

    def _cached(self, path: Path, parser: Callable[[Path], _Parsed]) -> _Parsed:
        if path not in self._read:
            self._read[path] = parser(path)
        parsed: _Parsed = self._read[path]
        return parsed

    def _parsed(self, kind: str, id_: str, path: Path) -> Analysis:
        return self._cached(path, lambda file: parse(file, id_, kind))

    def _experiment(self, id_: str, path: Path) -> Experiment:
        from sysdock.library.experiments import parse_experiment

        return self._cached(path, lambda file: parse_experiment(file, id_))

    def _find(
        self, kind: str, id_: str, files: dict[str, Path], every: Callable[[], list[Analysis]]
    ) -> Analysis:
        if id_ in files:
            return self._parsed(kind, id_, files[id_])
        for analysis in every():
            if id_ == analysis.id or id_ in analysis.was:
                return analysis
        if kind == "analysis" and id_ in self._rule_files:
            raise UserError(f"`{id_}` is a rule, not an analysis", "see `sysdock diagnose REC`")
        raise _unknown(kind, id_, files)


def _unknown(kind: str, name: str, known: dict[str, Path]) -> UserError:
    plural = "analyses" if kind == "analysis" else f"{kind}s"
    return UserError(
        f"there is no {kind} `{name}`", did_you_mean(name, known, f"see `sysdock list {plural}`")
    )
