"""`sysdock dump`: what a kernel was doing when it died."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sysdock.cli.native_options import native_options
from sysdock.cli.options import (
    format_option,
    into_option,
    lang_option,
    parse_params,
    report_option,
)

if TYPE_CHECKING:
    from sysdock.library import DumpScript, Library

_CORE = "/var/crash/202611271200/dump.202611271200"
_EPILOG = f"""Example:

\b
  sysdock dump run {_CORE} -o rec
  sysdock show rec dump/locks
"""
_INFO_EPILOG = f"""Example:

\b
  sysdock dump info {_CORE}
"""
_RUN_EPILOG = f"""Examples:

\b
  sysdock dump run {_CORE} -o rec
  sysdock dump run ps-cpu core -o rec
  sysdock show rec dump/tasks --format json
  sysdock dump run lock-graph log-tail core -o rec
  sysdock dump run find-text core -o rec -p text=nvme0n1
  sysdock dump run qmp:/run/guest.qmp -o rec
  sysdock dump run core -o rec --vmlinux /usr/lib/debug/boot/vmlinux-6.1.0-56-cloud-amd64
"""
_LIST_EPILOG = """Examples:

\b
  sysdock dump list
  sysdock dump list core
"""
_NEW_EPILOG = """Example:

\b
  sysdock dump new sessions --into my-pack
"""
_TEST_EPILOG = """Examples:

\b
  tools/make-dump 6.1 -o fixture
  sysdock dump test fixture
  sysdock dump test ps-cpu fixture
"""
_SHELL_EPILOG = """Example:

\b
  sysdock dump shell core
  >>> tasks().where(lambda task: task.state == "D")
  >>> dump.read("task_struct", tasks()[0].address, "comm", "real_parent->comm")
  >>> %lock-graph
  >>> %keep waiting
