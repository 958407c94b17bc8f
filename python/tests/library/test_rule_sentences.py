"""Sentences of rules: numbers with units, and words that agree with them."""

from __future__ import annotations

import pytest
from sysdock.library.rule_shape import parse_sentences


def said(text: str, **values: object) -> str:
    sentences, wrong = parse_sentences([(1, f"ok en  {text}")])
    assert wrong is None
    assert sentences.names() == set(values)
    return sentences.say("ok", None, "en", values, {"bytes": "B"})


@pytest.mark.parametrize(
    ("count", "sentence"),
    [
        (0, "Checked 0 written files."),
        (1, "Checked 1 written file."),
        (14, "Checked 14 written files."),
        (None, "Checked unknown written files."),
    ],
)
def test_a_noun_agrees_with_its_number(count: int | None, sentence: str) -> None:
    assert said("Checked {files:written file}.", files=count) == sentence


def test_an_irregular_plural_is_stated() -> None:
    text = "{n:read or write|reads and writes}"
    assert [said(text, n=number) for number in (1, 2)] == ["1 read or write", "2 reads and writes"]


def test_a_verb_agrees_with_a_number() -> None:
    text = "{n:entry} {n?is|are} far away."
    assert [said(text, n=number) for number in (1, 2)] == ["1 entry is far away.", "2 entries are far away."]


def test_other_values_have_their_unit() -> None:
    assert said("{bytes} in {calls:call}", bytes=2048, calls=1) == "2.00 KiB in 1 call"
