"""Makes, from a seed, the story of a small imaginary system. strace_text.py and truss_text.py print it.

`story` has in it all that every form of log must get right. generated_plots.py adds one thing each.
"""

from __future__ import annotations

from generated_calls import NEW, Actor, overlapping
from generated_plots import PLOTS
from generated_system import EPOCH, OpenFile, Process, System
from strace_values import Flags, PathName, Pid, Word

ODD_NAMES = [
    b"a b", b'q"uote', b") = 3", b"<0.1>", b" <unfinished ...>", b" resumed>", b"nl\nx", b"tab\t1", b"back\\slash",
    "日本é".encode(), b"\xff\xfe7", b"a->b", b"[x]", b"x, y", b"-dash", b"= ?", b"\x017\x7f", b"<... read resumed>", b"L" * 200,
    b"{x}", b"(deleted)", b"x /* c */ y", b"'", b" ) = -1 EIO (x) <0.1>", b"#1 [pid 7] ", b"\x1b[0m", b"%s %n",
]  # fmt: skip


def story(
    seed: int, plots: tuple[str, ...] = (), alone: bool = False, begin: int = EPOCH, copies: bool = True
) -> System:
    """The whole story; `alone` is one thread that makes no other, without `copies` there is no sendfile."""
    system = System(seed, begin)
    main = Actor(system, system.thread(Process(0, None, "sh")))
    tty = OpenFile(b"/dev/pts/0", "tty", detail="char 136:0")
    main.process.fds = {0: tty, 1: tty, 2: tty}
    opening(main)
    odd_files(main)
    positions(main, copies)
    descriptors(main)
    errors(main)
    if not alone:
        threads(main)
        children(main)
    for plot in plots:
        PLOTS[plot](main)
    if main.thread.alive:
        main.leave(3)
    return system


def opening(main: Actor) -> None:
    """How every program begins."""
    main.execve(b"/usr/bin/demo", b"demo", b"x y", b') = 3 "')
    main.do("brk", [("brk", Word("NULL"))], result=0x55D0_C0DE_0000, returns="hex")
    main.do("access", [("filename", PathName(b"/etc/ld.so.preload")), ("mode", Flags("R_OK"))], error="ENOENT", path=b"/etc/ld.so.preload", kind="file")  # fmt: skip
    library = main.open(b"/usr/lib/libc.so.6", "O_RDONLY|O_CLOEXEC").result
    main.system.file(b"/usr/lib/libc.so.6").size = 9000
    main.read(library, 832)
    main.fstat(library)
    main.map(library, 9000)
    main.close(library)
    main.chdir(b"/home/me")


def odd_files(main: Actor) -> None:
    """Files with names that look like other parts of a line."""
    for name in ODD_NAMES:
        if main.system.random.random() < 0.3:
            continue
        length = main.system.random.randrange(1, 90)
        number = main.open(name, NEW + main.system.random.choice(["", "|O_CLOEXEC"])).result
        main.write(number, length)
        main.write(number, 7, at=3, name="pwrite64")
        main.seek(number, 2)
        main.read(number, 50)
        main.fstat(number)
        main.close(number)
        main.stat(b"/home/me/" + name)
        if main.system.random.random() < 0.5:
            main.rename(name, name + b".new")
            main.unlink(name + b".new")
    main.open(b"missing) = 3 <0.1>", error="ENOENT")
    main.stat(b"/none\xff", error="ENOENT")


def positions(main: Actor, copies: bool) -> None:
    """Offsets: seeks, vectors, appending, copies, a file deleted while open."""
    data = main.open(b"/data/in", NEW).result
    main.write(data, 5000)
    main.write(data, 700, name="writev")
    main.seek(data, -200, "SEEK_CUR")
    main.read(data, 150, name="readv")
    main.read(data, 10, at=4000, name="pread64")
    main.read(data, 4096)
    main.read(data, 4096)
    main.seek(data, 0, "SEEK_END")
    log = main.open(b"/data/log", NEW + "|O_APPEND").result
    for length in (10, 0, 300):
        main.write(log, length)
    main.seek(log, 5)
    main.read(log, 20)
    main.write(log, 4)
    copy = main.open(b"/data/out", NEW).result
    main.seek(data, 100)
    if copies:
        main.copy("sendfile", data, copy, 1000)
        main.copy("sendfile", data, copy, 500, at=50)
        main.copy("copy_file_range", data, copy, 2000)
    main.write(copy, 11)
    main.read(data, 12)
    main.unlink(b"/data/out")
    main.write(copy, 13)
    for number in (copy, log, data):
        main.close(number)
    cut = main.open(b"/data/cut", NEW + "|O_APPEND").result
    main.write(cut, 100)
    main.truncate(cut, 40)
    main.write(cut, 5)
    main.close(cut)
    folder = main.open(b"/data", "O_RDONLY|O_DIRECTORY").result
    below = main.open(b"cut", folder=folder).result
    main.read(below, 100)
    main.close(below)
    main.list(folder, b".", b"..", b') = 3 "x')
    main.list(folder)
    main.close(folder)


