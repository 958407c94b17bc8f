"""Which product a finding is about, and what helps it in particular."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from sysdock.analysis.finding import Finding
from sysdock.library import Library, Product


def with_products(library: Library, findings: Sequence[Finding]) -> list[Finding]:
    """The findings, each with at most one product that has advice for its rule.

    A program says more than a file, which others may read as well: a copy of a database is no database. But
    a language says less than both: a program in Python may write a journal of SQLite.
    """
    return [_with_product(library, each) if each.status == "finding" else each for each in findings]


def _with_product(library: Library, finding: Finding) -> Finding:
    file = finding.file or finding.subject
    for is_language in (False, True):
        products = [each for each in library.products() if each.is_language == is_language]
        by_program = [each for each in products if each.is_run_by(finding.programs)]
        for product in [*by_program, *(each for each in products if each.has(file))]:
            if advice := product.advises(finding.rule, finding.variant):
                return dataclasses.replace(finding, product=product.name, product_advice=advice)
    return finding


def product_problems(library: Library, product: Product) -> list[str]:
    """Problems of a product: rules that do not exist, and variants that their findings do not have."""
    rules = {rule.id: rule for rule in library.rules()}
    problems = []
    for name in product.advice:
        id_, _, variant = name.partition(".")
        if id_ not in rules:
            problems.append(f"there is no rule `{id_}`")
        elif variant and variant not in rules[id_].says.variants("finding"):
            problems.append(f"no finding of {id_} has the variant `{variant}`")
    return problems
