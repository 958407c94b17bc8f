"""A guest under qemu: its command line, its monitor, and the port of its first process."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sysdock.errors import UserError

CPU = "EPYC"
# Addresses are the same in each run, and a guest that panics ends qemu.
KERNEL_WORDS = "console=ttyS0 quiet nokaslr norandmaps randomize_kstack_offset=off panic=-1"
# Time without any output after which qemu counts as dead.
PATIENCE_S = 120.0
# Lines of a console.
_SHOWN = 15
_MORE = "--memory gives it more; `without` of the service leaves packages and folders out"
_ENDED = "see its console above, if there is one; more memory: --memory"


@dataclass
class Machine:
    """The configuration of a guest, equal for each start: a snapshot fits no other.

    keeps_disk: what the guest writes to its disk is there for the next start.
    """

    qemu: Path
    folder: Path
    memory_mb: int
    has_disk: bool = False
    keeps_disk: bool = False

    def command(self, sockets: Path, console: Path, asked: str = "none", forward: str = "") -> list[str]:
        """The command that starts it, stopped.

        asked: what the first process of the guest is to do once it holds. forward: added to its network. If
        somebody outside takes part (`forward`, a disk), the guest waits as long as its clock says; else it
        skips to its next timer whenever it has nothing to do, so only instructions determine its clock.
        """
        (sockets / "command").write_text(asked)
        sleep = "on" if forward or self.has_disk else "off"
        words: list[str | Path] = [
            "-M",
            "pc",
            "-cpu",
            CPU,
            "-smp",
            "1",
            "-m",
            str(self.memory_mb),
            "-accel",
            "tcg",
        ]
        words += ["-icount", f"shift=0,sleep={sleep}", "-nodefaults", "-display", "none", "-no-reboot", "-S"]
        words += ["-kernel", self.folder / "kernel", "-initrd", self.folder / "initramfs"]
        words += ["-append", KERNEL_WORDS, "-serial", f"file:{console}"]
        # The processor's random numbers, by which the kernel orders free memory, and the time of day.
        words += ["-seed", "1", "-rtc", "base=2026-01-01,clock=vm"]
        words += ["-fw_cfg", f"name=opt/sysdock/command,file={sockets / 'command'}"]
        words += ["-chardev", f"socket,id=port,path={sockets / 'port'},server=on,wait=off"]
        words += ["-device", "virtio-serial-pci", "-device", "virtserialport,chardev=port,nr=1"]
        words += ["-netdev", f"user,id=net,restrict=on{forward}"]
        words += ["-device", "virtio-net-pci,netdev=net,romfile="]
        words += self._disk() if self.has_disk else []
        words += ["-qmp", f"unix:{sockets / 'monitor'},server=on,wait=off"]
        words += ["-qmp", f"unix:{sockets / 'memory'},server=on,wait=off"]
        words += ["-L", self.qemu.parent.parent / "share" / "qemu", "-L", "/usr/share/seabios"]
        return [str(self.qemu), *map(str, words)]

    def _disk(self) -> list[str]:
        # A comma ends a value. Where the disk is not kept, all that is written goes to a temporary file.
        image = str(self.folder.absolute() / "disk").replace(",", ",,")
        drive = f"file={image},if=none,id=disk,format=raw,cache=unsafe"
        drive += "" if self.keeps_disk else ",snapshot=on"
        return ["-drive", drive, "-device", "virtio-blk-pci,drive=disk"]


def find_qemu(name: str | None) -> Path:
    """The program that runs guests. UserError: there is none."""
    found = shutil.which(name or "qemu-system-x86_64")
    if not found:
        hint = "apt-get install qemu-system-x86 (7.2 or newer), or name the program with --qemu"
        raise UserError(f"{name or 'qemu-system-x86_64'}: not found", hint)
    return Path(found).absolute()


def find_user_qemu(name: str | None) -> Path:
    """The program that runs programs of x86-64, with plugins. UserError: there is none."""
    hint = "apt-get install qemu-user (7.2, of Debian 12, has plugins), or name the program with --qemu"
    found = shutil.which(name or "qemu-x86_64")
    if not found:
        raise UserError(f"{name or 'qemu-x86_64'}: not found", hint)
    path = Path(found).absolute()
    try:
        done = subprocess.run([path, "-h"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(str(error.strerror), hint, str(path)) from None
    if "qemu-x86_64" not in done.stdout:
        raise UserError("is not qemu-user for x86-64", hint, str(path))
    if "-plugin" not in done.stdout:
        # Statically linked ones: Debian's from version 10 on, and qemu-user-static.
        raise UserError("this qemu-user was built without plugins", hint, str(path))
    return path


def version_of(qemu: Path) -> str:
    """As `7.2.22`. UserError: it does not say so."""
    try:
        done = subprocess.run([qemu, "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(str(error.strerror), "name a program of qemu with --qemu", str(qemu)) from None
    if not (version := re.search(r"version (\d+(?:\.\d+)+)", done.stdout)):
        raise UserError("does not report its version of qemu", "name another with --qemu", str(qemu))
    return version[1]


class Guest:
    """A guest that was started."""

    def __init__(
        self, process: subprocess.Popen[bytes], sockets: Path, console: Path, messages: Path
    ) -> None:
        self._process = process
        self._console = console
        self._messages = messages
        self.memory_socket = sockets / "memory"
        self._monitor = self._connect(sockets / "monitor")
        self._lines = self._monitor.makefile("rb")
        greeting = self._line()
        version = greeting["QMP"]["version"]["qemu"]
        self.qemu_version = f"{version['major']}.{version['minor']}.{version['micro']}"
        self.ask("qmp_capabilities")
        self._port = self._connect(sockets / "port")
        self._answers = self._port.makefile("rb")

    def ask(self, command: str, **arguments: Any) -> Any:
        """The answer of the monitor. UserError: it refuses, or qemu ended."""
        text = (
            json.dumps({"execute": command, "arguments": arguments})
            if arguments
            else json.dumps({"execute": command})
        )
        try:
            self._monitor.sendall(text.encode() + b"\n")
        except OSError:
            raise self.ended() from None
        while "event" in (line := self._line()):
            pass
        if "error" in line:
            raise UserError(f"qemu refuses {command}: {line['error'].get('desc')}", None)
        return line["return"]

    def order(self, command: str) -> None:
        """Has the guest's first process do something."""
        try:
            self._port.sendall(command.encode() + b"\n")
        except OSError:
            raise self.ended() from None

    def answer(self) -> bytes:
        """The answer of the guest."""
        return b"".join(iter(self._piece, b""))

    def do(self, command: str) -> bytes:
        """Sends a command and returns its answer."""
        self.order(command)
        return self.answer()

    def ended(self) -> UserError:
        """Why qemu is not there any more, with the last lines of the guest's console."""
        try:
            status = self._process.wait(2)
        except subprocess.TimeoutExpired:
            return UserError("qemu does not answer", "try again on a machine that is less busy")
        console = self.console()
        message = self._messages.read_text(errors="replace").strip()
        if "Initramfs unpacking failed" in console:
            return UserError("the files of the service do not fit into the guest's memory", _MORE)
        if panic := re.search(r"Kernel panic - (.*)", console):
            trace = _lines(console[panic.end() :].strip().splitlines()[:_SHOWN])
            message = f"the guest's kernel panicked: {panic[1].strip()}\n{trace}"
            return UserError(message, "is it out of memory? --memory gives it more")
        return UserError(
            f"qemu ended with status {status}:\n{_last(message or console)}",
            plugin_hint(message) or _ENDED,
        )

    def console(self) -> str:
        """All that the guest has written to its console."""
        return self._console.read_text(errors="replace") if self._console.exists() else ""

    def last_of_console(self) -> str:
        """The end of it."""
        return _last(self.console())

    def is_running(self) -> bool:
        """Whether qemu still runs."""
        return self._process.poll() is None

    def _piece(self) -> bytes:
        try:
            head = self._answers.readline()
            content = self._answers.read(int(head)) if head.strip() else None
        except (OSError, ValueError):
            content = None
        if content is None:
            raise self.ended()
        return content

    def _line(self) -> dict[str, Any]:
        try:
            line = self._lines.readline()
        except OSError:
            line = b""
        if not line:
            raise self.ended()
        content: dict[str, Any] = json.loads(line)
        return content

    def _connect(self, place: Path) -> socket.socket:
        for _ in range(int(PATIENCE_S / 0.01)):
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(str(place))
            except OSError:
                connection.close()
                if not self.is_running():
                    raise self.ended() from None
                time.sleep(0.01)
                continue
            connection.settimeout(PATIENCE_S)
            return connection
        raise self.ended()


