"""What threads of the imaginary system can do: each method is one system call, its effect, and its truth.

Effects take place when the call begins. With `hold=True` the call is left open, for `System.end`; else it returns at once.
"""

from __future__ import annotations

from collections.abc import Callable

from generated_system import Call, File, OpenFile, Process, System, Thread
from strace_values import (
    Changed,
    Data,
    Entries,
    Environment,
    Fd,
    Flags,
    Here,
    Pair,
    PathName,
    Pid,
    Pointer,
    Stat,
    Strings,
    Vector,
    Word,
)  # fmt: skip

BUFFER = Pointer(0x7F43_9647_A570)
THREAD_FLAGS = "CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM|CLONE_SETTLS"
NASTY = b') = 3 <0.1> "q\\ <unfinished ...>\n= ? <... read resumed>\x00\xff7 -> [pid 9] /* */ \x1b[0m'

NEW = "O_RDWR|O_CREAT|O_TRUNC"


class Actor:
    """A thread that makes calls."""

    def __init__(self, system: System, thread: Thread) -> None:
        self.system, self.thread = system, thread

    @property
    def process(self) -> Process:
        return self.thread.process

    def data(self, length: int) -> bytes:
        """Bytes that look like the end of a line, a half, a mark, ..."""
        begin = self.system.random.randrange(len(NASTY))
        return (NASTY * (length // len(NASTY) + 2))[begin : begin + length]

    def fd(self, number: int) -> Fd:
        """A descriptor as the tracer shows it now."""
        file = self.process.fds.get(number)
        return Fd(number, file.name, file.detail, file.deleted) if file else Fd(number)

    def path(self, name: bytes) -> bytes:
        """A path made absolute."""
        return name if name.startswith(b"/") else self.process.cwd.rstrip(b"/") + b"/" + name

    def do(self, name: str, args: list, at_entry: int | None = None, hold: bool = False, **more) -> Call:
        """Any call."""
        call = self.system.begin_call(self.thread, name, args, at_entry, **more)
        return call if hold else self.system.end(call)

    def on_fd(self, name: str, number: int, args: list, at_entry: int | None = None, **more) -> Call:
        """A call whose first argument is a descriptor."""
        file = self.process.fds.get(number)
        if file:
            more = {"path": file.name, "kind": file.kind, **more}
        return self.do(name, [("fd", self.fd(number)), *args], at_entry, **more)

    # Files

    def open(
        self,
        name: bytes,
        flags: str = "O_RDONLY",
        error: str | None = None,
        hold: bool = False,
        folder: int | None = None,
    ) -> Call:
        """openat; relative to `folder`, if given, else to the working directory."""
        path, cloexec, start = self.path(name), "O_CLOEXEC" in flags, Here(self.process.cwd)
        if folder is not None:
            path, start = self.process.fds[folder].name + b"/" + name, self.fd(folder)
        args = [("dfd", start), ("filename", PathName(name)), ("flags", Flags(flags))]
        if "O_CREAT" in flags:
            args.append(("mode", Word("0644")))
        kind = "directory" if "O_DIRECTORY" in flags else "file"
        if error:
            return self.do("openat", args, hold=hold, error=error, path=path, kind="unknown", returns="fd")
        file = self.system.file(path)
        if "O_TRUNC" in flags:
            file.size = 0
        opened = OpenFile(path, kind, file, append="O_APPEND" in flags)
        number = self.process.place(opened, 3, cloexec)
        return self.do(
            "openat", args, hold=hold, result=number, made=self.fd(number), returns="fd", path=path, kind=kind
        )

    def close(self, number: int, hold: bool = False) -> Call:
        file, shown = self.process.fds.pop(number, None), self.fd(number)
        self.process.on_exec.discard(number)
        if file is None:
            return self.do("close", [("fd", shown)], hold=hold, error="EBADF")
        shown = Fd(number, file.name, file.detail, file.deleted)
        return self.do("close", [("fd", shown)], hold=hold, result=0, path=file.name, kind=file.kind)

    def transfer(self, name: str, number: int, data: bytes, asked: int, at: int | None, **more) -> Call:
        """The common part of reads and writes: offset, position, size."""
        file = self.process.fds[number]
        reading = name in ("read", "pread64", "readv")
        offset = at
        if at is None:
            offset = file.file.size if file.append and not reading else file.position
        args: list = [("buf", Data(data)), ("count", Word(str(asked)))]
        if name.endswith("v"):
            half = len(data) // 2
            rest = asked - half
            args = [("iov", Vector(((data[:half], half), (data[half:], rest)))), ("iovcnt", Word("2"))]
        if at is not None:
            args.append(("offset", Word(str(at))))
        call = self.on_fd(
            name, number, args, 1 if reading else None, result=len(data), moved=len(data),
            offset=offset if file.kind == "file" else None, **{**more, "hold": True},
        )  # fmt: skip
        if at is None:
            self._share(file, call)
            file.position = (offset or 0) + len(data)
        if not reading:
            file.file.size = max(file.file.size, (offset or 0) + len(data))
        return call if more.get("hold") else self.system.end(call)

    def _share(self, file: OpenFile, call: Call) -> None:
        """Two transfers at one position at the same time: which came first is not in the log."""
        for other in (*file.busy, call) if file.busy and file.kind == "file" else ():
            other.uncertain = True
        file.busy.append(call)

    def read(
        self, number: int, asked: int, hold: bool = False, at: int | None = None, name: str = "read"
    ) -> Call:
        file = self.process.fds[number]
        begin = file.position if at is None else at
        length = min(asked, max(0, file.file.size - begin)) if file.kind == "file" else asked
        return self.transfer(name, number, self.data(length), asked, at, hold=hold)

    def write(
        self, number: int, length: int, hold: bool = False, at: int | None = None, name: str = "write", **more
    ) -> Call:
        return self.transfer(name, number, self.data(length), length, at, hold=hold, **more)

    def fail(self, name: str, number: int, error: str, mark: str = "") -> Call:
        """A read or write that fails."""
        buffer = BUFFER if name == "read" else Data(self.data(10))
        args = [("buf", buffer), ("count", Word("10"))]
        return self.on_fd(name, number, args, 1 if name == "read" else None, error=error, mark=mark)

    def seek(self, number: int, offset: int, whence: str = "SEEK_SET") -> Call:
        file = self.process.fds[number]
        base = {"SEEK_SET": 0, "SEEK_CUR": file.position, "SEEK_END": file.file.size}[whence]
        file.position = base + offset
        args = [("offset", Word(str(offset))), ("whence", Flags(whence))]
        return self.on_fd("lseek", number, args, result=file.position)

    def fstat(self, number: int) -> Call:
        mode = "S_IFDIR|0755" if self.process.fds[number].kind == "directory" else "S_IFREG|0644"
        args = [("statbuf", Stat(mode, self.process.fds[number].file.size))]
        return self.on_fd("fstat", number, args, 1, result=0)

    def truncate(self, number: int, size: int) -> Call:
        self.process.fds[number].file.size = size
        return self.on_fd("ftruncate", number, [("length", Word(str(size)))], result=0)

    def stat(self, name: bytes, error: str | None = None) -> Call:
        path = self.path(name)
        stat = BUFFER if error else Stat("S_IFREG|0644", self.system.file(path).size)
        args = [
            ("dfd", Here(self.process.cwd)),
            ("filename", PathName(name)),
            ("statbuf", stat),
            ("flag", Word("0")),
        ]
        result = None if error else 0
        kind = "unknown" if error else "file"
        return self.do("newfstatat", args, 2, result=result, error=error, path=path, kind=kind)

    def unlink(self, name: bytes) -> Call:
        path = self.path(name)
        for thread in self.system.threads:
            for file in thread.process.fds.values():
                file.deleted |= file.name == path
        self.system.files.pop(path, None)
        return self.do("unlink", [("pathname", PathName(name))], result=0, path=path, kind="file")

    def rename(self, old: bytes, new: bytes) -> Call:
        """Renames a file that is not open."""
        self.system.files[self.path(new)] = self.system.files.pop(self.path(old), File())
        return self.do("rename", [("oldname", PathName(old)), ("newname", PathName(new))], result=0)

    def chdir(self, name: bytes) -> Call:
        self.process.cwd = self.path(name)
        return self.do("chdir", [("filename", PathName(name))], result=0)

    def list(self, number: int, *names: bytes) -> Call:
        args = [("dirent", Entries(names)), ("count", Word("32768"))]
        return self.on_fd("getdents64", number, args, 1, result=24 * len(names))

    def map(self, number: int, length: int) -> Call:
        file = self.process.fds[number]
        args = [
            ("addr", Word("NULL")), ("length", Word(str(length))), ("prot", Flags("PROT_READ")),
            ("flags", Flags("MAP_PRIVATE")), ("fd", self.fd(number)), ("offset", Word("0")),
        ]  # fmt: skip
        return self.do("mmap", args, result=0x7F43_9600_0000, returns="hex", path=file.name, kind=file.kind)

    def copy(self, name: str, source: int, target: int, length: int, at: int | None = None) -> Call:
        """sendfile or copy_file_range; `at` is the offset in the source, without it its position."""
        file, out = self.process.fds[source], self.process.fds[target]
        begin = file.position if at is None else at
        length = min(length, file.file.size - begin)
        if at is None:
            file.position += length
        offset: object = Word("NULL") if at is None else Changed(f"[{at}]", f"[{at + length}]")
        a, b = (self.fd(source), self.fd(target))
        if name == "sendfile":
            args = [("out_fd", b), ("in_fd", a), ("offset", offset), ("count", Word("65536"))]
        else:
            args = [("fd_in", a), ("off_in", offset), ("fd_out", b), ("off_out", Word("NULL")), ("len", Word("65536")), ("flags", Word("0"))]  # fmt: skip
        out.position += length
        out.file.size = max(out.file.size, out.position)
        late = {"at_entry": 3, "late_comma": True} if at is not None else {}
        return self.do(name, args, result=length, moved=length, path=file.name, kind=file.kind, **late)

    # Descriptors without files

    def dup(self, number: int, to: int | None = None, at_least: int | None = None) -> Call:
        file = self.process.fds[number]
        if to is not None:
            args, name = [("oldfd", self.fd(number)), ("newfd", self.fd(to))], "dup2"
            self.process.fds[to] = file
            self.process.on_exec.discard(to)
            made = to
        elif at_least is not None:
            made = self.process.place(file, at_least)
            args, name = (
                [("fd", self.fd(number)), ("cmd", Flags("F_DUPFD")), ("arg", Word(str(at_least)))],
                "fcntl",
            )
        else:
            made = self.process.place(file)
            args, name = [("fildes", self.fd(number))], "dup"
        return self.do(
            name, args, result=made, returns="fd", made=self.fd(made), path=file.name, kind=file.kind
        )

    def pipe(self) -> tuple[int, int]:
        name = b"pipe:[%d]" % self.system.number()
        ends = [self.process.place(OpenFile(name, "pipe"), 3, cloexec=True) for _ in range(2)]
        pair = Pair(self.fd(ends[0]), self.fd(ends[1]))
        self.do("pipe2", [("fildes", pair), ("flags", Flags("O_CLOEXEC"))], 0, result=0)
        return ends[0], ends[1]

    def socket(self) -> int:
        """A connected socket."""
        inode = self.system.number()
        file = OpenFile(b"socket:[%d]" % inode, "socket", detail=f"TCP:[{inode}]")
        number = self.process.place(file, 3)
        args = [
            ("family", Flags("AF_INET")),
            ("type", Flags("SOCK_STREAM")),
            ("protocol", Flags("IPPROTO_TCP")),
        ]
        self.do(
            "socket", args, result=number, returns="fd", made=self.fd(number), path=file.name, kind="socket"
        )
        address = Word('{sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}')
        self.on_fd("connect", number, [("uservaddr", address), ("addrlen", Word("16"))], result=0)
        file.detail = "TCP:[127.0.0.1:40000->127.0.0.1:80]"
        return number

    def send(self, number: int, length: int) -> Call:
        args = [("buf", Data(self.data(length))), ("len", Word(str(length))), ("flags", Word("0")), ("addr", Word("NULL")), ("addrlen", Word("0"))]  # fmt: skip
        return self.on_fd("sendto", number, args, result=length, moved=length)

    def receive(self, number: int, length: int, hold: bool = False) -> Call:
        args = [("buf", Data(self.data(length))), ("size", Word("4096")), ("flags", Word("0")), ("addr", Word("NULL")), ("addrlen", Word("NULL"))]  # fmt: skip
        return self.on_fd("recvfrom", number, args, 1, result=length, moved=length, hold=hold)

    # Processes

    def execve(self, program: bytes, *argv: bytes, hold: bool = False) -> Call:
        variables = (b"PATH=/bin", b"A=) = 3 <0.1>", b'B="')
        args = [("filename", PathName(program)), ("argv", Strings(argv)), ("envp", Environment(variables))]
        call = self.do("execve", args, hold=hold, result=0)
        for number in self.process.on_exec:
            self.process.fds.pop(number, None)
        self.process.on_exec = set()
        self.process.comm = program.rsplit(b"/", 1)[-1].decode()[:15]
        return call

    def spawn(self, how: str) -> tuple[Call, Actor]:
        """`thread` (clone3), `fork` or `vfork`: the open call and the child, which may run before the call returns."""
        old = self.process
        if how == "thread":
            child = self.system.thread(old)
            words = Changed(
                f"{{flags={THREAD_FLAGS}, child_tid=0x7f01, parent_tid=0x7f02, exit_signal=0, stack=0x7f00}}",
                f"{{parent_tid=[{child.tid}]}}",
            )
            args: list = [("cl_args", words), ("size", Word("88"))]
            call = self.do("clone3", args, 1, hold=True, result=child.tid, returns="pid", late_comma=True)
        else:
            new = Process(0, old, old.comm, old.cwd, dict(old.fds), set(old.on_exec))
            child = self.system.thread(new)
            more = {"hold": True, "result": child.tid, "returns": "pid"}
            call = self.do("vfork", [], **more) if how == "vfork" else self.fork(**more)
        call.made = Pid(child.tid, old.comm)
        self.system.note(self.thread, "attached", str(child.tid))
        return call, Actor(self.system, child)

    def fork(self, **more) -> Call:
        """fork, as the C library makes it."""
        flags = Flags("CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD")
        args = [("child_stack", Word("NULL")), ("flags", flags), ("child_tidptr", Word("0x7f4396e98e50"))]
        return self.do("clone", args, 2, late_comma=True, **more)

    def wait(self, child: Actor, status: str, hold: bool = False) -> Call:
        number = child.thread.tid
        args = [("upid", Pid(number, child.process.comm)), ("stat_addr", Word(f"[{{{status}}}]")), ("options", Word("0")), ("ru", Word("NULL"))]  # fmt: skip
        return self.do("wait4", args, 1, hold=hold, result=number)

    def leave(self, code: int = 0, group: bool = True) -> None:
        """exit_group or exit, after which the thread is gone."""
        name = "exit_group" if group else "exit"
        call = self.do(name, [("error_code", Word(str(code)))], unknown="?")
        call.result = None
        self.gone(f"exited with {code}")

    def gone(self, text: str) -> None:
        """The thread's last line."""
        self.thread.alive = False
        self.system.note(self.thread, "gone", f"+++ {text} +++")

    def signal(self, name: str, more: str = "si_code=SI_KERNEL") -> None:
        self.system.note(self.thread, "signal", f"--- {name} {{si_signo={name}, {more}}} ---")

    def child_signal(self, child: Actor, code: int = 0) -> None:
        """SIGCHLD, with the C comment that strace puts behind times."""
        self.signal("SIGCHLD", f"si_code=CLD_EXITED, si_pid={child.thread.tid}, si_uid=0, si_status={code}, si_utime=0, si_stime=2 /* 0.02 s */")  # fmt: skip


def overlapping(actors: list[Actor], begin: Callable[[Actor], Call]) -> None:
    """Each actor begins a call, and they return in another order."""
    system = actors[0].system
    calls = [begin(actor) for actor in system.random.sample(actors, len(actors))]
    for call in system.random.sample(calls, len(calls)):
        system.end(call, system.random.randrange(100_000))
