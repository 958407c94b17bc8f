"""`sysdock itrace`: every instruction."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from sysdock.cli.itrace_vm import convert_events, record_and_answer, vm
from sysdock.cli.native_options import native_options
from sysdock.cli.options import lang_option, report_option

_EPILOG = """Example:

\b
  sysdock itrace attach -o rec -- ls /
  sysdock show rec itrace/functions
  sysdock itrace vm build apache -o guest
  sysdock itrace vm run guest -o rec2
"""
_ATTACH_EPILOG = """Examples:

\b
  sysdock itrace attach -o rec -- ls /
  sysdock itrace attach -o rec --limit 1000000 4711
  sysdock show rec itrace/steps --format json
"""
_USER_EPILOG = """Examples:

\b
  sysdock itrace user -o rec -- gzip -9 -k file
  sysdock itrace user -o rec --limit 100000000 -- python3 -c 'print(1)'
  sysdock show rec itrace/functions
"""
_CONVERT_EPILOG = """Example:

\b
  sysdock itrace convert guest-trace -o rec
"""
_DUMP_EPILOG = """Examples:

\b
  sysdock itrace dump rec --first-step 1000 --limit 50
  sysdock itrace dump rec --function memcpy --task apache2
  sysdock itrace dump rec --address 7ffc0000-7ffc1000 --format json
"""
_DECODE_EPILOG = """Examples:

\b
  sysdock itrace decode rec
  sysdock itrace decode rec --first-step 1000 --limit 20
"""


@click.group("itrace", epilog=_EPILOG)
def command() -> None:
    """Trace every executed instruction and every memory access.

    A step is an instruction; of one with a REP prefix, each iteration is a step.
    """


command.add_command(vm)


@command.command("attach", epilog=_ATTACH_EPILOG)
@click.argument("arguments", nargs=-1, required=True, metavar="PID | -- CMD...", type=click.UNPROCESSED)
@native_options("itrace attach")
@report_option
@lang_option
@click.pass_context
def attach(
    ctx: click.Context,
    /,
    arguments: tuple[str, ...],
    with_report: bool,
    lang: str,
    given: dict[str, Any],
) -> None:
    """Execute a process, or a command, instruction by instruction.

    All threads are traced, and the processes that they start. The kernel's side of system calls is not: see
    `sysdock itrace vm`. The process runs some thousand times slower meanwhile. Ctrl-C lets it go on;
    SIGKILL to the tracer may end it.
    """
    from sysdock.own_folder import refuse_existing
    from sysdock.recording.native import native_words

    refuse_existing(given["output"])
    target = list(arguments) if len(arguments) == 1 and arguments[0].isdecimal() else ["--", *arguments]
    native = [*native_words("itrace attach", given), *target]
    record_and_answer(ctx, native, given["output"], with_report, lang)


@command.command("user", epilog=_USER_EPILOG)
@click.argument("arguments", nargs=-1, required=True, metavar="-- CMD...", type=click.UNPROCESSED)
@click.option(
    "--qemu", metavar="PROGRAM", help="qemu-x86_64 to use: from qemu-user 7.2 or newer, with plugins."
)
@native_options("itrace user", without={"qemu", "plugin", "version-of-qemu"})
@report_option
@lang_option
@click.pass_context
def user(
    ctx: click.Context,
    /,
    arguments: tuple[str, ...],
    qemu: str | None,
    with_report: bool,
    lang: str,
    given: dict[str, Any],
) -> None:
    """Run a command under qemu-user, and record each instruction: much faster than `attach`.

    Only one thread: where the command starts a second one, recording ends. Processes that it starts run, but
    are not recorded. The kernel's side of system calls is not, either. The processor is that of qemu
    (qemu64, or the one in QEMU_CPU). Ctrl-C ends the command, and keeps what there is.
    """
    from sysdock.itrace.files import find_plugin
    from sysdock.itrace.qemu import find_user_qemu, version_of
    from sysdock.own_folder import refuse_existing
    from sysdock.recording.native import native_words

    refuse_existing(given["output"])
    program = find_user_qemu(qemu)
    of_qemu = {"qemu": program, "version_of_qemu": version_of(program), "plugin": find_plugin()}
    native = native_words("itrace user", {**of_qemu, **given}, *arguments)
    record_and_answer(ctx, native, given["output"], with_report, lang)


@command.command("convert", epilog=_CONVERT_EPILOG)
@click.argument("folder", type=click.Path(path_type=Path))
@native_options("itrace convert")
@report_option
@lang_option
@click.pass_context
def convert(ctx: click.Context, /, folder: Path, with_report: bool, lang: str, given: dict[str, Any]) -> None:
    """Make a recording of an event file (trace.sdit) in FOLDER, and what its recorder wrote next to it."""
    from sysdock.own_folder import refuse_existing

    refuse_existing(given["output"])
    convert_events(ctx, folder, given, with_report, lang)


@command.command("dump", epilog=_DUMP_EPILOG)
@click.argument("rec", type=click.Path(path_type=Path))
@native_options("itrace dump")
@click.pass_context
def dump(ctx: click.Context, /, rec: Path, given: dict[str, Any]) -> None:
    """Print instructions: who executed each, its function, and the addresses that it touched."""
    ctx.exit(_run("itrace dump", given, rec))


def show_instructions(rec: Path, params: dict[str, str], limit: int | None, format_: str) -> None:
    """`sysdock show REC itrace/dump`: prints as `dump` does, whose options are parameters there."""
    from sysdock.errors import UserError, did_you_mean

    known = [option.name for option in dump.params if option.name not in ("rec", "limit", "format")]
    for name in params:
        if name not in known:
            raise UserError(
                f"itrace/dump has no parameter `{name}`",
                did_you_mean(name, known, f"known: {', '.join(known)}"),
            )
    if format_ == "csv":
        raise UserError("instructions cannot be printed as csv", "json: an object per line", "--format csv")
    options = {**params, "limit": limit, "format": "json" if format_ == "json" else None}
    if code := _run("itrace dump", options, rec):
        raise SystemExit(code)


def _run(verb: str, options: Mapping[str, object], rec: Path) -> int:
    """The exit status of a verb of the native program that prints."""
    import subprocess

    from sysdock.recording.native import command_line

    return subprocess.run(command_line(verb, options, rec), check=False).returncode


@command.command("decode", epilog=_DECODE_EPILOG)
@click.argument("rec", type=click.Path(path_type=Path))
@native_options("itrace decode")
@click.pass_context
def decode(ctx: click.Context, /, rec: Path, given: dict[str, Any]) -> None:
    """Print the events of a recording, one a line.

    block ADDRESS INSTRUCTIONS, load or store ADDRESS BYTES INSTRUCTION (its number in the block), and notes.
    """
    ctx.exit(_run("itrace decode", given, rec))