def plugin_hint(message: str) -> str | None:
    """A hint for a plugin that qemu rejects."""
    if "requires API version" in message:
        return "this version of qemu is not supported: those from 7.2 to 8.2 and from 9.2 on are"
    if "plugin interface not enabled" in message or "-plugin: invalid option" in message:
        return "this qemu was built without plugins; that of Debian (qemu-system-x86) has them"
    if "invalid accelerator" in message:
        return "this qemu has KVM only, which no plugin sees; that of Debian (qemu-system-x86) has TCG"
    return None


def _last(text: str) -> str:
    return _lines(text.strip().splitlines()[-_SHOWN:])


def _lines(lines: list[str]) -> str:
    return "\n".join(f"  {line.rstrip()}" for line in lines)


@contextmanager
def started(
    machine: Machine, work: Path, more: Sequence[str] = (), asked: str = "none", forward: str = ""
) -> Iterator[Guest]:
    """A guest that runs as long as this context; `work` is for sockets and its output."""
    console, messages = work / "console.log", work / "qemu.log"
    for name in ("monitor", "memory", "port"):
        (work / name).unlink(missing_ok=True)
    command = [*machine.command(work, console, asked, forward), *more]
    with open(messages, "wb") as errors:
        process = start(command, errors)
        try:
            yield Guest(process, work, console, messages)
        finally:
            stop(process)


def start(command: list[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
    """Starts it in a session of its own: an interrupt from the terminal is for this program."""
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, start_new_session=True
    )


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ends qemu, first as it wants to be ended."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
