"""`sysdock health`: what a file system does, by a fixed set of items, and what that means."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sysdock.cli.options import lang_option, share_option
from sysdock.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sysdock.library import Library, LoadPlan

_EPILOG = """Example:

\b
  sysdock health /data                   # class S: less than a minute, 1 GB, 8 processes
  sysdock health /scratch --class M -o scratch-2026-11
  sysdock health /scratch --nodes node1,node2,node3
  sysdock compare scratch-2026-10 scratch-2026-11
"""
_FORWARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.command("health", epilog=_EPILOG)
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--class",
    "class_",
    default="S",
    metavar="S|M|L|FILE",
    show_default=True,
    help="S: 1 minute, 1 GB, 8 processes. M: 10 minutes, 100. L: 2 hours, 1,000. Or a plan (TOML).",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="REC",
    help="New folder for the recording. Default: health-CLASS-TIME.",
)
@click.option(
    "--nodes",
    metavar="A,B",
    help="Run the load on these hosts at once, in DIR on each; `job`: the hosts of the Slurm or PBS job.",
)
@click.option(
    "--launch",
    metavar="COMMAND",
    help="Command to reach a host, with {node} for its name. Default: ssh; in a Slurm job, srun.",
)
@click.option(
    "--native", metavar="PATH", help="Path of sysdock-native on these hosts. Default: its path here."
)
@click.option(
    "--engine",
    type=click.Choice(["own", "fio"]),
    default="own",
    show_default=True,
    help="fio: repeat the steps with fio, as far as it has them, and show both.",
)
@click.option(
    "--report/--no-report", default=True, help="Write report.html into the recording. Default: yes."
)
@click.option(
    "--scan",
    is_flag=True,
    help="Afterwards also scan where the files lie (`sysdock disk scan`): how full and fragmented "
    "the file system is.",
)
@click.option(
    "--site",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the measured rates of DIR into this site file, for step 2 of `sysdock checkup --site`.",
)
@share_option
@lang_option
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json"]),
    default="text",
    help="text: an explanation. json: the rows of load_results.",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    directory: Path,
    class_: str,
    output: Path | None,
    nodes: str | None,
    launch: str | None,
    native: str | None,
    engine: str,
    report: bool,
    scan: bool,
    site: Path | None,
    share: bool,
    lang: str,
    format_: str,
) -> None:
    """Measure the file system of DIR, and report what is normal and what is not.

    Works in a folder of its own below DIR and removes it; what a killed run left there is removed by the next
    one. Ctrl-C keeps what is done. The load is real: it slows down all other work on the file system.
    """
    from sysdock.cli.bench import add_by_fio
    from sysdock.cli.recording import add_scan, load_ahead, run_with_progress
    from sysdock.health.place import mount_point
    from sysdock.health.planned import called, default_output, load_class, plan_file
    from sysdock.own_folder import refuse_existing
    from sysdock.recording.native import native_words

    folder = output or default_output(class_)
    refuse_existing(folder)
    if nodes and engine == "fio":
        raise UserError("fio is run on one host only", "leave out --nodes or --engine", "--engine fio")
    if nodes and scan:
        raise UserError(
            "a file system is scanned from one host only", "leave out --nodes or --scan", "--scan"
        )
    if site:
        _refuse_site(site)
    plan = load_class(class_)
    library = load_ahead()
    if nodes:
        code = _on_nodes(folder, directory, plan, nodes, launch, native, share)
        if (folder / "recording.json").exists():
            _answer(folder, library, format_, lang, report)
        if site and code == 0:
            _note_rates(site, directory, folder)
        ctx.exit(code)
    with plan_file(plan.steps) as file:
        wanted = {"plan": file, "within": plan.within_s or None}
        options: dict[str, object] = {"output": folder, **wanted, "called": called(), "share": share}
        code = run_with_progress(native_words("load", options, directory), _FORWARD)
    if (folder / "recording.json").exists():
        if engine == "fio" and code == 0:
            add_by_fio(folder, directory, plan.steps)
        if scan and code == 0:
            add_scan(folder, mount_point(directory))
        _answer(folder, library, format_, lang, report)
        if site and code == 0:
            _note_rates(site, directory, folder)
    ctx.exit(code)


def _refuse_site(site: Path) -> None:
    """Before the load runs for nothing: a UserError where the site's file cannot be read or made."""
    from sysdock.checkup.site import read_site, refuse_place

    if site.exists():
        read_site(site)
    else:
        refuse_place(site)


def _note_rates(site: Path, directory: Path, folder: Path) -> None:
    """Puts what was measured into the site's file, and says so."""
    from sysdock.analysis import Session
    from sysdock.checkup.site import update_rates
    from sysdock.cli.output import remark
    from sysdock.health import results
    from sysdock.recording import Recording
    from sysdock.text import human_bytes

    with Session(Recording.open(folder)) as session:
        rates = results.typical(results.rows(session))
    for name in sorted({"read", "write"} - rates.keys()):
        remark(f"{site}: no {name} rate: none of the largest requests has the status `measured`")
    if rates:
        update_rates(site, directory.resolve(), rates)
        rates_text = ", ".join(f"{name} {human_bytes(rate)}/s" for name, rate in rates.items())
        remark(f"{site}: {directory.resolve()}: {rates_text}")


def _answer(folder: Path, library: Callable[[], Library], format_: str, lang: str, report: bool) -> None:
    from sysdock.cli.bench import show
    from sysdock.cli.recording import answer

    if format_ == "json":
        show(folder, format_)
    else:
        answer(folder, library, sys.stdout, lang, report)


def _on_nodes(
    folder: Path,
    directory: Path,
    plan: LoadPlan,
    names: str,
    launch: str | None,
    native: str | None,
    share: bool,
) -> int:
    """Does the load by hosts; returns the exit status. UserError: one cannot be reached, or failed."""
    from sysdock.cli.output import remark
    from sysdock.cli.progress import ProgressLine
    from sysdock.health import nodes
    from sysdock.health.on_nodes import record
    from sysdock.health.planned import called
    from sysdock.recording.native import find_native

    named = nodes.allocated() if names == "job" else names.split(",")
    hosts = [name for name in dict.fromkeys(named) if name]
    if not hosts:
        hint = "name them: --nodes a,b,c; `job` needs SLURM_JOB_NODELIST or PBS_NODEFILE"
        raise UserError("no hosts were named", hint)
    slurm = names == "job" and "SLURM_JOB_NODELIST" in os.environ
    launch = launch or ("srun -N1 -n1 -w {node} sh -c" if slurm else nodes.SSH)
    line = ProgressLine()
    skipped = 0
    try:
        skipped = record(
            folder,
            hosts,
            launch,
            native or str(find_native()),
            directory,
            plan,
            called(),
            lambda text: line.show(f"sysdock: {text}"),
            share=share,
        )
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        line.clear()
    if skipped:
        steps = "1 step was" if skipped == 1 else f"{skipped} steps were"
        remark(f"{steps} not begun: the time limit of the class was reached; see the rows that are `skipped`")
    return 0
