"""Options of verbs of the native program: declared by it, offered by `sysdock`, and handed on."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from sysdock.cli import VERBS, sysdock
from sysdock.cli.native_options import DECLARED, declared, native_options
from sysdock.recording.native import option_words

NATIVE_VERBS = json.loads(DECLARED.read_text("utf-8"))
_ITEMS = "transfer", "volume", "metadata", "log", "random_read", "random_mix", "mmap", "depth", "control"
# Options that verbs of `sysdock` declare themselves, or that it does not offer to users.
LEFT_OUT: dict[str, set[str]] = {
    # Without it, the folder is named after the time.
    "record": {"output"},
    "run": {"output", "pid", "cgroup", "all", "for"},
    "flight dump": {"output"},
    "agent print": {"format"},
    "disk scan": {"into"},
    "disk map": {"output", "pieces", "most", "least-size", "from", "length"},
    "disk series": {"output", "pieces", "most", "least-size", "from", "length", "size", "find"},
    "dump run": {"part"},
    "dump report": {"part"},
    "itrace user": {"qemu", "plugin", "version-of-qemu"},
    **{f"bench {item}": {"output", "plan", "item", "within", "rows", "patience"} for item in _ITEMS},
}
# Verbs that only `sysdock` itself starts, or that have no option for users.
WITHOUT_VERB = {"salvage", "agent stop", "dump info", "http-load", "measure", "flight receive", "options"}


def verbs(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """All verbs below a command that do something."""
    context = click.Context(command)
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found
        yield from verbs(found, f"{path} {name}".strip())


BY_NATIVE = {
    path: command
    for path, command in verbs(sysdock)
    if command.callback and hasattr(command.callback, "native_verbs")
}


def test_the_declarations_are_those_of_the_program(native: Path) -> None:
    done = subprocess.run([native, "options"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == NATIVE_VERBS, "make setup"


def test_there_are_verbs_with_such_options() -> None:
    assert LEFT_OUT.keys() <= BY_NATIVE.keys()
    assert {path.split()[0] for path in BY_NATIVE} <= VERBS.keys()
    offered = {verb for command in BY_NATIVE.values() for verb in command.callback.native_verbs}
    assert offered | WITHOUT_VERB == set(NATIVE_VERBS)


@pytest.mark.parametrize("path", BY_NATIVE)
def test_a_verb_offers_every_option_of_the_program(path: str) -> None:
    command = BY_NATIVE[path]
    offered = {option.opts[-1]: option for option in command.params if isinstance(option, click.Option)}
    for option in chain.from_iterable(map(declared, command.callback.native_verbs)):
        if option["name"] in LEFT_OUT.get(path, ()):
            continue
        own = offered[f"--{option['name']}"]
        assert own.help == option["help"]
        assert own.opts[:-1] == ([f"-{option['short']}"] if "short" in option else [])
        assert own.is_flag == (option["kind"] == "flag")
        assert own.required == option.get("required", False)
        assert own.multiple == option.get("repeated", False)
        if isinstance(own.type, click.Choice):
            assert list(own.type.choices) == option["choices"]
        if "default" in option:
            shown = own.show_default if callable(own.default) else str(own.default)
            assert shown == option["default"]


@pytest.mark.parametrize("verb", NATIVE_VERBS)
def test_every_option_that_is_given_is_handed_on_and_no_other(verb: str) -> None:
    @click.command()
    @native_options(verb)
    def command(given: dict[str, Any]) -> None:
        print(json.dumps(option_words(given)))

    required = [f"--{option['name']}=1" for option in declared(verb) if option.get("required")]
    alone = CliRunner().invoke(command, required)
    assert json.loads(alone.output) == required
    for option in declared(verb):
        values = option.get("choices", ["1"])[:1] * (2 if option.get("repeated") else 1)
        words = [f"--{option['name']}{'' if option['kind'] == 'flag' else f'={value}'}" for value in values]
        done = CliRunner().invoke(command, [*required, *words])
        assert set(json.loads(done.output)) == {*required, *words}, option
        assert [word for word in json.loads(done.output) if word in words] == words


def test_a_value_that_is_the_default_is_handed_on_if_it_is_given() -> None:
    """The program refuses some options without others, whatever their values are."""

    @click.command()
    @native_options("top")
    def command(given: dict[str, Any]) -> None:
        print(json.dumps(option_words(given)))

    assert json.loads(CliRunner().invoke(command, ["--format", "text"]).output) == ["--format=text"]


def test_an_option_without_its_value_has_the_first_of_its_forms() -> None:
    @click.command()
    @native_options("record", without={"output"}, defaults={"with": lambda: "strace"})
    def command(given: dict[str, Any]) -> None:
        print(json.dumps(option_words(given)))

    words = json.loads(CliRunner().invoke(command, ["--stacks", "--no-loss"]).output)
    assert words == ["--with=strace", "--stacks=all", "--no-loss"]
