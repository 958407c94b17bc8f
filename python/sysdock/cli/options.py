"""Arguments and options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sysdock.errors import UserError
from sysdock.sentences import languages

if TYPE_CHECKING:
    from sysdock.analysis import Session
    from sysdock.analysis.session import Engine
    from sysdock.recording import Filters, Recording

DUCKDB = "duckdb"
Function = TypeVar("Function", bound=Callable[..., Any])

recording_argument = click.argument(
    "recording", metavar="REC", type=click.Path(path_type=Path, readable=False)
)

new_recording_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="REC",
    required=True,
    help="New folder for the recording.",
)

format_option = click.option(
    "--format",
    "format_",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    help="table (default): aligned, rounded for reading. csv, json: exact values.",
)


raw_option = click.option(
    "--raw",
    is_flag=True,
    help="Names in CSV as they were recorded, also those that a terminal or a spreadsheet would act on.",
)


def default_language() -> str:
    """The language of the environment or the user's file, otherwise that of the locale."""
    from sysdock.config import language

    return language()


def default_recorder() -> str:
    """The recorder of the environment or the user's file, otherwise `auto`."""
    from sysdock.config import recorder

    return recorder()


def color_option(function: Function) -> Function:
    """Whether the output has colours; `--color` may also be given before the verb."""
    option = click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        expose_value=False,
        callback=_choose_color,
        help="Colours: auto (default) on terminals, unless NO_COLOR is set.",
    )
    return option(function)


def _choose_color(_ctx: click.Context, _param: click.Parameter, when: str | None) -> None:
    """The callback of --color."""
    if when:
        from sysdock.screen.color import choose

        choose(when)


as_root_option = click.option(
    "--as-root", is_flag=True, help="Under sudo: run CMD as root, not as the user who called sudo."
)
lang_option = click.option(
    "--lang",
    type=click.Choice(languages()),
    default=default_language,
    show_default="from the locale",
    help="Language of findings and reports.",
)


