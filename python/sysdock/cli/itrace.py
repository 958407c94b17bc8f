"""`sysdock itrace`: every instruction."""

from __future__ import annotations

from pathlib import Path

import click

from sysdock.cli.itrace_vm import convert_events, record_and_answer, vm
from sysdock.cli.options import lang_option, new_recording_option, report_option, share_option

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
@new_recording_option
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Release the program after N instructions."
)
@share_option
@report_option
@lang_option
@click.pass_context
def attach(
    ctx: click.Context,
    /,
    arguments: tuple[str, ...],
    output: Path,
    limit: int | None,
    share: bool,
    with_report: bool,
    lang: str,
) -> None:
    """Execute a process, or a command, instruction by instruction.

    All threads are traced, and the processes that they start. The kernel's side of system calls is not: see
    `sysdock itrace vm`. The process runs some thousand times slower meanwhile. Ctrl-C lets it go on;
    SIGKILL to the tracer may end it.
    """
    from sysdock.recording.native import refuse_existing

    refuse_existing(output)
    options = ["--share"] * share + (["--limit", str(limit)] if limit else [])
    target = list(arguments) if len(arguments) == 1 and arguments[0].isdecimal() else ["--", *arguments]
    native = ["itrace attach", "-o", str(output), *options, *target]
    record_and_answer(ctx, native, output, with_report, lang)


@command.command("user", epilog=_USER_EPILOG)
@click.argument("arguments", nargs=-1, required=True, metavar="-- CMD...", type=click.UNPROCESSED)
@new_recording_option
@click.option(
    "--qemu", metavar="PROGRAM", help="qemu-x86_64 to use: from qemu-user 7.2 or newer, with plugins."
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Stop recording after N instructions.")
@share_option
@report_option
@lang_option
@click.pass_context
def user(
    ctx: click.Context,
    /,
    arguments: tuple[str, ...],
    output: Path,
    qemu: str | None,
    limit: int | None,
    share: bool,
    with_report: bool,
    lang: str,
) -> None:
    """Run a command under qemu-user, and record each instruction: much faster than `attach`.

    Only one thread: where the command starts a second one, recording ends. Processes that it starts run, but
    are not recorded. The kernel's side of system calls is not, either. The processor is that of qemu
    (qemu64, or the one in QEMU_CPU). Ctrl-C ends the command, and keeps what there is.
    """
    from sysdock.itrace.files import find_plugin
    from sysdock.itrace.qemu import find_user_qemu, version_of
    from sysdock.recording.native import refuse_existing

    refuse_existing(output)
    program = find_user_qemu(qemu)
    options = ["--qemu", str(program), "--version-of-qemu", version_of(program)]
    options += ["--plugin", str(find_plugin()), *["--share"] * share]
    options += ["--limit", str(limit)] if limit else []
    native = ["itrace user", "-o", str(output), *options, "--", *arguments]
    record_and_answer(ctx, native, output, with_report, lang)


@command.command("convert", epilog=_CONVERT_EPILOG)
@click.argument("folder", type=click.Path(path_type=Path))
@new_recording_option
@share_option
@report_option
@lang_option
@click.pass_context
def convert(
    ctx: click.Context, /, folder: Path, output: Path, share: bool, with_report: bool, lang: str
) -> None:
    """Make a recording of an event file (trace.sdit) in FOLDER, and what its recorder wrote next to it."""
    from sysdock.recording.native import refuse_existing

    refuse_existing(output)
    convert_events(ctx, folder, output, share, with_report, lang)


@command.command("dump", epilog=_DUMP_EPILOG)
@click.argument("rec", type=click.Path(path_type=Path))
@click.option("--first-step", type=click.IntRange(0), metavar="STEP", help="First step.")
@click.option("--end-step", type=click.IntRange(0), metavar="STEP", help="End step; exclusive.")
@click.option("--task", metavar="TASK", help="Only this task, by number or name.")
@click.option("--mode", type=click.Choice(["user", "library", "kernel"]), help="Only this mode.")
@click.option("--image", metavar="TEXT", help="Only files whose path contains this.")
@click.option("--function", metavar="NAME", help="Only this function.")
@click.option(
    "--address",
    metavar="FIRST[-END]",
    help="Only instructions that are at, or access, these addresses (hexadecimal).",
)
@click.option(
    "--limit",
    type=click.IntRange(0),
    metavar="N",
    help="Maximum number of instructions; 0: all. Default: 1,000.",
)
@click.option("--format", "format_", type=click.Choice(["text", "json"]), help="json: one object per line.")
@click.pass_context
def dump(ctx: click.Context, /, rec: Path, format_: str | None, **options: str | int | None) -> None:
    """Print instructions: who executed each, its function, and the addresses that it touched."""
    given = {"format": format_, **options}
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in given.items() if value is not None]
    ctx.exit(_run(["dump", *arguments, "--", str(rec)]))


def show_instructions(rec: Path, params: dict[str, str], limit: int | None, format_: str) -> None:
    """`sysdock show REC itrace/dump`: prints as `dump` does, whose options are parameters there."""
    from sysdock.errors import UserError, did_you_mean

    known = [option.name for option in dump.params if option.name not in ("rec", "limit", "format_")]
    for name in params:
        if name not in known:
            raise UserError(
                f"itrace/dump has no parameter `{name}`",
                did_you_mean(name, known, f"known: {', '.join(known)}"),
            )
    if format_ == "csv":
        raise UserError("instructions cannot be printed as csv", "json: an object per line", "--format csv")
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in params.items()]
    arguments += [f"--limit={limit}"] if limit is not None else []
    arguments += ["--format=json"] if format_ == "json" else []
    if code := _run(["dump", *arguments, "--", str(rec)]):
        raise SystemExit(code)


def _run(arguments: list[str]) -> int:
    """The exit status of a verb of the native program that prints."""
    import subprocess

    from sysdock.recording.native import find_native

    return subprocess.run([str(find_native()), "itrace", *arguments], check=False).returncode


@command.command("decode", epilog=_DECODE_EPILOG)
@click.argument("rec", type=click.Path(path_type=Path))
@click.option("--first-step", type=click.IntRange(0), metavar="STEP", default=0, help="First step.")
@click.option(
    "--limit", type=click.IntRange(0), metavar="N", default=0, help="Maximum number of lines; 0: all."
)
@click.pass_context
def decode(ctx: click.Context, /, rec: Path, first_step: int, limit: int) -> None:
    """Print the events of a recording, one a line.

    block ADDRESS INSTRUCTIONS, load or store ADDRESS BYTES INSTRUCTION (its number in the block), and notes.
    """
    options = ["--first-step", str(first_step), "--limit", str(limit)]
    ctx.exit(_run(["decode", *options, "--", str(rec)]))
