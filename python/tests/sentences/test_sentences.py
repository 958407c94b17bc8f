"""Every sentence in every language, with values that are made up: nothing is missing, and nothing is left over."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sysdock.sentences import (
    Fact,
    catalogue,
    fact,
    fact_from_json,
    facts_from_json,
    json_of,
    languages,
    listed,
    names_in,
    prose,
    say,
)
from sysdock.sentences.placeholders import PLACE
from sysdock.text import width

ROOT = Path(__file__).resolve().parents[3]
# They hold words by their English form, or parts of sentences, not facts.
DICTIONARIES = {"columns", "descriptions", "values"}
JAPANESE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
# Two English words in a row which are no name.
ENGLISH = re.compile(r"(?<![\w/`.-])[a-z]{2,} [a-z]{2,} [a-z]{2,}(?![\w/`.-])")
# A terminal line that no wrapping can break.
WIDEST_WORD = 100
MADE_UP: dict[str, Any] = {
    "fact": fact("units/lines"),
    "text": "NAME",
    "word": "NAME",
    "ns": 1_234_567,
    "s": 1.5,
    "percent": 0.25,
}


def codes() -> list[str]:
    """Every code that has a sentence."""
    subjects = sorted(set(catalogue().subjects()) - DICTIONARIES - {"languages"})
    return [f"{subject}/{name}" for subject in subjects for name in catalogue().subject(subject)]


def values_of(code: str, count: int) -> dict[str, Any]:
    """A value for each that the sentence has, of its unit."""
    entry = catalogue().entry(code)
    assert entry
    return {name: MADE_UP.get(unit, count) for name, unit in entry.units.items()}


def test_every_entry_has_all_languages_and_a_unit_for_each_place() -> None:
    wrong = {}
    for code in codes():
        entry = catalogue().entry(code)
        assert entry, code
        placed = [names_in(text) for text in entry.texts.values()]
        if set(entry.texts) != set(languages()) or set().union(*placed) != set(entry.units):
            wrong[code] = entry
    assert not wrong, wrong


@pytest.mark.parametrize("count", [0, 1, 2, 1_234_567])
def test_every_sentence_can_be_said_in_every_language(count: int) -> None:
    wrong = []
    for code in codes():
        made = Fact(code, values_of(code, count))
        for lang in languages():
            said = say(made, lang)
            left = PLACE.search(re.sub("`[^`]*`", "", said)) or (code in said)
            too_wide = [word for word in said.split() if lang == "en" and width(word) > WIDEST_WORD]
            if not said.strip() or (left and "\n" not in said) or too_wide:
                wrong.append((code, lang, said))
    assert not wrong, "\n".join(map(str, wrong))


def test_no_sentence_is_left_in_english() -> None:
    """A sentence for a script is looked up by it, a name in code is none, and lists of options stay as they are."""
    wrong = []
    for code in codes():
        said = re.sub(r"`[^`]*`|--\S+|NAME|\n    .*", " ", say(Fact(code, values_of(code, 2)), "ja"))
        if ENGLISH.search(said):
            wrong.append((code, said))
    assert not wrong, "\n".join(map(str, wrong))


def facts_in(module: Path) -> Iterator[tuple[str, set[str] | None]]:
    """The facts that a module makes: their codes, and the names of the values unless they are passed on."""
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "fact" and node.args:
            code = node.args[0]
            if isinstance(code, ast.Constant) and isinstance(code.value, str):
                names = [keyword.arg for keyword in node.keywords]
                yield code.value, None if None in names else {name for name in names if name}


def test_every_fact_of_the_code_has_its_sentence_and_all_values() -> None:
    modules = sorted((ROOT / "python" / "sysdock").rglob("*.py"))
    wrong, seen = [], 0
    for module in modules:
        for code, names in facts_in(module):
            seen += 1
            entry = catalogue().entry(code)
            # What a check-up states, its part holds the values of.
            is_stated = names is None or (module.parent.name == "checkup" and not names)
            if entry is None or not (is_stated or names == set(entry.units)):
                wrong.append((module.name, code, names, entry and set(entry.units)))
    assert seen > 300
    assert not wrong, "\n".join(map(str, wrong))


def test_codes_that_are_put_together_have_sentences() -> None:
    """At least one of `chart/kind_{kind}` exists; tests of what is shown find those that are missing."""
    beginnings = {
        found
        for module in (ROOT / "python" / "sysdock").rglob("*.py")
        for found in re.findall(r'fact\(f"([a-z_]+/[a-z_]+)\{', module.read_text("utf-8"))
    }
    assert len(beginnings) > 5
    assert [
        found for found in sorted(beginnings) if not any(code.startswith(found) for code in codes())
    ] == []


def test_every_sentence_is_said_somewhere() -> None:
    """Constructors of the facts that recorders state are generated from the catalogue, and rustc checks their use."""
    paths = [*(ROOT / "python/sysdock").rglob("*.py"), *(ROOT / "web").glob("*.js")]
    paths += [*(ROOT / "knowhow").rglob("*.sql"), *(ROOT / "knowhow/environment").glob("*.toml")]
    paths += (ROOT / "crates").rglob("*.rs")
    text = "\n".join(path.read_text("utf-8") for path in paths)
    words = set(re.findall(r"[a-z][a-z0-9_]*", text))
    # The rest of a code that is put together: `fact(f"screen/status_{state}")`.
    beginnings = set(re.findall(r'f"[a-z_]+/([a-z_]*)\{', text)) - {""}
    whole = set(re.findall(r'f"([a-z_]+)/\{|named\("([a-z_]+)"', text))
    whole = {subject for pair in whole for subject in pair}
    unsaid = [
        code
        for code in codes()
        if (name := code.partition("/")[2]) not in words
        and code.partition("/")[0] not in whole
        and not name.startswith(tuple(beginnings))
    ]
    assert not unsaid, unsaid


# Where a script or a rule of writing is meant, not a language of ours; examples of pages that users write.
CODE_WITH_JAPANESE = {
    "text.py": "which signs a line does not begin or end with",
    "library/page.py": "a line break in Japanese is no blank",
    "page/markup.py": "a line break in Japanese is no blank",
}


def test_code_has_no_text_of_another_language() -> None:
    package = ROOT / "python" / "sysdock"
    code = [*package.rglob("*.py"), *(ROOT / "web").iterdir()]
    code += (ROOT / "crates").glob("*/src/**/*.rs")
    known = {package / name for name in CODE_WITH_JAPANESE}
    assert [path for path in known if not path.is_file()] == []
    found = {
        str(path.relative_to(ROOT))
        for path in code
        if path not in known
        and "assets" not in path.parts
        and JAPANESE.search(path.read_text("utf-8").partition("mod tests {")[0])
    }
    assert {name for name in found if not name.endswith("tests.rs")} == set()


def test_facts_come_back_from_json() -> None:
    why = fact("disk/instead_of", method="fiemap", why=fact("units/lines"))
    text = json_of([fact("clock/runs_back", times=3, step=7_000_000_000), why])
    assert text
    assert say(facts_from_json(text), "en").startswith("times run back 3 times, by up to 7.00 s")
    assert json_of([]) is json_of(None) is None
    one = fact("load/too_short", took=3_100_000)
    assert fact_from_json(json_of(one)) == one


def test_what_has_no_sentence_is_shown_with_its_code_and_values() -> None:
    assert say(Fact("newer/recorder", {"size": 3}), "ja") == "newer/recorder (size=3)"
    # A value is missing, or of another type.
    assert say(Fact("clock/runs_back", {"times": 3}), "en") == "clock/runs_back (times=3)"
    assert say(Fact("clock/runs_back", {"times": [], "step": "x"}), "en")
    assert say(Fact("../../etc/passwd"), "en") == "../../etc/passwd"


@pytest.mark.parametrize(
    "text", ["", "plain", "[1, 2]", '[{"code": 3}]', "[" * 100_000, '[{"code": "units/lines"', "{}", "[[]]"]
)
def test_hostile_json_is_text(text: str) -> None:
    assert isinstance(say(facts_from_json(text), "ja"), str)


def test_lists_and_prose_are_in_the_language_that_is_asked_for() -> None:
    words = prose("of it", ja="その")
    assert say(listed([words, "a"]), "en") == "of it, a"
    assert say(listed([words, "a"]), "ja") == "その、a"
    assert say(prose("only English"), "ja") == "only English"
