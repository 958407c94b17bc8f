"""The command line. Each verb is a module of its own, loaded when it is called."""

from __future__ import annotations

import io
import os
import signal
import sys
from importlib import import_module
from typing import NoReturn

import click

from sysdock.errors import UserError, did_you_mean, interruptions

# Verb -> module and the line in `sysdock --help`, in the order in which a user meets them.
VERBS = {
    "run": ("run", "Record a command and print its bottlenecks."),
    "import": ("import_log", "Import existing logs of strace, truss, fio, IOR, mdtest or elbencho."),
    "record": ("record", "Record running processes, or a command."),
    "top": ("top", "Show live activity by process, file, device or lock."),
    "flight": ("flight", "Record the last minute in memory; write it when a trigger fires."),
    "merge": ("merge", "Merge recordings of the ranks of a parallel job."),
    "salvage": ("salvage", "Repair a recording whose recorder was killed."),
    "info": ("info", "Show what was recorded, when, where, and how completely."),
    "diagnose": ("diagnose", "Show findings, with advice."),
    "show": ("show", "Run one analysis: a table or a chart."),
    "report": ("report", "Write a report as one HTML file."),
    "compare": ("compare", "Compare two recordings, or commands."),
    "checkup": ("checkup", "Check in four steps whether I/O slows a job down."),
    "threshold": ("threshold", "Compute this site's threshold for a check-up from accounting data."),
    "query": ("query", "Query a recording in SQL."),
    "disk": ("disk", "Show where files are stored on a disk, and what fragmentation costs."),
    "health": ("health", "Measure a file system under load, and report what is not normal."),
    "bench": ("bench", "Measure one aspect of a file system."),
    "probe": ("probe", "Detect when a file system is slower than usual."),
    "agent": ("agent", "Account for the file operations of each job on a node."),
    "collect": ("collect", "Receive what agents send, and write it into a lake."),
    "jobs": ("jobs", "Show which jobs load the file systems, now and in the past."),
    "lake": ("lake", "Merge and check what agents wrote."),
    "dump": ("dump", "Analyze kernel crash dumps."),
    "itrace": ("itrace", "Trace every instruction of a program: functions, calls, memory."),
    "experiment": ("experiment", "Measure a change in a repeatable experiment."),
    "export": ("export", "Write the tables as Parquet or CSV files."),
    "list": ("list_all", "List analyses, rules, charts, experiments, plans, products, tables."),
    "check": ("check", "Run the examples in the pages of analyses and rules."),
    "new": ("new", "Create an analysis or a rule of your own."),
    "help": ("help_verb", "Show the help of a verb."),
}

_EPILOG = """Example:

\b
  sysdock run -o rec -- tar cf /dev/null /usr/share/doc
  sysdock show rec io/files
"""

# Whether this process runs one verb and nothing else, so that it may fork and limit itself.
owns_process = False


class _OutputClosed(Exception):
    """Whoever read standard output went away."""


class _Verbs(click.Group):
    """Loads the module of a verb when the verb is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"sysdock.cli.{VERBS[cmd_name][0]}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            raise UserError(f"unknown verb `{args[0]}`", did_you_mean(args[0], VERBS, "see `sysdock --help`"))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            # click would end with status 1, which is kept for findings.
            raise _OutputClosed from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, text) for verb, (_, text) in VERBS.items()])


def _say_version(ctx: click.Context, _param: click.Parameter, asked: bool) -> None:
    """The callback of --version."""
    if not asked or ctx.resilient_parsing:
        return
    from sysdock.version import version_text

    print(version_text())
    ctx.exit()


def _choose_color(_ctx: click.Context, _param: click.Parameter, when: str | None) -> None:
    """The callback of --color."""
    if when:
        from sysdock.screen.color import choose

        choose(when)


@click.group(cls=_Verbs, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    expose_value=False,
    callback=_choose_color,
    help="Colours: auto (default) on terminals, unless NO_COLOR is set.",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_say_version,
    help="Show version, commit and format of recordings.",
)
def sysdock() -> None:
    """A check-up for Linux systems.

    It records what a program really does, finds what holds it back, and says what to do about it.
    """


def main(arguments: list[str] | None = None) -> NoReturn:
    """Entry point.

    Exit status: 0 fine, 1 where asked for by --fail-on, 2 an error, 130 interrupted, 143 terminated.
    """
    global owns_process
    owns_process = True
    _ready_streams()
    terminated: list[int] = []

    def terminate(number: int, _frame: object) -> None:
        """Leaves as Ctrl-C does, so that temporary files are removed."""
        terminated.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, terminate)
    try:
        with interruptions():
            code = sysdock.main(arguments, prog_name="sysdock", standalone_mode=False)
    except UserError as error:
        code = _complain(str(error))
    except click.UsageError as error:
        usage = f"{error.ctx.command_path} --help" if error.ctx else "sysdock --help"
        # click writes choices in lines of their own, after tabs.
        message = error.format_message().expandtabs(2).rstrip(".")
        code = _complain(f"{message[:1].lower()}{message[1:]}\n\nhint: see `{usage}`")
    except click.ClickException as error:
        code = _complain(error.format_message())
    except (KeyboardInterrupt, click.Abort):
        code = 130
    except _OutputClosed:
        # Whoever read our output has enough of it. Python would complain once more at its end.
        _drop_output()
        code = 0
    except MemoryError:
        code = _complain("not enough memory\n\nhint: ask for less at once: --from and --until, or one --file")
    except OSError as error:
        # A full disk, a folder without permission: wherever it was met, it is not a reason for a trace-back.
        code = _complain(f"{error.filename or 'the output'}: {(error.strerror or str(error)).lower()}")
        _drop_output()
    if terminated:
        code = 128 + terminated[0]
    _drop_unread_remarks()
    sys.exit(code if isinstance(code, int) else 0)


def _ready_streams() -> None:
    """Makes the standard streams fit for anything that was recorded."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            # Started with it closed: the next file that is opened would take its number, and get what is
            # meant for the user. Output that cannot be written is an error, remarks no one can read are not.
            os.dup2(os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY), number)
            os.set_inheritable(number, True)
            from sysdock.recording import native

            native.closed_streams.add(number)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal may lack Japanese, and a name given on the command line need not be UTF-8.
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Python would try once more at its end to write what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _drop_unread_remarks() -> None:
    """Avoid Python's exit status 120 for a standard error that nobody reads."""
    try:
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _complain(text: str) -> int:
    from sysdock.cli.output import terminal_width
    from sysdock.screen.color import painted_error
    from sysdock.text import fitted, printable_lines

    lines = fitted(f"sysdock: {printable_lines(text)}".split("\n"), terminal_width(sys.stderr))
    print(painted_error("\n".join(lines), sys.stderr), file=sys.stderr)
    return 2