"""
_FORWARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_CORE_ARGUMENT = click.argument("core", type=click.Path(path_type=Path))
_DEBUG_INFO = {"vmlinux", "force"}
_TRUST = click.option("--trust", is_flag=True, help="Run scripts that do not come with sysdock.")


@click.group("dump", epilog=_EPILOG)
def command() -> None:
    """Analyze kernel crash dumps, without debug information.

    Dumps of kdump, makedumpfile and qemu, of x86-64 and Linux 6.0 or newer. In place of a dump, /proc/kcore
    is the kernel that runs, and qmp:SOCKET a guest that runs: the socket of its qemu's monitor (QMP).
    """


@command.command("info", epilog=_INFO_EPILOG)
@click.argument("core", type=click.Path(path_type=Path))
@format_option
@click.pass_context
def info(ctx: click.Context, /, core: Path, format_: str) -> None:
    """Show which kernel a dump is of, and how complete it is."""
    import json

    from sysdock.analysis.writing import write_csv
    from sysdock.cli.output import say
    from sysdock.recording.native import command_line

    found = subprocess.run(
        command_line("dump info", {}, core), stdout=subprocess.PIPE, text=True, check=False
    )
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
    say(f"{name:{width}}  {value}" for name, value in pairs)


@command.command("run", epilog=_RUN_EPILOG)
@click.argument("words", nargs=-1, required=True, metavar="[QUESTION]... CORE")
@native_options("dump run", without={"part"})
@click.option("--all", "all_", is_flag=True, help="Answer all questions (default without QUESTION).")
@click.option(
    "-p", "--param", "pairs", metavar="NAME=VALUE", multiple=True, help="Set a parameter of a question."
)
@_TRUST
@native_options("dump serve", without=_DEBUG_INFO, into="of_scripts")
@report_option
@lang_option
@click.pass_context
def run(
    ctx: click.Context,
    /,
    words: tuple[str, ...],
    all_: bool,
    pairs: tuple[str, ...],
    trust: bool,
    with_report: bool,
    lang: str,
    given: dict[str, Any],
    of_scripts: dict[str, Any],
) -> None:
    """Read a dump into a recording, and answer questions about it.

    QUESTION: see `sysdock dump list`; without any, all that need no parameter.
    """
    from sysdock.errors import UserError

    *questions, core = words
    if all_ and questions:
        raise UserError("--all and questions", "leave out one of them", "--all")
    asked = _Asked(questions, parse_params(pairs), trust=trust, of_scripts=of_scripts)
    ctx.exit(_read(Path(core), given, asked, lang, with_report=with_report))


@dataclass(frozen=True)
class _Asked:
    """Questions about a dump. `of_scripts`: options of the program that answers scripts."""

    questions: list[str]
    params: dict[str, str]
    trust: bool
    of_scripts: dict[str, Any]


def _read(core: Path, given: dict[str, Any], asked: _Asked, lang: str, *, with_report: bool) -> int:
    """Reads a dump into a recording, answers the questions, and returns the exit status."""
    from sysdock.cli.output import remark
    from sysdock.cli.recording import answer, load_ahead, run_with_progress
    from sysdock.dump.running import bound, refuse_untrusted
    from sysdock.library import Library
    from sysdock.own_folder import refuse_existing
    from sysdock.recording.native import native_words

    output, questions = given["output"], asked.questions
    library = Library()
    scripts = _scripts(library, questions)
    if not asked.trust:
        refuse_untrusted(scripts, library)
    params = bound(scripts, asked.params)
    refuse_existing(output)
    parts = dict.fromkeys(part for script in scripts for part in script.reads)
    if not parts:
        # The subject of the dump and the reason for the stop belong to each answer.
        parts["log"] = None
    ahead = load_ahead()
    code = run_with_progress(native_words("dump run", {**given, "part": list(parts)}, core), _FORWARD)
    if code == 0:
        for script in scripts:
            if questions and not script.columns:
                remark(f"{script.name}: sysdock show {output} {script.shows}")
        _run_scripts(scripts, core, params, output, library, **asked.of_scripts)
    if (output / "recording.json").exists():
        answer(output, ahead, sys.stdout, lang, with_report)
    return code


def _scripts(library: Library, questions: list[str]) -> list[DumpScript]:
    """The scripts of these names; without any, all that need nothing from the user."""
    if questions:
        return [library.dump_script(question) for question in questions]
    scripts = library.dump_scripts()
    return [each for each in scripts if all(param.default is not None for param in each.params)]


def _run_scripts(
    scripts: list[DumpScript],
    core: Path,
    params: Mapping[str, Mapping[str, Any]],
    output: Path,
    library: Library,
    *,
    user_memory: bool = False,
) -> None:
    """Runs the functions of scripts, and prints the result of each."""
    from sysdock.cli.output import remark
    from sysdock.dump.running import add_results, run_scripts

    results = []
    for result in run_scripts(scripts, core, params, user_memory=user_memory):
        results.append(result)
        ended = (
            f"stopped: {result.stopped}" if result.stopped else f"sysdock show {output} {result.script.shows}"
        )
        remark(f"{result.script.name}: {len(result.rows)} rows; {ended}")
        for lacking in result.lacking:
            remark(f"{result.script.name}: {lacking}")
    if results:
        add_results(output, library, results)


@command.command("report", epilog=f"Example:\n\n\b\n  sysdock dump report {_CORE} -o rec\n")
@_CORE_ARGUMENT
@native_options("dump run", without={"part"})
@_TRUST
@lang_option
@click.pass_context
def report(ctx: click.Context, /, core: Path, trust: bool, lang: str, given: dict[str, Any]) -> None:
    """Answer all questions about a dump, and write the report: `dump run --all --report`."""
    ctx.exit(_read(core, given, _Asked([], {}, trust=trust, of_scripts={}), lang, with_report=True))


@command.command("list", epilog=_LIST_EPILOG)
@click.argument("core", required=False, type=click.Path(path_type=Path))
@format_option
def list_(core: Path | None, format_: str) -> None:
    """List the questions; with CORE, whether that dump has what each needs."""
    from sysdock.cli.output import print_rows, terminal_width
    from sysdock.dump import Dump
    from sysdock.dump.running import missing
    from sysdock.library import Column, Library

    scripts = Library().dump_scripts()
    names = ["question", "cost", "title", "parameters"]
    rows = [
        [script.name, script.cost, script.title, ", ".join(param.name for param in script.params) or None]
        for script in scripts
    ]
    if core is not None:
        names.append("lacks")
        with Dump.open(core) as dump:
            for row, script in zip(rows, scripts, strict=True):
                row.append(", ".join(missing(script, dump)) or None)
    columns = [Column(name, "VARCHAR", None, "") for name in names]
    print_rows(columns, rows, format_, terminal_width() if sys.stdout.isatty() else None)


@command.command("new", epilog=_NEW_EPILOG)
@click.argument("name")
@into_option
def new(name: str, into: Path) -> None:
    """Create a new script, NAME.py and NAME.md: a working template to change."""
    from sysdock.cli.output import say
    from sysdock.dump.skeleton import write_new

    script, page = write_new(name, into)
    print(f"{script}\n{page}")
    print()
    say(["Next: change both to your question, then"], heads=["Next:"])
    print(f"  SYSDOCK_KNOWHOW={into} sysdock dump run {name} CORE -o rec --trust")
    print(f"  sysdock check --bless {script}     runs the example in the page, and writes its result")


@command.command("test", epilog=_TEST_EPILOG)
@click.argument("words", nargs=-1, required=True, metavar="[QUESTION]... FIXTURE")
@_TRUST
@click.pass_context
def test(ctx: click.Context, /, words: tuple[str, ...], trust: bool) -> None:
    """Compare answers with what a guest reported before it crashed.

    FIXTURE: a folder that tools/make-dump made: `core` and `truth.log`. What must hold is in the page of a
    question, as SQL that finds differences.
    """
    from sysdock.cli.output import say
    from sysdock.dump.running import refuse_untrusted
    from sysdock.dump.testing import test_scripts
    from sysdock.library import Library

    *questions, fixture = words
    library = Library()
    scripts = _scripts(library, questions)
    if not trust:
        refuse_untrusted(scripts, library)
    failed = 0
    passed = 0
    for name, differences in test_scripts(scripts, Path(fixture), library):
        lines = [
            f"{'FAILED' if differences else 'ok':8} {name}",
            *(f"         {line}" for line in differences),
        ]
        say(lines, statuses={"FAILED": "finding", "ok": "ok"})
        failed += bool(differences)
        passed += not differences
    print(f"{passed} passed, {failed} failed")
    ctx.exit(int(failed > 0))


@command.command("shell", epilog=_SHELL_EPILOG)
@_CORE_ARGUMENT
@into_option
@_TRUST
@native_options("dump serve")
def shell(core: Path, into: Path, trust: bool, given: dict[str, Any]) -> None:
    """Explore a dump in a Python shell, with completion; `%keep NAME` makes a script of what you tried."""
    from sysdock.dump import Dump
    from sysdock.dump.shell import run_shell
    from sysdock.library import Library

    with Dump.open(core, **given) as dump:
        run_shell(dump, Library(), into, trust=trust)
