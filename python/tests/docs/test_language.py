"""Words that are not to come back in what users read: each stands here with what is said instead."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from sysdock.library import Library

ROOT = Path(__file__).resolve().parents[3]
# What was written, as a pattern, and the field's own words for it.
GONE = {
    r"\w\((s|es|ies)\)(?!\w)": "a true plural: `{files:file}` in a rule, `counted` in Python",
    r"worth mentioning": "negligible",
    r"looked at\b": "checked",
    r"could not tell": "inconclusive",
    r"by its own wish": "voluntarily",
    r"in crumbs": "fragmented",
    r"\bcut up\b": "fragmented",
    r"\bin pieces\b": "fragmented",
    r"[Ss]ingular point": "outlier",
    r"Cache was measured": "page-cache speed",
    r"Stat of every entry": "one stat call per directory entry",
    r"\bfore(tell|told)": "predicted",
    r"(?<![-/`])(?<!-o )\bmend(s|ed|ing)?\b(?!\.)": "fix",
    r"\bits kin\b": "similar calls",
    r"\bbeside\b": "alongside, next to, besides",
    r"[Nn]obody (knows|can tell)": "unknown",
    r"\bto win\b": "could save",
    r"in vain\b": "without success",
    r"for want of": "for lack of",
    r"\bunder way\b": "in progress",
    r"one after the other": "one after another",
    r"\b(is|are) no finding\b": "is not reported",
    r"(how much|bytes) (it|they|that calls) moved": "transferred",
    r"where you may\b": "when permitted",
    r"装置": "デバイス",
    r"確かさ|確信度": "確度",
    r"特異点": "外れ値",
    r"メモリー|プロセッサー|レイテンシー": "メモリ、プロセッサ、レイテンシ",
    r"計算機": "マシン",
    r"空白の時間": "無活動区間",
}
PAGES = ("docs/explain", "docs/howto", "docs/casebook", "docs/tutorial", "knowhow")


def found_in(text: str) -> list[str]:
    """The words of a text that are not to come back, each with what is said instead."""
    return [
        f"{match[0]!r}, say: {instead}"
        for pattern, instead in GONE.items()
        for match in re.finditer(pattern, text)
    ]


def prose(page: Path) -> str:
    """A page without its blocks of code, its code in a line, and the names in its links."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`|\]\([^)]*\)", "", text)


def literals(module: Path) -> Iterator[str]:
    """The texts of a module, without its docstrings."""
    tree = ast.parse(module.read_text("utf-8"))
    documented = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node.value


def texts_of(value: object, key: str = "") -> Iterator[str]:
    """What is for reading in a TOML file: its values of `text`, `title`, `en`, `ja` and the like."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from texts_of(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of(inner, key)
    elif isinstance(value, str) and re.match(r"(text|title|en|ja|order|question|says|advice)", key):
        yield value


@pytest.mark.parametrize("folder", PAGES)
def test_pages_say_it_in_the_words_of_the_field(folder: str) -> None:
    pages = sorted((ROOT / folder).rglob("*.md"))
    assert pages
    assert {str(page.relative_to(ROOT)): found for page in pages if (found := found_in(prose(page)))} == {}


def test_analyses_and_rules_say_it_in_the_words_of_the_field(library: Library) -> None:
    wrong = {}
    for analysis in [*library.analyses(), *library.rules()]:
        said = [analysis.title, analysis.text, *analysis.says.texts.values()]
        said += [column.text for column in analysis.columns] + [param.text for param in analysis.params]
        said += [line.options.get(key, "") for line in analysis.charts for key in ("title", "title_ja")]
        if found := [each for text in said for each in found_in(text)]:
            wrong[analysis.id] = found
    assert wrong == {}


def test_tables_experiments_and_products_say_it_in_the_words_of_the_field() -> None:
    wrong = {}
    for path in sorted((ROOT / "knowhow").rglob("*.toml")):
        texts = texts_of(tomllib.loads(path.read_text("utf-8")))
        if found := [each for text in texts for each in found_in(text)]:
            wrong[path.name] = found
    assert wrong == {}


def test_messages_say_it_in_the_words_of_the_field() -> None:
    modules = sorted((ROOT / "python" / "sysdock").rglob("*.py"))
    assert modules
    wrong = {}
    for module in modules:
        # A text without a blank is a name, and SQL is no prose.
        said = [text for text in literals(module) if " " in text.strip() and "SELECT" not in text]
        if found := [each for text in said for each in found_in(text)]:
            wrong[str(module.relative_to(ROOT))] = found
    assert wrong == {}