def descriptors(main: Actor) -> None:
    """Pipes, sockets, duplicates, the terminal."""
    reading, writing = main.pipe()
    main.write(writing, 40)
    main.read(reading, 40)
    number = main.socket()
    main.send(number, 33)
    main.receive(number, 44)
    main.close(number)
    file = main.open(b"/data/dup", NEW).result
    second = main.dup(file).result
    main.write(second, 20)
    main.dup(second, to=40)
    main.close(file)
    main.write(40, 5)
    third = main.dup(40, at_least=100).result
    main.write(third, 6)
    main.seek(second, 1)
    main.read(40, 3)
    for open_fd in (second, 40, third, reading, writing):
        main.close(open_fd)
    main.write(1, 12)


def errors(main: Actor) -> None:
    """Failed calls, injected ones, delayed ones, calls without a name."""
    number = main.open(b"/data/errors", NEW).result
    main.fail("read", 77, "EBADF")
    main.fail("read", number, "EISDIR")
    main.fail("write", number, "EIO", mark="INJECTED")
    main.write(number, 9, mark="DELAYED")
    main.close(number)
    main.close(number)
    main.do(
        "syscall_0x1c5", [("", Word(f"{n:#x}" if n else "0")) for n in (3, 0, 0, 0, 0, 0)], error="ENOSYS"
    )
    main.do(
        "getpid", [], result=main.process.pid, returns="pid", made=Pid(main.process.pid, main.process.comm)
    )
    main.signal("SIGTSTP", "si_code=SI_KERNEL")
    main.system.note(main.thread, "signal", "--- stopped by SIGTSTP ---")
    main.signal("SIGCONT", "si_code=SI_USER, si_pid=1, si_uid=0")
    main.do("futex", [("uaddr", Word("0x7f01")), ("op", Flags("FUTEX_WAIT_PRIVATE")), ("val", Word("2")), ("utime", Word("NULL"))], error="EAGAIN")  # fmt: skip


def threads(main: Actor) -> None:
    """Threads share descriptors; their calls overlap."""
    actors = [main]
    for _ in range(3):
        call, child = main.spawn("thread")
        main.system.end(call)
        actors.append(child)
    files: dict[Actor, int] = {}
    for index, actor in enumerate(actors):
        files[actor] = main.open(b"/data/thread %d" % index, NEW).result  # opened by main, used by all
    for _ in range(6):
        overlapping(actors, lambda actor: actor.write(files[actor], 64, hold=True))
    for actor in actors:
        actor.seek(files[actor], 10)
    overlapping(actors, lambda actor: actor.read(files[actor], 30, hold=True))
    overlapping(actors, lambda actor: actor.open(b"own %d" % actor.thread.tid, NEW, hold=True))
    overlapping(actors, lambda actor: actor.close(files[actor], hold=True))
    reading, writing = main.pipe()
    waiting = actors[1].read(reading, 5, hold=True)
    actors[2].write(writing, 5)
    main.system.end(waiting, 250_000_000)
    for actor in actors[1:]:
        actor.leave(group=False)


def children(main: Actor) -> None:
    """fork and vfork: descriptors and positions are inherited, exec closes what is marked."""
    shared = main.open(b"/data/shared", NEW).result
    marked = main.open(b"/data/marked", NEW + "|O_CLOEXEC").result
    main.write(shared, 10)
    call, child = main.spawn("fork")
    main.system.end(call)
    waiting = main.wait(child, "WIFEXITED(s) && WEXITSTATUS(s) == 7", hold=True)
    child.write(shared, 20)
    child.write(marked, 3)
    child.execve(b'/bin/we i<r"d>x', b"cat", b"a b")
    child.fail("write", marked, "EBADF")
    child.write(shared, 5)
    child.leave(7)
    main.system.end(waiting)
    main.child_signal(child, 7)
    main.write(shared, 1)
    call, child = main.spawn("vfork")  # the parent waits for the exec
    child.close(shared)
    child.execve(b"/bin/true", b"true")
    main.system.end(call)
    child.write(1, 4)
    child.leave(0)
    main.child_signal(child)
    main.wait(child, "WIFEXITED(s) && WEXITSTATUS(s) == 0")
    main.write(shared, 2)
    main.close(marked)
