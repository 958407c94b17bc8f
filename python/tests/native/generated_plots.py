"""Plots: things that few logs hold, to be added to the story of generator.py one by one."""

from __future__ import annotations

from collections.abc import Callable

from generated_calls import NEW, Actor, overlapping
from generated_system import Call
from strace_values import Flags, Pid, Pointer, Word


def interrupted(actor: Actor, name: str, args: list, at_entry: int, code: str, **more) -> Call:
    """First part of a call that a signal interrupts, after half a second."""
    call = actor.do(name, args, at_entry, hold=True, restart=code, **more)
    actor.system.end(call, 500_000_000)
    actor.signal("SIGALRM")
    return call


def handler(actor: Actor, result: int | None, error: str | None = None) -> None:
    """A signal handler writes something and returns."""
    actor.write(2, 8)
    actor.do("rt_sigreturn", [("", Word("{mask=[]}"))], 1, result=result, error=error)


def restarted_read(main: Actor, with_handler: bool = False) -> None:
    """A read from a pipe, interrupted twice and restarted with the same arguments: one call of three parts."""
    reading, _ = main.pipe()
    file = main.process.fds[reading]
    parts: list[Call] = []
    for _ in range(2):
        args = [("fd", main.fd(reading)), ("buf", Pointer(0x7F43)), ("count", Word("10"))]
        part = interrupted(main, "read", args, 1, "ERESTARTSYS", path=file.name, kind="pipe")
        part.first = parts[0] if parts else None
        parts.append(part)
        if with_handler:
            handler(main, 0)
    last = main.read(reading, 10, hold=True)
    last.first = parts[0]
    main.system.end(last, 900_000)


def restart_block(main: Actor) -> None:
    """nanosleep goes on as restart_syscall."""
    args = [("rqtp", Word("{tv_sec=1, tv_nsec=0}")), ("rmtp", Word("{tv_sec=0, tv_nsec=5}"))]
    first = interrupted(main, "nanosleep", args, 1, "ERESTART_RESTARTBLOCK")
    word = Word("<... resuming interrupted nanosleep ...>")
    again = main.do("restart_syscall", [("", word)], hold=True, restart="ERESTART_RESTARTBLOCK", first=first)
    main.system.end(again, 1_000_000)
    main.signal("SIGCONT", "si_code=SI_USER, si_pid=1, si_uid=0")
    word = Word("<... resuming interrupted restart_syscall ...>")
    main.system.end(main.do("restart_syscall", [("", word)], hold=True, result=0, first=first), 300_000_000)


def not_restarted(main: Actor) -> None:
    """pause ends with the handler, which returns EINTR for it; fork is restarted always."""
    interrupted(main, "pause", [], 0, "ERESTARTNOHAND")
    handler(main, None, "EINTR")


def restarted_fork(main: Actor) -> None:
    """clone interrupted before it made a child, and made again."""
    first = main.fork(hold=True, restart="ERESTARTNOINTR")
    main.system.end(first, 500_000_000)
    main.signal("SIGALRM")
    handler(main, 56)
    call, child = main.spawn("fork")
    call.first = first
    main.system.end(call)
    child.leave()
    main.child_signal(child)


def restarted_in_halves(main: Actor) -> None:
    """Other threads print while a read waits, is interrupted, and waits again."""
    call, child = main.spawn("thread")
    main.system.end(call)
    reading, writing = main.pipe()
    args = [("fd", main.fd(reading)), ("buf", Pointer(0x7F43)), ("count", Word("10"))]
    first = main.do("read", args, 1, hold=True, restart="ERESTARTSYS", path=main.process.fds[reading].name, kind="pipe")  # fmt: skip
    child.write(1, 3)
    main.system.end(first, 700_000)
    child.write(1, 4)
    main.signal("SIGALRM")
    last = main.read(reading, 10, hold=True)
    last.first = first
    child.write(writing, 10)
    main.system.end(last)
    child.leave(group=False)


def slow_close(main: Actor) -> None:
    """A close in progress when another thread gets the number."""
    call, child = main.spawn("thread")
    main.system.end(call)
    old = main.open(b"/data/slow", NEW).result
    closing = main.close(old, hold=True)
    new = child.open(b"/data/quick", NEW).result
    child.write(new, 10)
    main.system.end(closing)
    child.write(new, 20)
    child.leave(group=False)


