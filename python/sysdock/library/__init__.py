"""Finds, reads and checks know-how: analyses, rules, charts, experiments, plans, products and tables."""

from typing import TYPE_CHECKING

from sysdock.late import late
from sysdock.library.catalog import ChartTemplate, Library, default_root
from sysdock.library.header import TAGS, Analysis, ChartLine, Param
from sysdock.library.page import Example, Page, parse_page
from sysdock.library.rule_shape import RULE_COLUMNS, Column
from sysdock.library.tables import DerivedColumn, JoinedColumn, Table, TableColumn, undefined_table

# Modules that few verbs need are imported by those verbs.
if TYPE_CHECKING:
    from sysdock.library.dump_scripts import DumpScript
    from sysdock.library.experiments import (
        Case,
        Claim,
        Experiment,
        Parameter,
        Plan,
        Reject,
        Scenario,
        Step,
        Workload,
    )
    from sysdock.library.load_plan import LoadPlan, parse_load_plan
    from sysdock.library.products import Product

_EXPERIMENTS = ["Case", "Claim", "Experiment", "Parameter", "Plan", "Reject", "Scenario", "Step", "Workload"]
__getattr__ = late(
    __name__,
    {
        "DumpScript": "sysdock.library.dump_scripts",
        "LoadPlan": "sysdock.library.load_plan",
        "parse_load_plan": "sysdock.library.load_plan",
        "Product": "sysdock.library.products",
        **dict.fromkeys(_EXPERIMENTS, "sysdock.library.experiments"),
    },
)


def page(analysis: Analysis) -> Page:
    """The page that belongs to an analysis or a rule."""
    return parse_page(analysis.page_path)


__all__ = [
    "RULE_COLUMNS",
    "TAGS",
    "Analysis",
    "Case",
    "ChartLine",
    "ChartTemplate",
    "Claim",
    "Column",
    "DerivedColumn",
    "DumpScript",
    "Example",
    "Experiment",
    "JoinedColumn",
    "Library",
    "LoadPlan",
    "Page",
    "Param",
    "Parameter",
    "Plan",
    "Product",
    "Reject",
    "Scenario",
    "Step",
    "Table",
    "TableColumn",
    "Workload",
    "default_root",
    "page",
    "parse_load_plan",
    "parse_page",
    "undefined_table",
]
