"""Words that are not to come back in what users and developers read: each stands here with what is said instead."""

from __future__ import annotations

import ast
import io
import re
import tokenize
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
# Comments that say nothing, or not in English, as a pattern, and what to do instead.
RIDDLES = {
    r"\A(Of|That was|Those that)\b": "name the subject first",
    r"\AIts \w+\.\Z": "say what it is the property of, or leave it out",
    r"\AThe same\.\Z": "say what it is the same as",
    # A search for a word replaced it by the name of a type.
    r"(?<!`)\b[A-Z][a-z]{2,}[A-Z]\w* (it|its|them|a|an)\b": "a verb, in place of the name of a type",
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


def comments_of_rust_or_c(text: str) -> Iterator[tuple[int, str]]:
    """The comments of a source file, each with the number of its first line; lines that follow one another are one."""
    first, lines = 0, []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if match := re.match(r"\s*//[/!]? ?(.*)", line):
            first = first if lines else number
            lines.append(match[1])
            continue
        if lines:
            yield first, "\n".join(lines)
            lines = []
        # A comment behind code; a string may hold two slashes, but no blank follows them.
        if (match := re.search(r"\S\s+// (.*)", line)) and '"' not in line:
            yield number, match[1]


def comments_of_python(text: str) -> Iterator[tuple[int, str]]:
    """The comments and docstrings of a module, each with the number of its first line."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.removeprefix("#").strip()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and (
            docstring := ast.get_docstring(node)
        ):
            yield node.body[0].lineno, docstring


def sources() -> Iterator[tuple[Path, Iterator[tuple[int, str]]]]:
    """The source files whose comments are checked, with their comments."""
    compiled = [*ROOT.glob("crates/*/**/*.rs"), *ROOT.glob("fuzz/**/*.rs")]
    compiled += [path for end in ("h", "c") for path in ROOT.glob(f"crates/bpf/src/**/*.{end}")]
    for path in compiled:
        if "target" not in path.parts:
            yield path, comments_of_rust_or_c(path.read_text("utf-8"))
    for path in [
        *ROOT.glob("python/sysdock/**/*.py"),
        *ROOT.glob("python/tests/**/*.py"),
        *ROOT.glob("tools/**/*"),
    ]:
        if path.is_file() and (
            path.suffix == ".py" or (not path.suffix and b"python" in path.read_bytes().partition(b"\n")[0])
        ):
            yield path, comments_of_python(path.read_text("utf-8"))


@pytest.mark.slow
def test_comments_say_it_in_the_words_of_the_field() -> None:
    wrong, kinds = [], set()
    for path, comments in sources():
        kinds.add(path.suffix)
        for number, comment in comments:
            said = re.sub(r"`[^`]*`", "", comment)
            found = found_in(said)
            found += [
                f"{match[0]!r}: {instead}"
                for pattern, instead in RIDDLES.items()
                for match in re.finditer(pattern, said)
            ]
            wrong += [f"{path.relative_to(ROOT)}:{number}: {each}" for each in found]
    assert kinds == {".rs", ".h", ".c", ".py", ""}
    assert wrong == []


def test_riddles_in_comments_are_found() -> None:
    rust = "/// Its name.\nname: u32,\nlet x = 1; // Of a file.\n//! One\n//! EncoderThread it.\n"
    assert list(comments_of_rust_or_c(rust)) == [
        (1, "Its name."),
        (3, "Of a file."),
        (4, "One\nEncoderThread it."),
    ]
    python = '"""Of a file."""\n\n# That was it.\nx = "# no comment"\n'
    assert sorted(comments_of_python(python)) == [(1, "Of a file."), (3, "That was it.")]
    for text in ("Its name.", "Of a file.", "One\nEncoderThread it.", "That was it.", "Those that end."):
        assert any(re.search(pattern, text) for pattern in RIDDLES), text
