"""The one room that knows languages: facts, the sentence of each in `knowhow/sentences`, and how values are written.

Everything else handles facts (`fact("load/too_short", took=3_100_000)`) and asks for their text where it is shown
(`say(words, lang)`). To add a language is to add a table to `languages.toml` and a key to the other files.
"""

from sysdock.sentences.catalogue import Catalogue, catalogue
from sysdock.sentences.fact import Fact, Joined, Prose, Words, fact, facts_from_json, json_of, prose
from sysdock.sentences.filling import PLACE, names_in, with_unit
from sysdock.sentences.speaking import (
    fill,
    in_all,
    in_words,
    is_source,
    is_text,
    languages,
    listed,
    say,
    sentences,
    translated,
)

__all__ = [
    "PLACE",
    "Catalogue",
    "Fact",
    "Joined",
    "Prose",
    "Words",
    "catalogue",
    "fact",
    "facts_from_json",
    "fill",
    "in_all",
    "in_words",
    "is_source",
    "is_text",
    "json_of",
    "languages",
    "listed",
    "names_in",
    "prose",
    "say",
    "sentences",
    "translated",
    "with_unit",
]