class _RenamedOption(click.Option):
    """An option that also has its earlier name, which the help does not show."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        return record and (record[0].replace(", --to", ""), record[1])


_UNTIL = "End of the time window: as --from; exclusive."
_FILTER_UNTIL = click.option("--until", "--to", "to", cls=_RenamedOption, metavar="T", help=_UNTIL)
_FILTERS = (
    click.option("--file", metavar="A,B", help="Only these files: path, name, or pattern with * ? [."),
    click.option("--exclude-dir", metavar="A,B", help="Leave out everything below these folders."),
    click.option("--exclude-suffix", metavar=".A,.B", help="Leave out files with these suffixes."),
    click.option("--call", metavar="A,B", help="Only these system calls (names or patterns)."),
    click.option("--process", metavar="A,B", help="Only these processes: pid or program name."),
    click.option(
        "--from",
        "from_",
        metavar="T",
        help="Start of the time window: seconds since the start of the recording, or an ISO time stamp.",
    ),
    _FILTER_UNTIL,
    click.option("--only-ok", is_flag=True, help="Only calls that returned without an error."),
    click.option("--only-errors", is_flag=True, help="Only calls that returned an error."),
)
FILTER_NAMES = (
    "file",
    "exclude_dir",
    "exclude_suffix",
    "call",
    "process",
    "from_",
    "to",
    "only_ok",
    "only_errors",
)


def filter_options(function: Function) -> Function:
    """Adds the filters; `take_filters` makes an object of them."""
    for option in reversed(_FILTERS):
        function = option(function)
    return function


def export_filter_options(function: Function) -> Function:
    """The filters for a verb in which --to names a format, and nothing else."""
    until = click.option("--until", "to", metavar="T", help=_UNTIL)
    for option in reversed([until if filter_ is _FILTER_UNTIL else filter_ for filter_ in _FILTERS]):
        function = option(function)
    return function


def take_filters(options: dict[str, Any]) -> Filters:
    """The filters among the options of a verb."""
    from sysdock.recording import Filters

    return Filters(**{name: options[name] for name in FILTER_NAMES})


def parse_params(pairs: tuple[str, ...]) -> dict[str, str]:
    """`-p name=value` options as a dict."""
    params = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UserError(f"`{pair}` is not NAME=VALUE", "write `-p interval_s=0.5`", "-p")
        params[name] = value
    return params


def engine_option(function: Function) -> Function:
    """The engine: DuckDB in this process, or Spark."""
    option = click.option(
        "--engine",
        default=DUCKDB,
        show_default=True,
        metavar="duckdb|spark|spark://HOST:PORT",
        envvar="SYSDOCK_ENGINE",
        help="Query engine; also set by SYSDOCK_ENGINE. yarn and k8s://URL are further masters of Spark.",
    )
    return option(function)


def engine_of(name: str) -> Engine | None:
    """The engine of `--engine`; None: DuckDB."""
    if name == DUCKDB:
        return None
    from sysdock.spark.cluster import EXTRA_HINT

    try:
        from sysdock.spark.engine import SparkEngine
    except ImportError as error:
        raise UserError(f"Spark is not installed: {error}", EXTRA_HINT, f"--engine {name}") from None
    return SparkEngine(name)


def open_session(recording: Path, options: dict[str, Any] | None = None, engine: str = DUCKDB) -> Session:
    """A session on the recording, with the filters among `options`."""
    from sysdock.library import Library

    # Java does not start within the limits of a process; what they would keep off, Spark refuses.
    [opened] = open_recordings(recording, limited=engine == DUCKDB)
    from sysdock.analysis import Session
    from sysdock.config import config

    filters, library = take_filters(options) if options is not None else None, Library()
    return Session(opened, library, filters, engine=engine_of(engine), limits=config().limits(library))


def open_recordings(*folders: Path, limited: bool = True) -> list[Recording]:
    """Opens recordings; the verb continues in a child that can be ended and limited, unless not `limited`.

    Under sudo, this process goes on as the user who called it, for good.
    """
    from sysdock.cli.limited import go_on_in_child
    from sysdock.recording import Recording
    from sysdock.recording.caller import become_caller

    for folder in folders:
        become_caller(folder)
    opened = [Recording.open(folder) for folder in folders]
    for recording in opened:
        _say_what_waits(recording)
    if limited:
        go_on_in_child(opened)
    return opened


def _say_what_waits(recording: Recording) -> None:
    """Tells the user that the events of a recorder that was killed are not in the tables yet."""
    if recording.manifest["complete"] or not (recording.folder / "spool").is_file():
        return
    from sysdock.cli.output import remark
    from sysdock.recording.native import events_that_wait

    if events := events_that_wait(recording.folder):
        fact = f"{events:,} events are not in the tables, as the recorder was killed"
        remark(f"{recording.folder}: {fact}; next: sysdock salvage {recording.folder}")


def complete_analysis(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Ids of analyses for the shell's completion."""
    from sysdock.library import Library

    return [analysis.id for analysis in Library().analyses() if analysis.id.startswith(incomplete)]


def into_option(function: Function) -> Function:
    """The know-how folder that gets new files."""
    option = click.option(
        "--into",
        type=click.Path(path_type=Path),
        default=Path("knowhow"),
        show_default=True,
        metavar="DIR",
        help="Know-how folder.",
    )
    return option(function)


def share_option(function: Function) -> Function:
    """The option that lets others read the recording."""
    option = click.option(
        "--share",
        is_flag=True,
        help="Let other users read the recording. It contains paths and program arguments.",
    )
    return option(function)


def report_option(function: Function) -> Function:
    """Whether the answer comes with a report."""
    option = click.option(
        "--report/--no-report",
        "with_report",
        default=False,
        help="Also write the report, as `sysdock report REC` does. Default: --no-report.",
    )
    return option(function)


def complete_rule(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Ids of rules for the shell's completion."""
    from sysdock.library import Library

    return [rule.id for rule in Library().rules() if rule.id.startswith(incomplete)]
