"""Preparations are functions that steps name (`do`); a step must give them their keyword-only arguments."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Function = Callable[..., None]


@dataclass(frozen=True)
class Preparation:
    """A function of a bench and of arguments; `tools` says from these which programs it needs.

    `filled`: arguments that are commands, with placeholders. `starts_server`: it leaves a program running.
    """

    name: str
    function: Function
    tools: Callable[..., tuple[str, ...]]
    filled: tuple[str, ...] = ()
    starts_server: bool = False

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments and their types."""
        hints = typing.get_type_hints(self.function)
        kinds = inspect.signature(self.function).parameters.values()
        return {kind.name: hints[kind.name] for kind in kinds if kind.kind is kind.KEYWORD_ONLY}

    @property
    def text(self) -> str:
        """The first line of what it says of itself."""
        return (self.function.__doc__ or "").strip().splitlines()[0]

    @property
    def defaults(self) -> dict[str, Any]:
        """Optional arguments with their default values."""
        kinds = inspect.signature(self.function).parameters.values()
        return {kind.name: kind.default for kind in kinds if kind.default is not kind.empty}

    def taken(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The items of `given` that are arguments."""
        return {name: given[name] for name in self.arguments if name in given}


PREPARATIONS: dict[str, Preparation] = {}


def preparation(
    tools: Callable[..., tuple[str, ...]] = lambda **_: (),
    filled: tuple[str, ...] = (),
    *,
    starts_server: bool = False,
) -> Callable[[Function], Function]:
    """Makes a function a preparation of its name."""

    def add(function: Function) -> Function:
        PREPARATIONS[function.__name__] = Preparation(
            function.__name__, function, tools, filled, starts_server
        )
        return function

    return add


def kind_in_words(kind: Any) -> str:
    """A description of the type of an argument."""
    if typing.get_origin(kind) is typing.Literal:
        return f"one of {', '.join(typing.get_args(kind))}"
    return {int: "a number from 1 on", str: "a text", dict[str, str]: "a table of texts"}.get(
        kind, "a list of texts"
    )


def misfit(kind: Any, value: Any) -> str | None:
    """A description of the expected type, if `value` has another one."""
    if typing.get_origin(kind) is typing.Literal:
        fits = value in typing.get_args(kind)
    elif kind is int:
        fits = isinstance(value, int) and not isinstance(value, bool) and value > 0
    elif kind is str:
        fits = isinstance(value, str) and value != ""
    elif kind == dict[str, str]:
        fits = isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    else:
        fits = isinstance(value, list) and value != [] and all(isinstance(item, str) for item in value)
    return None if fits else kind_in_words(kind)
