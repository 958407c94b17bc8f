"""`sysdock itrace vm`: requests in a guest, with its kernel."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from sysdock.cli.options import lang_option, new_recording_option, report_option, share_option

_EPILOG = """Examples:

\b
  sysdock itrace vm build apache -o guest
  sysdock itrace vm run guest -o rec
  sysdock itrace vm run guest -o large --request /41518.html
  sysdock compare rec large
"""
_BUILD_EPILOG = """Examples:

\b
  sysdock itrace vm build apache -o guest
  sysdock itrace vm build shop.toml -o guest --kernel /boot/vmlinuz-6.1.0-56-cloud-amd64 --warm 100
"""
_RUN_EPILOG = """Examples:

\b
  sysdock itrace vm run guest -o rec
  sysdock itrace vm run guest -o rec --request /cgi/shell --path virtio-net --cut server
  sysdock itrace vm run database -o rec --request select
"""
_QEMU = click.option("--qemu", metavar="PROGRAM", help="qemu-system-x86_64 to use: 7.2 or newer.")


@click.group("vm", epilog=_EPILOG)
def vm() -> None:
    """Requests to a service in a guest: its code, libraries and kernel, each instruction and address.

    The guest runs under qemu without KVM, with one processor whose clock is the number of its instructions:
    so it notices nothing of being traced.
    """


@vm.command("build", epilog=_BUILD_EPILOG)
@click.argument("service")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="GUEST",
    required=True,
    help="New folder for the guest.",
)
@click.option(
    "--kernel",
    metavar="KERNEL",
    help="An image, an unpacked package, or a package by name. Default: linux-image-cloud-amd64.",
)
@_QEMU
@click.option(
    "--memory",
    type=click.IntRange(128),
    default=512,
    show_default=True,
    metavar="MB",
    help="Memory of the guest.",
)
@click.option(
    "--warm",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    metavar="N",
    help="Requests before the snapshot.",
)
@click.option(
    "--cache", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder in which packages are kept."
)
def build(
    service: str,
    output: Path,
    kernel: str | None,
    qemu: str | None,
    memory: int,
    warm: int,
    cache: Path | None,
) -> None:
    """Make a guest: its files, its kernel, and a snapshot in which the service is warm.

    SERVICE: a file of TOML that names packages of Debian, a tree or an export of a container, and a
    command; or apache, nginx, busybox, files (starts a program, writes with fsync), postgres.
    """
    from sysdock.cli.output import say
    from sysdock.itrace import building
    from sysdock.itrace.kernel import find_kernel
    from sysdock.itrace.qemu import find_qemu
    from sysdock.itrace.service import read_service
    from sysdock.own_folder import refuse_existing, refuse_replaceable

    refuse_existing(output)
    refuse_replaceable(output)
    wanted = read_service(service)
    program = find_qemu(qemu)
    place = cache or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sysdock" / "packages"
    found = find_kernel(kernel, place)
    building.build(wanted, found, output, place, qemu=program, memory_mb=memory, warm=warm, say=_say)
    say([f"{output}: a guest with {found.release}; next: sysdock itrace vm run {output} -o rec"])


@vm.command("run", epilog=_RUN_EPILOG)
@click.argument("guest", type=click.Path(path_type=Path))
@new_recording_option
@click.option(
    "--request",
    metavar="REQUEST",
    help="A path, or the name of a command of the service. Default: what the guest was warmed up with.",
)
@click.option(
    "--path",
    type=click.Choice(["loopback", "virtio-net"]),
    default="loopback",
    show_default=True,
    help="Whether the client runs in the guest or on this machine.",
)
@click.option(
    "--cut",
    type=click.Choice(["markers", "server"]),
    default="markers",
    show_default=True,
    help="server: only what the server does from accept(2) to its next accept, poll, select or epoll_wait, "
    "each wake-up as a request of its own.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=1_000_000_000,
    metavar="N",
    help="Stop after N instructions. Default: 10^9.",
)
@click.option("--control-flow", is_flag=True, help="Leave out memory addresses: twice as fast.")
@click.option("--fail", is_flag=True, help="Exit with status 1 if the request fails.")
@click.option(
    "--events", is_flag=True, help="Write events, and what is known about them, instead of a recording."
)
@_QEMU
@share_option
@report_option
@lang_option
@click.pass_context
def run(
    ctx: click.Context,
    /,
    guest: Path,
    output: Path,
    request: str | None,
    path: str,
    cut: str,
    limit: int,
    control_flow: bool,
    fail: bool,
    events: bool,
    qemu: str | None,
    share: bool,
    with_report: bool,
    lang: str,
) -> None:
    """Trace one request of a guest, from its snapshot."""
    from sysdock import to_disk
    from sysdock.itrace import tracing
    from sysdock.itrace.building import read_built
    from sysdock.itrace.qemu import find_qemu
    from sysdock.own_folder import refuse_existing, refuse_replaceable
    from sysdock.scratch import scratch_folder

    refuse_existing(output)
    refuse_replaceable(output)
    built = read_built(guest)
    asked = tracing.Asked(request or built.request, path, limit, control_flow, cut_by_server=cut == "server")
    program = find_qemu(qemu)
    to_disk.make_folder(output.absolute().parent)
    with scratch_folder(output.absolute().parent) as name:
        folder = output if events else Path(name)
        status = tracing.run(guest, folder, asked, qemu=program, say=_say)
        if wrong := status.get("answer"):
            _say(f"{asked.request}: {wrong}")
        if not events:
            convert_events(ctx, folder, {"output": output, "share": share}, with_report, lang)
    if wrong and fail:
        ctx.exit(1)


def convert_events(
    ctx: click.Context, folder: Path, options: Mapping[str, Any], with_report: bool, lang: str
) -> None:
    """Makes a recording of the event file in a folder, and answers; ends with the native program's status."""
    from sysdock.recording.native import native_words

    words = native_words("itrace convert", options, folder)
    record_and_answer(ctx, words, options["output"], with_report, lang)


def record_and_answer(
    ctx: click.Context, words: list[str], output: Path, with_report: bool, lang: str
) -> None:
    """Runs the native program, which makes a recording; shows its answer, and ends with its status."""
    import signal

    from sysdock.cli.recording import answer, load_ahead, run_with_progress

    library = load_ahead()
    code = run_with_progress(words, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    if (output / "recording.json").exists():
        answer(output, library, sys.stdout, lang, with_report)
    if code:
        ctx.exit(code)


def _say(text: str) -> None:
    from sysdock.cli.output import remark

    remark(text)