def shared_position(main: Actor) -> None:
    """Two threads read at one position at the same time: their offsets are uncertain, those after it are not."""
    call, child = main.spawn("thread")
    main.system.end(call)
    number = main.open(b"/data/both", NEW).result
    main.write(number, 1000)
    main.seek(number, 0)
    overlapping([main, child], lambda actor: actor.read(number, 100, hold=True))
    main.read(number, 50)
    child.leave(group=False)


def early_child(main: Actor) -> None:
    """The child's first lines stand before its parent's clone has returned."""
    file = main.open(b"/data/early", NEW).result
    for how in ("fork", "thread"):
        call, child = main.spawn(how)
        child.write(file, 10)
        main.system.end(call)
        child.write(file, 20)
        child.leave(group=how == "fork")


def killed(main: Actor) -> None:
    """SIGKILL in the middle of a read: strace 6 prints `read(3,  <unfinished ...>) = ?`."""
    call, child = main.spawn("fork")
    main.system.end(call)
    reading, _ = child.pipe()
    blocked = child.do("read", [("fd", child.fd(reading)), ("buf", Word("")), ("count", Word(""))], 1, hold=True, unknown="?", path=b"pipe", kind="pipe")  # fmt: skip
    main.do("kill", [("pid", Pid(child.thread.tid, "demo")), ("sig", Flags("SIGKILL"))], result=0)
    main.system.end(blocked)
    child.gone("killed by SIGKILL")
    main.child_signal(child)


def killed_at_once(main: Actor) -> None:
    """Nothing is printed between the entry and the death: both stand on one line."""
    call, child = main.spawn("fork")
    main.system.end(call)
    reading, _ = child.pipe()
    blocked = child.do("read", [("fd", child.fd(reading)), ("buf", Word("")), ("count", Word(""))], 1, hold=True, unknown="?", path=b"pipe", kind="pipe")  # fmt: skip
    main.system.end(blocked, 3_000_000)
    child.gone("killed by SIGKILL")


def detached(main: Actor) -> None:
    """The tracer lets go of the program in the middle of a call."""
    reading, _ = main.pipe()
    main.do("read", [("fd", main.fd(reading)), ("buf", Word("")), ("count", Word(""))], 1, hold=True, unknown="never", path=b"pipe", kind="pipe")  # fmt: skip
    main.thread.alive = False


def unavailable(main: Actor) -> None:
    """The thread was killed between the return of a call and the tracer's look at it."""
    call, child = main.spawn("fork")
    main.system.end(call)
    child.do("getppid", [], unknown="unavailable")
    child.gone("killed by SIGKILL (core dumped)")


def superseded(main: Actor) -> None:
    """A second thread calls execve: it goes on under the first one's id, and the first one's call ends with `= ?`."""
    main.open(b"/data/closed by exec", NEW + "|O_CLOEXEC")
    call, child = main.spawn("thread")
    main.system.end(call)
    reading, _ = main.pipe()
    blocked = main.do("read", [("fd", main.fd(reading)), ("buf", Word("")), ("count", Word(""))], 1, hold=True, unknown="?", path=b"pipe", kind="pipe")  # fmt: skip
    executing = child.execve(b"/bin/new program", b"new", hold=True)
    main.system.end(blocked)
    main.system.note(main.thread, "superseded", f"+++ superseded by execve in pid {child.thread.tid} +++")
    child.thread.alive = False
    main.system.end(executing)
    executing.entered_by, executing.thread = child.thread, main.thread
    file = main.open(b"/data/after exec", NEW).result
    main.write(file, 33)


PLOTS: dict[str, Callable[[Actor], None]] = {
    "restart": restarted_read,
    "restart-handler": lambda main: restarted_read(main, with_handler=True),
    "restart-block": restart_block,
    "not-restarted": not_restarted,
    "restart-fork": restarted_fork,
    "restart-halves": restarted_in_halves,
    "slow-close": slow_close,
    "shared-position": shared_position,
    "early-child": early_child,
    "killed": killed,
    "killed-at-once": killed_at_once,
    "detached": detached,
    "unavailable": unavailable,
    "superseded": superseded,
}
