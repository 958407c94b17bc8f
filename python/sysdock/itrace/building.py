"""Makes a guest: its files, its kernel, and a snapshot in which its service answers and is warm.

A guest is a folder: guest.json (`Built`), kernel, initramfs, root (tree of the service), kallsyms, snapshot.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sysdock.errors import UserError
from sysdock.itrace import cpio, facts
from sysdock.itrace.files import find_init
from sysdock.itrace.kernel import Kernel, copy_modules
from sysdock.itrace.qemu import Guest, Machine, started
from sysdock.itrace.service import Service, make_tree

# Of the guest's own time, which its instructions make: about as many nanoseconds.
_READY_MS = 60_000
Say = Callable[[str], None]


@dataclass
class Built:
    """What is known of a guest, as guest.json has it."""

    qemu: str
    kernel: str
    memory_mb: int
    port: int
    request: str
    warm: int
    mitigations: str


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
    folder.mkdir(parents=True)
    try:
        say("files of the service")
        make_tree(service, folder / "root", cache)
        _make_first_memory(service, kernel, folder)
        shutil.copyfile(kernel.image, folder / "kernel")
        built = _boot(service, kernel, Machine(qemu, folder, memory_mb), warm, say)
        (folder / "guest.json").write_text(json.dumps(asdict(built), indent=1) + "\n")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return built


def read_built(folder: Path) -> Built:
    """What is known of a guest. UserError: it is none."""
    try:
        return Built(**json.loads((folder / "guest.json").read_text()))
    except (OSError, ValueError, TypeError):
        hint = "make one: sysdock itrace vm build"
        raise UserError("is no guest that sysdock built", hint, str(folder)) from None


def _make_first_memory(service: Service, kernel: Kernel, folder: Path) -> None:
    with TemporaryDirectory(prefix="sysdock-") as name:
        own = Path(name)
        # Among the files of the service, so that its functions have names in the trace.
        shutil.copy(find_init(), folder / "root" / "init")
        (folder / "root" / "init").chmod(0o755)
        copy_modules(kernel, own / ".sysdock" / "modules")
        (own / ".sysdock" / "service").write_text("".join(f"{word}\n" for word in service.command))
        with open(folder / "initramfs", "wb") as out:
            cpio.pack([folder / "root", own], out)


def _boot(service: Service, kernel: Kernel, machine: Machine, warm: int, say: Say) -> Built:
    say("booting")
    with TemporaryDirectory(prefix="sysdock-") as name, started(machine, Path(name)) as guest:
        guest.ask("cont")
        _wait_for_service(guest, service)
        say(f"warming up: {warm} requests")
        answered = guest.do(f"warm {warm} {service.port} {service.request}").decode(errors="replace")
        if warm and " 200 " not in f"{answered} ":
            hint = f"`request` in {service.place} is what it is warmed up with\n{guest.last_of_console()}"
            raise UserError(f"{service.request}: answered `{answered.partition(' ')[2]}`", hint)
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
        )


def _wait_for_service(guest: Guest, service: Service) -> None:
    said = guest.do(f"wait {service.port} {_READY_MS}").decode()
    if said == "ready":
        return
    what = f"ended with status {said.split()[-1]}" if said.startswith("ended") else "does not listen"
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
    """As the shell that qemu calls takes it."""
    return "'" + str(path.absolute()).replace("'", "'\\''") + "'"
