"""The command line. Each verb is a module of its own, loaded when it is called."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import NoReturn

import click

from sysdock import __version__
from sysdock.errors import UserError, did_you_mean

# Verb -> module and the line in `sysdock --help`, in the order in which a user meets them.
VERBS = {
    "run": ("run", "Record a command, then say what holds it back."),
    "import": ("import_log", "Make a recording from strace logs."),
    "info": ("info", "What was recorded, when, where, how completely."),
    "diagnose": ("diagnose", "What is wrong, and what to do about it."),
    "show": ("show", "Answer one question: an analysis as table or picture."),
    "report": ("report", "Everything in one HTML file."),
    "query": ("query", "Ask in SQL."),
    "export": ("export", "Write the tables as Parquet or CSV files."),
    "list": ("list_all", "List analyses, rules, charts and tables."),
    "check": ("check", "Run the examples in the pages of analyses and rules."),
    "new": ("new", "Begin an analysis or a rule of your own."),
}

_EPILOG = """Example:

\b
  sysdock run -o rec -- tar cf /dev/null /usr/share/doc
  sysdock show rec io/files
"""


class _OutputClosed(Exception):
    """Whoever read standard output went away."""


class _Verbs(click.Group):
    """Loads the module of a verb when the verb is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        return import_module(f"sysdock.cli.{VERBS[cmd_name][0]}").command

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


@click.group(cls=_Verbs, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="sysdock %(version)s")
def sysdock() -> None:
    """A check-up for Linux systems.

    It records what a program really does, finds what holds it back, and says what to do about it.
    """


def main(arguments: list[str] | None = None) -> NoReturn:
    """Entry point. Exit status: 0 fine, 1 where asked for by --fail-on, 2 an error, 130 interrupted."""
    try:
        code = sysdock.main(arguments, prog_name="sysdock", standalone_mode=False)
    except UserError as error:
        code = _complain(str(error))
    except click.UsageError as error:
        usage = f"{error.ctx.command_path} --help" if error.ctx else "sysdock --help"
        message = error.format_message().rstrip(".")
        code = _complain(f"{message[:1].lower()}{message[1:]}\n\nhint: see `{usage}`")
    except click.ClickException as error:
        code = _complain(error.format_message())
    except (KeyboardInterrupt, click.Abort):
        code = 130
    except _OutputClosed:
        # Whoever read our output has enough of it. Python would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        # A full disk, a folder without permission: wherever it was met, it is not a reason for a trace-back.
        code = _complain(f"{error.filename or 'the output'}: {(error.strerror or str(error)).lower()}")
    sys.exit(code if isinstance(code, int) else 0)


def _complain(text: str) -> int:
    print(f"sysdock: {text}", file=sys.stderr)
    return 2
