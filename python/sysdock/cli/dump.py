"""`sysdock dump`: what a kernel was doing when it died."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import click

from sysdock.cli.options import (
    format_option,
    lang_option,
    new_recording_option,
    report_option,
    share_option,
)

_EPILOG = """Example:

\b
  sysdock dump run /var/crash/202611271200/dump.202611271200 -o rec
  sysdock show rec dump/locks
"""
_INFO_EPILOG = """Example:

\b
  sysdock dump info /var/crash/202611271200/dump.202611271200
"""
_RUN_EPILOG = """Examples:

\b
  sysdock dump run /var/crash/202611271200/dump.202611271200 -o rec
  sysdock dump run ps-cpu core -o rec
  sysdock show rec dump/tasks --format json
  sysdock dump run lock-graph log-tail core -o rec
"""
# A question, and the parts that the native program reads for it.
_QUESTIONS = {
    "ps-cpu": ("tasks", "stacks"),
    "stacks-grouped": ("stacks",),
    "lock-graph": ("tasks", "stacks", "locks"),
    "log-tail": ("log",),
    "mem-summary": ("memory",),
    "slab-top": ("memory",),
    "files-open": ("files",),
    "mounts": ("mounts",),
    "modules": ("modules",),
    "cpu-use": ("processors",),
}
_FORWARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.group("dump", epilog=_EPILOG)
def command() -> None:
    """What a kernel was doing when it died: crash dumps, read without debug information.

    Dumps of kdump, makedumpfile and qemu, of x86-64 and Linux 6.0 or newer.
    """


@command.command("info", epilog=_INFO_EPILOG)
@click.argument("core", type=click.Path(path_type=Path))
@format_option
@click.pass_context
def info(ctx: click.Context, /, core: Path, format_: str) -> None:
    """Say which kernel a dump is of, and how much of it is there."""
    import json

    from sysdock.analysis.writing import write_csv
    from sysdock.recording.native import find_native

    words = [str(find_native()), "dump", "info", "--", str(core)]
    found = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode:
        ctx.exit(found.returncode)
    if format_ == "json":
        sys.stdout.write(json.dumps(json.loads(found.stdout), indent=2) + "\n")
        return
    described = json.loads(found.stdout)
    described["remarks"] = "; ".join(described["remarks"]) or None
    pairs = [(name, value) for name, value in described.items() if value is not None]
    if format_ == "csv":
        write_csv(sys.stdout, ("name", "value"), pairs)
        return
    width = max(len(name) for name, _ in pairs)
    sys.stdout.writelines(f"{name:{width}}  {value}\n" for name, value in pairs)


@command.command("run", epilog=_RUN_EPILOG)
@click.argument("words", nargs=-1, required=True, metavar="[QUESTION]... CORE")
@new_recording_option
@share_option
@report_option
@lang_option
@click.pass_context
def run(
    ctx: click.Context,
    /,
    words: tuple[str, ...],
    output: Path,
    share: bool,
    with_report: bool,
    lang: str,
) -> None:
    """Read a dump into a recording.

    QUESTION: ps-cpu, stacks-grouped, lock-graph, log-tail, mem-summary, slab-top, files-open, mounts, modules
    or cpu-use; without any, all of them.
    """
    from sysdock.cli.recording import answer, load_ahead, run_with_progress
    from sysdock.errors import UserError, did_you_mean
    from sysdock.recording.native import refuse_existing

    *questions, core = words
    for question in questions:
        if question not in _QUESTIONS:
            hint = did_you_mean(question, _QUESTIONS, f"one of {', '.join(_QUESTIONS)}")
            raise UserError(f"no question {question!r}", hint)
    refuse_existing(output)
    parts = dict.fromkeys(part for question in questions for part in _QUESTIONS[question])
    options = [f"--part={part}" for part in parts] + ["--share"] * share
    load_ahead()
    code = run_with_progress(["dump run", "-o", str(output), *options, "--", core], _FORWARD)
    if (output / "recording.json").exists():
        answer(output, sys.stdout, lang, with_report)
    ctx.exit(code)
