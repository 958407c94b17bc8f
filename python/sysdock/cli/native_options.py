"""Options of verbs that the native program does: declared by it alone."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypedDict, TypeVar, cast

import click
from click.core import ParameterSource

from sysdock.errors import UserError

Function = TypeVar("Function", bound=Callable[..., Any])
# What `sysdock-native options` printed when it was built.
DECLARED = Path(__file__).parent / "assets" / "options.json"
# How the native program reports to this process, which no user asks for.
_BETWEEN_THE_HALVES = {"progress", "progress-fd"}
_TYPES: Mapping[str, Any] = {
    "integer": int,
    "path": click.Path(path_type=Path),
    "text": str,
}


class Declared(TypedDict, total=False):
    """An option as the native program declares it (crates/native/src/options.rs)."""

    name: str
    short: str
    help: str
    kind: str
    form: str
    choices: list[str]
    default: str
    alone: str
    required: bool
    repeated: bool


@functools.cache
def declared(verb: str) -> tuple[Declared, ...]:
    """The options of a verb of the native program, such as `disk scan`."""
    try:
        verbs = json.loads(DECLARED.read_text("utf-8"))
    except FileNotFoundError:
        raise UserError("is missing", "reinstall sysdock, or run `make setup`", str(DECLARED)) from None
    options = cast("list[Declared]", verbs[verb])
    return tuple(option for option in options if option["name"] not in _BETWEEN_THE_HALVES)


def native_options(
    verb: str,
    *,
    without: Collection[str] = (),
    defaults: Mapping[str, Callable[[], str]] | None = None,
    into: str = "given",
) -> Callable[[Function], Function]:
    """Gives a verb the options that the native program has for its verb of this name.

    The function gets those that the user gave, a dict for `option_words`, as its parameter `into`; the
    native program has the defaults. `without`: options that this half declares itself, or does not offer.
    `defaults`: defaults that depend on the user's configuration.
    """
    offered = [option for option in declared(verb) if option["name"] not in without]
    names = [_parameter(option["name"]) for option in offered]
    own_defaults = defaults or {}

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def with_words(*arguments: Any, **values: Any) -> Any:
            taken = {name: values.pop(name) for name in names}
            given = {name: value for name, value in taken.items() if name in own_defaults or _is_given(name)}
            return function(*arguments, **{into: given}, **values)

        decorated = cast(Function, with_words)
        verbs = getattr(function, "native_verbs", ())
        decorated.__dict__["native_verbs"] = (verb, *verbs)
        for option in reversed(offered):
            decorated = _click_option(option, own_defaults.get(option["name"]))(decorated)
        return decorated

    return decorate


def become(verb: str, given: Mapping[str, object]) -> NoReturn:
    """Goes on as the native program, and ends with its exit status."""
    from sysdock import cli
    from sysdock.recording.native import become_native, native_words

    status = become_native(native_words(verb, given), as_child=not cli.owns_process)
    click.get_current_context().exit(status)


def _parameter(name: str) -> str:
    return name.replace("-", "_")


def _is_given(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source not in (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)


def _click_option(option: Declared, own_default: Callable[[], str] | None) -> Callable[[Function], Function]:
    words = [f"-{option['short']}"] if "short" in option else []
    words += [f"--{option['name']}", _parameter(option["name"])]
    if option["kind"] == "flag":
        return click.option(*words, is_flag=True, help=option["help"])
    default = option.get("default")
    details: dict[str, Any] = {
        "type": click.Choice(option["choices"]) if "choices" in option else _TYPES[option["kind"]],
        "metavar": None if "choices" in option else option.get("form"),
        "multiple": option.get("repeated", False),
        "required": option.get("required", False),
        "help": option["help"],
    }
    if default is not None:
        details |= {"default": own_default or default, "show_default": default if own_default else True}
    if "alone" in option:
        details |= {"is_flag": False, "flag_value": option["alone"], "metavar": f"[{option['form']}]"}
    return click.option(*words, **details)
