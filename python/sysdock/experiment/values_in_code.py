"""Values that would become part of a program: of a script of the shell, of Python or SQL.

A value (of a parameter or a factor, a path that somebody chose) is an argument, a variable of the
environment or the content of a file. It is never a part of a text that a program interprets, as it would have
to be quoted in another way for each of them, and a value may come from a stranger's recording.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from sysdock.library import Experiment
from sysdock.library.experiments import Words, placeholders
from sysdock.sentences import Fact, fact

# What a word may have around a value: parts of paths, options and addresses, nothing that separates words.
_PLAIN = re.compile(r"[\w./:=,+%@?&#~^*\[\]-]*")
_VALUE = re.compile(r"\{[a-z_][a-z0-9_]*\}")
# The next word is a program, for shells, interpreters and clients of databases.
_CODE_FOLLOWS = re.compile(r"-[a-zA-Z]*c|--command|--eval|--execute|--expression")
# It is one here, too; a shell ends at errors with -e.
_ALSO_AFTER_E = re.compile(r"-[a-zA-Z]*[eEr]")
_WITH_E = {"awk", "lua", "mysql", "node", "perl", "php", "ruby", "sed"}


def values_in_code(experiment: Experiment) -> Iterator[Fact]:
    """One fact for each word in which a value would be interpreted.

    The levels of a factor may be commands of the shell: they stand in the experiment itself.
    """
    levels = {f"{{{factor.name}}}" for factor in experiment.factors if not factor.setting}
    for command in _commands(experiment):
        for number, word in enumerate(command):
            is_code = _is_code(command[:number]) and word not in levels
            if placeholders(word) and (is_code or not _is_plain(word)):
                yield fact("experiment/value_in_code", word=_start_of(word))


def _commands(experiment: Experiment) -> Iterator[Words]:
    for step in experiment.prepare:
        yield step.run or ()
        command: Sequence[str] = step.arguments.get("command", ())
        yield tuple(map(str, command))
    for each in experiment.workloads:
        yield from (each.run, *each.before, *each.after, *each.check)


def _is_plain(word: str) -> bool:
    return _PLAIN.fullmatch(_VALUE.sub("", word)) is not None


def _is_code(before: Words) -> bool:
    """Whether the word after these is a program's text."""
    if not before:
        return False
    is_with_e = any(PurePath(word).name in _WITH_E for word in before)
    return bool(_CODE_FOLLOWS.fullmatch(before[-1]) or (is_with_e and _ALSO_AFTER_E.fullmatch(before[-1])))


def _start_of(word: str) -> str:
    first = word.strip().splitlines()[0]
    return first if len(first) <= 60 else f"{first[:59]}…"
