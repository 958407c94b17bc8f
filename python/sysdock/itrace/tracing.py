"""Traces one request of a guest: loads its snapshot with the plugin, and has the request made.

The result is a folder: trace.sdit (events), facts.json (what else is known), maps/PID (of
processes that live), kallsyms, console.log.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sysdock.errors import UserError, did_you_mean
from sysdock.itrace import facts
from sysdock.itrace.building import Built, Say, complaint, quoted, read_built
from sysdock.itrace.files import find_plugin
from sysdock.itrace.qemu import CPU, PATIENCE_S, Guest, Machine, started, version_of
from sysdock.own_folder import create
from sysdock.scratch import scratch_folder

LOOPBACK, VIRTIO = "loopback", "virtio-net"
_FIRST, _LAST = 1, 2


@dataclass
class Asked:
    """The requested trace: see the options of `vm run`."""

    request: str
    path: str = LOOPBACK
    limit: int = 1_000_000_000
    control_flow: bool = False
    count_only: bool = False
    repeat: int = 1
    cut_by_server: bool = False


def run(folder: Path, out: Path, asked: Asked, *, qemu: Path, say: Say) -> dict[str, Any]:
    """Traces the request into a folder; returns what the plugin says of it. UserError: there is no trace."""
    built = read_built(folder)
    version = version_of(qemu)
    if version != built.qemu:
        hint = f"build the guest with that one, or name qemu {built.qemu} with --qemu"
        raise UserError(f"was built with qemu {built.qemu}, and this is {version}", hint, str(folder))
    _refuse(asked, built)
    if not out.is_dir() or not any(out.iterdir()):
        create(out).close()
    machine = Machine(qemu, folder, built.memory_mb, has_disk=built.has_disk)
    with scratch_folder() as name:
        work = Path(name)
        host_port = _free_port() if asked.path == VIRTIO else 0
        forward = f",hostfwd=tcp:127.0.0.1:{host_port}-:{built.port}" if host_port else ""
        more = ["-plugin", _plugin_words(out, asked, built, work)]
        more += ["-incoming", "defer"]
        with started(machine, work, more, _command(asked, built), forward) as guest:
            _resume(guest, folder)
            say(f"tracing {asked.request}")
            if host_port:
                _request_from_here(guest, asked, host_port)
            status = _wait_for_end(guest, out, is_command=asked.request in built.requests)
            _write_facts(guest, folder, out, asked, built, status.get("tasks", []))
        shutil.copyfile(work / "console.log", out / "console.log")
    return status


def _refuse(asked: Asked, built: Built) -> None:
    """UserError: the guest has no such request."""
    is_command = asked.request in built.requests
    if not is_command and (not built.port or not asked.request.startswith("/")):
        otherwise = f"requests of this guest: {', '.join([*built.requests, *['/PATH'] * bool(built.port)])}"
        hint = did_you_mean(asked.request, built.requests, otherwise)
        raise UserError(f"no such request: {asked.request}", hint)
    if is_command and asked.path == VIRTIO:
        hint = "without --path: its client runs in the guest"
        raise UserError(f"{asked.request} is a command, which involves no network card", hint)


def _plugin_words(out: Path, asked: Asked, built: Built, work: Path) -> str:
    header = {"qemu": built.qemu, "cpu": CPU, "kernel": built.kernel, "mitigations": built.mitigations}
    (work / "header.json").write_text(json.dumps(header | {"request": asked.request, "path": asked.path}))
    trace = out / "trace.sdit"
    arguments = [f"out={trace.absolute()}", f"header={work / 'header.json'}", f"limit={asked.limit}"]
    arguments += ["control-flow=on"] * asked.control_flow + ["count-only=on"] * asked.count_only
    if any("," in word for word in arguments):
        raise UserError("a path with a comma cannot be given to qemu", "choose another with -o", str(out))
    return ",".join([str(find_plugin()), *arguments])


def _resume(guest: Guest, folder: Path) -> None:
    # Not before this program is connected to the port, as it was at the snapshot: the guest would notice.
    guest.ask("migrate-incoming", uri=f"exec:cat {quoted(folder / 'snapshot')}")
    while guest.ask("query-status")["status"] == "inmigrate":
        time.sleep(0.005)
    if guest.ask("query-migrate").get("status") == "failed":
        raise UserError("qemu cannot load the snapshot", "rebuild the guest", str(folder))
    guest.ask("cont")


def _command(asked: Asked, built: Built) -> str:
    """The command that makes the guest work by itself."""
    if asked.request in built.requests:
        return f"run {_FIRST} {_LAST} {asked.repeat} {asked.request}"
    if asked.path == VIRTIO:
        return f"mark {_FIRST}"
    return f"request {_FIRST} {_LAST} {asked.repeat} {built.port} {asked.request}"


def _request_from_here(guest: Guest, asked: Asked, host_port: int) -> None:
    # The marker has been executed.
    guest.answer()
    try:
        with urllib.request.urlopen(
            f"http://127.0.0.1:{host_port}{asked.request}", timeout=PATIENCE_S
        ) as answer:
            answer.read()
    except OSError as error:
        raise UserError(f"{asked.request}: {error}", "the request to trace: --request") from None
    guest.order(f"mark {_LAST}")


def _wait_for_end(guest: Guest, out: Path, *, is_command: bool) -> dict[str, Any]:
    status = _status(out)
    while status.get("state") != "done":
        if not guest.is_running():
            raise guest.ended()
        time.sleep(0.005)
        status = _status(out)
    if "error" in status:
        raise UserError(
            f"the trace cannot be written: {status['error']}", "is there room on that disk?", str(out)
        )
    if status.get("reason") == "limit":
        hint = f"{status['instructions']:,} instructions are in {out / 'trace.sdit'}; --limit allows more"
        raise UserError("the request did not end within the limit", hint)
    answered = guest.answer().decode(errors="replace")
    if answered and (wrong := complaint(answered, is_command=is_command)):
        status["answer"] = wrong
    return status


def _status(out: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads((out / "trace.sdit.status").read_text())
    except (OSError, ValueError):
        # Not yet, or half of it: it is written over in place.
        return {}
    return content


def _write_facts(guest: Guest, folder: Path, out: Path, asked: Asked, built: Built, ran: list[str]) -> None:
    seen = facts.kernel_tasks(guest, ran)
    (out / "maps").mkdir(exist_ok=True)
    tasks: list[dict[str, Any]] = [{"address": seen.idle, "pid": 0, "tgid": 0, "comm": "swapper/0"}]
    for task in facts.tasks(guest):
        if task.pid not in seen.addresses:
            continue
        entry = {"address": seen.addresses[task.pid], "pid": task.pid, "tgid": task.tgid, "comm": task.comm}
        if task.maps:
            (out / "maps" / str(task.tgid)).write_text("".join(f"{line}\n" for line in task.maps))
        if (out / "maps" / str(task.tgid)).exists():
            entry["maps"] = f"maps/{task.tgid}"
        tasks.append(entry)
    for address, task in seen.ended:
        if address != seen.idle:
            tasks.append({"address": address, "pid": task.pid, "tgid": task.tgid, "comm": task.comm})
    shutil.copyfile(folder / "kallsyms", out / "kallsyms")
    request = {"id": 1, "name": asked.request, "from_marker": _FIRST, "to_marker": _LAST}
    content: dict[str, Any] = {"backend": "vm", "qemu": built.qemu, "cpu": CPU, "kernel": built.kernel}
    content |= {"mitigations": built.mitigations, "path": asked.path}
    content |= {"kallsyms": "kallsyms", "tasks": tasks}
    content |= {"cut_by_server": asked.cut_by_server}
    content |= {"root": os.fspath((folder / "root").absolute()), "requests": [request]}
    (out / "facts.json").write_text(json.dumps(content, indent=1) + "\n")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
