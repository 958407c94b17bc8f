"""Makes a guest: its files, its kernel, and a snapshot in which its service answers and is warm.

A guest is a folder: guest.json (`Built`), kernel, initramfs, root (tree of the service), kallsyms, snapshot;
disk, if the service has one: as it was when the snapshot was taken.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sysdock.errors import UserError
from sysdock.itrace import cpio, facts
from sysdock.itrace.disk import make_disk
from sysdock.itrace.files import find_init
from sysdock.itrace.kernel import Kernel, copy_modules
from sysdock.itrace.qemu import Guest, Machine, started
from sysdock.itrace.service import Service, make_tree
from sysdock.own_folder import create, set_mode
from sysdock.scratch import scratch_folder
from sysdock.to_disk import umask

# In the guest's own time, which advances by about a nanosecond per instruction.
_READY_MS = 60_000
# A server may listen before it answers: number of attempts of a command, each after 0.2 s of the guest's
# time.
_TRIES = 50
Say = Callable[[str], None]


@dataclass
class Built:
    """Facts about a guest, as in guest.json."""

    qemu: str
    kernel: str
    memory_mb: int
    port: int
    request: str
    warm: int
    mitigations: str
    # Names of the requests that are commands, and whether there is a disk.
    requests: list[str] = field(default_factory=list)
    has_disk: bool = False


def build(
    service: Service,
    kernel: Kernel,
    folder: Path,
    cache: Path,
    *,
    qemu: Path,
    memory_mb: int,
    warm: int,
    say: Say,
) -> Built:
    """Makes the guest in a new folder. UserError: it cannot be made; the folder is removed then."""
    create(folder, 0o777 & ~umask()).close()
    try:
        say("files of the service")
        make_tree(service, folder / "root", cache)
        _make_first_memory(service, kernel, folder)
        shutil.copyfile(kernel.image, folder / "kernel")
        if service.disk:
            make_disk(folder / "disk", folder / "root" / service.disk.lstrip("/"), service.disk_mb)
        machine = Machine(qemu, folder, memory_mb, has_disk=service.disk is not None, keeps_disk=True)
        built = _boot(service, kernel, machine, warm, say)
        (folder / "guest.json").write_text(json.dumps(asdict(built), indent=1) + "\n")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return built


def read_built(folder: Path) -> Built:
    """Facts about a guest. UserError: the folder is not one of a guest."""
    try:
        return Built(**json.loads((folder / "guest.json").read_text()))
    except (OSError, ValueError, TypeError):
        hint = "make one: sysdock itrace vm build"
        raise UserError("is not a guest built by sysdock", hint, str(folder)) from None


def _make_first_memory(service: Service, kernel: Kernel, folder: Path) -> None:
    with scratch_folder() as name:
        own = Path(name)
        # Among the files of the service, so that its functions have names in the trace.
        shutil.copyfile(find_init(), folder / "root" / "init")
        set_mode(folder / "root" / "init", 0o755)
        copy_modules(kernel, own / ".sysdock" / "modules", has_disk=service.disk is not None)
        _write_commands(service, own / ".sysdock")
        with open(folder / "initramfs", "wb") as out:
            cpio.pack([folder / "root", own], out)


def _write_commands(service: Service, folder: Path) -> None:
    """The commands that the guest's first process starts, one a line."""
    (folder / "service").write_text("".join(f"{word}\n" for word in service.command))
    for part in ("requests", "lines"):
        (folder / part).mkdir()
    for name, words in service.requests.items():
        (folder / "requests" / name).write_text("".join(f"{word}\n" for word in words))
    for name, line in service.lines.items():
        (folder / "lines" / name).write_text(f"{line}\n")
    if service.disk:
        (folder / "disk").write_text(service.disk)


def _boot(service: Service, kernel: Kernel, machine: Machine, warm: int, say: Say) -> Built:
    say("booting")
    with scratch_folder() as name, started(machine, Path(name)) as guest:
        guest.ask("cont")
        if service.port:
            _wait_for_service(guest, service)
        say(f"warming up: {warm} requests")
        if service.port and service.request not in service.requests:
            _warm(guest, service, warm)
        for each in service.requests:
            _warm_command(guest, service, each, warm)
        (machine.folder / "kallsyms").write_bytes(guest.do("get /proc/kallsyms"))
        mitigations = facts.mitigations(guest)
        guest.do("settle")
        guest.do("hold")
        say("writing the snapshot")
        save(guest, machine.folder / "snapshot")
        return Built(
            qemu=guest.qemu_version,
            kernel=kernel.release,
            memory_mb=machine.memory_mb,
            port=service.port,
            request=service.request,
            warm=warm,
            mitigations=mitigations,
            requests=list(service.requests),
            has_disk=machine.has_disk,
        )


def complaint(answered: str, *, is_command: bool) -> str | None:
    """The problem of an answer of the guest's client; None: there is none, as far as the answer shows.

    answered: a number, then the first line; the number is a status for a command, else one of bytes.
    """
    number, _, line = answered.partition(" ")
    if is_command and number != "0":
        what = "no answer in time" if number == "-1" else f"status {number}"
        return f"{what}: {line}" if line else what
    return f"answered `{line}`" if not is_command and " 200 " not in f"{line} " else None


def _warm(guest: Guest, service: Service, count: int) -> None:
    answered = guest.do(f"warm {count} {service.port} {service.request}").decode(errors="replace")
    if count and (wrong := complaint(answered, is_command=False)):
        hint = f"`request` in {service.place} is what it is warmed up with\n{guest.last_of_console()}"
        raise UserError(f"{service.request}: {wrong}", hint)


def _warm_command(guest: Guest, service: Service, name: str, count: int) -> None:
    for _ in range(_TRIES if count else 0):
        answered = guest.do(f"run 0 0 1 {name}").decode(errors="replace")
        if not (wrong := complaint(answered, is_command=True)):
            guest.do(f"run 0 0 {count} {name}")
            return
        if wrong.startswith("no answer"):
            break
        guest.do("settle")
    if count:
        hint = f"`requests` in {service.place}: {' '.join(service.requests[name])}\n{guest.last_of_console()}"
        raise UserError(f"{name}: {wrong}", hint)


def _wait_for_service(guest: Guest, service: Service) -> None:
    reply = guest.do(f"wait {service.port} {_READY_MS}").decode()
    if reply == "ready":
        return
    what = f"ended with status {reply.split()[-1]}" if reply.startswith("ended") else "does not listen"
    hint = f"its console is shown above; `command` and `port` in {service.place}"
    raise UserError(f"the service {what} (port {service.port}):\n{guest.last_of_console()}", hint)


def save(guest: Guest, file: Path) -> None:
    """Stops the guest and writes its state: as a migration, which needs no disk. UserError: that fails."""
    guest.ask("stop")
    guest.ask("migrate-set-parameters", **{"max-bandwidth": 1 << 40})
    guest.ask("migrate", uri=f"exec:cat > {quoted(file)}")
    state: dict[str, Any] = {}
    while (state := guest.ask("query-migrate")).get("status") != "completed":
        if state.get("status") in ("failed", "cancelled"):
            raise UserError("qemu could not write the snapshot", "is there room on that disk?", str(file))
        time.sleep(0.01)


def quoted(path: Path) -> str:
    """A path quoted for the shell that qemu calls."""
    return "'" + str(path.absolute()).replace("'", "'\\''") + "'"
