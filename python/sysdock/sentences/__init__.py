"""The one room that knows languages: facts, the sentence of each, and how values are written.

Everything else handles facts (`fact("load/too_short", took=3_100_000)`), and asks for their text where it is
shown: `say(words, lang)`. The sentences are in `knowhow/sentences`. To add a language is to add a table to
`languages.toml` and a key to the other files.
"""

from sysdock.sentences.catalogue import Catalogue, catalogue
from sysdock.sentences.fact import (
    Fact,
    Joined,
    Prose,
    Words,
    entry_of,
    fact,
    fact_from_json,
    facts_from_json,
    facts_of,
    json_of,
    prose,
    prose_of,
)
from sysdock.sentences.placeholders import PLACE, names_in, with_unit
from sysdock.sentences.speaking import (
    fill,
    in_all,
    in_words,
    is_source,
    is_text,
    languages,
    listed,
    named,
    say,
    sentences,
    translated,
    translated_keys,
)

__all__ = [
    "PLACE",
    "Catalogue",
    "Fact",
    "Joined",
    "Prose",
    "Words",
    "catalogue",
    "entry_of",
    "fact",
    "fact_from_json",
    "facts_from_json",
    "facts_of",
    "fill",
    "in_all",
    "in_words",
    "is_source",
    "is_text",
    "json_of",
    "languages",
    "listed",
    "named",
    "names_in",
    "prose",
    "prose_of",
    "say",
    "sentences",
    "translated",
    "translated_keys",
    "with_unit",
]
