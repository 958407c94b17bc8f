"""Runs of which tests know all that happened: how they are built and recorded.

Whatever a test compares lies in the folder of its scene afterwards: the recording, and what the program, the kernel or fio said of
themselves. So it may have been recorded on another machine, at the same path (tools/vmtest does that in guests with other kernels).
Needs only Python and the recorder.

Usage: scenes.py NATIVE FOLDER      records all scenes with the kernel recorder, each in the folder of its name, where it was built before
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from recorders import Recorder

PROGRAMS = Path(__file__).resolve().parents[3] / "testdata" / "programs"
PAGE = 4096
MIB = 1 << 20
# What became of a scene that was recorded by the main program: empty if all went well.
OUTCOME = "outcome"
SKIPPED = "skipped: "


class CannotBeMadeError(Exception):
    """This machine lacks what a scene needs; says what."""


def check(done: subprocess.CompletedProcess, printed: str | None = None) -> None:
    """A recorder must have had nothing to say."""
    if (done.returncode, done.stderr) != (0, "") or printed not in (None, done.stdout):
        raise AssertionError(f"exit status {done.returncode}: {done.stdout}{done.stderr}")


# Every call on files

# Standard input stands there when the program starts.
INPUT_BYTES, INPUT_AT = 1_000_000, 100


def every_file_call(recorder: Recorder, folder: Path) -> None:
    """The program that takes notes of its calls; its second file system is the one in memory."""
    (folder / "files").mkdir()
    (folder / "input").write_bytes(bytes(INPUT_BYTES))
    if not os.access("/dev/shm", os.W_OK):
        raise CannotBeMadeError("/dev/shm cannot be written")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as shared, open(folder / "input", "rb") as standard:
        os.lseek(standard.fileno(), INPUT_AT, os.SEEK_SET)
        words = [folder / "notes", folder / "files", shared, folder / "input", str(INPUT_AT)]
        # Otherwise which threads share an arena, and so how often one grows, depends on which is faster.
        one_arena = {**os.environ, "MALLOC_ARENA_MAX": "1"}
        program = folder / "programs" / "every_file_call"
        check(
            recorder.record(folder / "rec", program, *words, stdin=standard, env=one_arena),
            printed="",
        )
        assert os.lseek(standard.fileno(), 0, os.SEEK_CUR) == INPUT_AT + 60
    (folder / "shared").write_text(shared)


# Page faults

# Every page of these is touched, in some order, with nothing in the page cache before.
TOUCHED = (
    *("random", "shared_writes", "reads_then_writes", "private_writes"),
    *("deleted", "threads", "child", "call"),
)
WAYS = (*TOUCHED, "sequence", "heap", "shared_memory")


def mapped_pages(recorder: Recorder, folder: Path) -> None:
    """The program that touches mapped files in all ways, and says what getrusage counted."""
    (folder / "files").mkdir()
    done = recorder.record(folder / "rec", folder / "programs" / "mapped_pages", folder / "files", *WAYS)
    check(done)
    (folder / "books").write_text(done.stdout)


# The page cache

# No multiple of a page, nor of what is read ahead at once.
SIZE = 10 * MIB + 5 * PAGE + 100
CACHE_SCRIPT = """
cat whole > /dev/null
cat whole > /dev/null
dd if=start of=/dev/null bs=64k count=1
cat sparse parted > /dev/null
dd if=direct of=/dev/null bs=1M iflag=direct
dd if=/dev/zero of=synced bs=1M count=10 conv=fsync
dd if=/dev/zero of=written_direct bs=1M count=3 oflag=direct
dd if=/dev/zero of=later bs=1M count=10
dd if=/dev/zero of=renamed bs=1M count=2
mv renamed new_name
cat mapped > copy
sync
"""


def resident(file: Path) -> int:
    """Bytes of a file that are in the page cache, by mincore."""
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as memory:
        pages = -(-len(memory) // PAGE)
        there = (ctypes.c_ubyte * pages)()
        start = ctypes.c_char.from_buffer(memory)
        libc = ctypes.CDLL(None, use_errno=True)
        outcome = libc.mincore(ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(len(memory)), there)
        del start
        assert outcome == 0
        return PAGE * sum(page & 1 for page in there)


def make_cold(file: Path, size: int = SIZE) -> None:
    """A file of which nothing is in memory."""
    file.write_bytes(os.urandom(size))
    drop(file)


def drop(file: Path) -> None:
    """Takes a file out of the page cache."""
    with file.open("r+b") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if resident(file):
        raise CannotBeMadeError("files stay in memory here, as on tmpfs")


def page_cache(recorder: Recorder, folder: Path) -> None:
    """Files that are read and written in ways that the page cache serves differently."""
    files = folder / "files"
    files.mkdir()
    if os.major(files.stat().st_dev) == 0:
        raise CannotBeMadeError("temporary files lie on no block device here")
    for name in ("whole", "start", "direct", "mapped"):
        make_cold(files / name, 8 * MIB if name == "direct" else SIZE)
    with (files / "sparse").open("wb") as sparse:
        for page in range(0, 64, 2):
            sparse.seek(page * PAGE)
            sparse.write(os.urandom(PAGE))
    drop(files / "sparse")
    # A hole between pages that are neighbours on the disk: one request reads both sides of it.
    make_cold(files / "parted", 32 * PAGE)
    insert = ["fallocate", "--insert-range", "--offset", str(16 * PAGE), "--length", str(4 * PAGE)]
    if subprocess.run([*insert, files / "parted"], capture_output=True, check=False).returncode == 0:
        drop(files / "parted")
    # What somebody else wrote: `sync` of the script makes the kernel write that too.
    (files / "of_others").write_bytes(os.urandom(MIB))
    done = recorder.record(folder / "rec", "sh", "-e", "-c", CACHE_SCRIPT, cwd=files)
    assert done.returncode == 0, done.stderr
    (folder / "resident").write_text(str(resident(files / "start")))


# Stacks


def call_sites(recorder: Recorder, folder: Path) -> None:
    """The program each of whose writes goes to a place that tells the line it comes from."""
    (folder / "files").mkdir()
    words = [folder / "programs" / "call_sites", folder / "files", folder / "programs" / "libsites.so"]
    check(recorder.record(folder / "rec", *words, recorder_options=("--stacks",)))


def python_sites(recorder: Recorder, folder: Path) -> None:
    """The program that notes the functions of Python on its stack at each of its writes."""
    words = [Path(sys.executable).resolve(), folder / "programs" / "python_sites.py", folder]
    check(recorder.record(folder / "rec", *words, recorder_options=("--stacks",)))


# Asynchronous operations: 1,024 of 4 KiB, by fio


def fio(recorder: Recorder, folder: Path, *options: str) -> None:
    """Record fio on a file of 4 MiB."""
    program = shutil.which("fio")
    if not program:
        raise CannotBeMadeError("no fio: tools/setup dev")
    (folder / "data").write_bytes(bytes(4 * MIB))
    words = [program, "--name=x", "--bs=4k", "--size=4m", f"--filename={folder}/data", "--output=/dev/null"]
    done = recorder.record(folder / "rec", *words, *options, cwd=folder)
    assert done.returncode == 0, done.stderr


def io_uring(thread: int) -> Callable[[Recorder, Path], None]:
    """With a thread of the kernel that takes them (`sqthread_poll`) there is no call for each at all."""
    options = ["--rw=randread", "--ioengine=io_uring", "--iodepth=16", f"--sqthread_poll={thread}"]
    return lambda recorder, folder: fio(recorder, folder, *options)


def libaio(depth: int, direct: int) -> Callable[[Recorder, Path], None]:
    """One after the other, or several at once; through the page cache, or past it."""
    options = ["--rw=randwrite", "--ioengine=libaio", f"--iodepth={depth}", f"--direct={direct}"]
    return lambda recorder, folder: fio(recorder, folder, *options, "--iodepth_batch=8")


# Requests to block devices

IMAGE_BYTES, RAW_BYTES = 64 * MIB, 16 * MIB
# From include/uapi/linux/loop.h.
LOOP_CONFIGURE, LOOP_CLR_FD, LOOP_CTL_GET_FREE = 0x4C0A, 0x4C01, 0x4C82


@contextmanager
def loop_device(file: Path) -> Iterator[str]:
    """The name of a device that has its bytes in a file."""
    with open("/dev/loop-control", "rb") as control, file.open("r+b") as opened:
        for _ in range(20):
            name = f"loop{fcntl.ioctl(control, LOOP_CTL_GET_FREE)}"
            device = os.open(f"/dev/{name}", os.O_RDWR)
            try:
                # struct loop_config: file, size of a block, struct loop_info64, reserved.
                fcntl.ioctl(device, LOOP_CONFIGURE, struct.pack("II296x", opened.fileno(), 0))
                break
            except OSError:  # somebody else was faster
                os.close(device)
        else:
            raise CannotBeMadeError("no loop device is free")
        try:
            yield name
        finally:
            fcntl.ioctl(device, LOOP_CLR_FD)
            os.close(device)


@contextmanager
def devices(folder: Path) -> Iterator[tuple[str, str]]:
    """A device that has its bytes in a file, and the one with the file system where that lies, mounted at `files`."""
    mount = folder / "files"
    mount.mkdir()
    try:
        with loop_device(folder / "programs" / "image") as below:
            subprocess.run(["mount", "-t", "ext4", "-o", "noatime", f"/dev/{below}", mount], check=True)
            try:
                (mount / "raw").write_bytes(os.urandom(RAW_BYTES))
                os.sync()
                with loop_device(mount / "raw") as raw:
                    yield raw, below
            finally:
                subprocess.run(["umount", mount], check=True)
    except (PermissionError, FileNotFoundError) as error:
        raise CannotBeMadeError(f"no loop devices can be made here: {error}") from error


def counted(name: str) -> list[int]:
    """What the kernel counts of a device (Documentation/block/stat.rst)."""
    return [int(word) for word in Path(f"/sys/block/{name}/stat").read_text().split()]


# With the scheduler, for what waits for the disk.
BLOCK = ("--what", "io,page_io,sched,block")


def block_requests(recorder: Recorder, folder: Path) -> None:
    """The program that makes requests of known places, and what the kernel counted of the devices meanwhile."""
    with devices(folder) as names:
        before = [counted(name) for name in names]
        words = [sys.executable, folder / "programs" / "device_requests.py", names[0], folder / "files"]
        done = recorder.record(folder / "rec", *words, recorder_options=BLOCK)
        after = [counted(name) for name in names]
    check(done, printed=done.stdout)
    said = {"devices": names, "before": before, "after": after, "said": json.loads(done.stdout)}
    (folder / "said.json").write_text(json.dumps(said))


def block_requests_of_all(recorder: Recorder, folder: Path) -> None:
    """The same program, while all requests of the system are recorded."""
    with devices(folder) as names:
        command = [recorder.native, "record", *recorder.options, "-o", folder / "rec", *BLOCK, "--all"]
        recording = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        wait_until_recorded(folder / "rec" / "spool")
        before = [counted(name) for name in names]
        program = [sys.executable, folder / "programs" / "device_requests.py", names[0], folder / "files"]
        printed = subprocess.run(program, capture_output=True, text=True, check=True).stdout
        os.sync()
        after = [counted(name) for name in names]
        recording.send_signal(signal.SIGINT)
        _, error = recording.communicate(timeout=600)
    assert recording.returncode in (0, 130), error
    said = {"devices": names, "before": before, "after": after, "said": json.loads(printed)}
    (folder / "said.json").write_text(json.dumps(said))


def wait_until_recorded(spool: Path) -> None:
    """Until events come in."""
    for _ in range(1000):
        if spool.exists() and spool.stat().st_size > MIB // 4:
            return
        time.sleep(0.02)
    raise AssertionError("nothing is recorded")


# What the kernel counts of processes

# Children that only fork; an exec would make the kernel itself read.
CHILDREN = """
import os
for n in range(1, 6):
    if os.fork() == 0:
        data = open('source', 'rb').read(n * 50_000)
        with open(f'target{n}', 'wb') as out: out.write(data + data)
        sum(range(3_000_000)); print(sum(os.times()[:2]), flush=True); os._exit(0)
    os.wait()
"""


def io_counters(recorder: Recorder, folder: Path) -> None:
    """The program that reads /proc/self/io before and behind reads and writes in every form."""
    (folder / "files").mkdir()
    done = recorder.record(folder / "rec", folder / "programs" / "io_counters", folder / "files")
    check(done)
    (folder / "counted").write_text(done.stdout)


# On machines whose kernel runs no BPF programs for process 1, some ten of a hundred recordings miss a switch.
MOST_TRIES = 10


def record_every_switch(
    recorder: Recorder, folder: Path, *command: str | Path
) -> subprocess.CompletedProcess:
    """Record a command into `folder`/rec, again where the recording says that the kernel left out switches."""
    for _ in range(MOST_TRIES):
        shutil.rmtree(folder / "rec", ignore_errors=True)
        done = recorder.record(folder / "rec", *command)
        check(done)
        [capture] = json.loads((folder / "rec" / "recording.json").read_text())["captures"]
        if "switch_missed" not in capture["issues"]:
            return done
    message = f"in {MOST_TRIES} recordings the kernel left out switches"
    raise CannotBeMadeError(message)


def run_states(recorder: Recorder, folder: Path) -> None:
    """The program whose threads wait for each other, and say how often they left their CPU."""
    done = record_every_switch(recorder, folder, folder / "programs" / "run_states")
    (folder / "said").write_text(done.stdout)


PROBED_CALLS = 200


def probes(recorder: Recorder, folder: Path) -> None:
    """The program that serves requests, whose functions and USDT probe are named."""
    program = folder / "programs" / "probes"
    words = (
        *("--request", f"u:{program}:serve(number=i32,name=str,depth=i16)"),
        *("--request", f"u:{program}:take(id=i64) -> u:{program}:give(id=i64)"),
        *("--probe", f"usdt:{program}:test:done(number=i32,result=i64,name=str)"),
        *("--probe", "u:libc.so.6:usleep(microseconds=u32)", "--probe-stacks"),
    )
    done = recorder.record(folder / "rec", program, str(PROBED_CALLS), recorder_options=words)
    check(done)
    (folder / "said").write_text(done.stdout)


SERVED_REQUESTS = 200


def served_requests(recorder: Recorder, folder: Path) -> None:
    """The program that sends requests to itself over a connection."""
    words = (sys.executable, folder / "programs" / "request_server.py", str(SERVED_REQUESTS))
    done = recorder.record(folder / "rec", *words)
    check(done)
    (folder / "said").write_text(done.stdout)


def interrupts(recorder: Recorder, folder: Path) -> None:
    """The program that counts what the kernel counts, while all of the machine is recorded, and as a command."""
    program = folder / "programs" / "interrupts"
    words = ["-o", folder / "rec", "-a", "--what", "io,irq"]
    everything = subprocess.Popen(
        [recorder.native, "record", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        wait_for_events(folder / "rec" / "spool")
        done = subprocess.run([program, folder], capture_output=True, text=True, check=True)
        (folder / "said").write_text(done.stdout)
    finally:
        everything.send_signal(signal.SIGINT)
        said = everything.communicate()
    if everything.returncode not in (0, 130):
        raise AssertionError(f"exit status {everything.returncode}: {said}")
    (folder / "files").mkdir()
    words = ("--what", "io,sched,irq")
    done = recorder.record(folder / "rec_of_command", program, folder / "files", recorder_options=words)
    check(done)
    (folder / "said_of_command").write_text(done.stdout)


def wait_for_events(spool: Path) -> None:
    """Wait until a recorder of the whole machine has written some, in addition to its notes at the start."""
    seen = -1
    for _ in range(600):
        size = spool.stat().st_size if spool.exists() else 0
        if 0 < seen < size:
            return
        seen = size
        time.sleep(0.6)
    raise AssertionError("the recorder has written nothing")


def hot_spots(recorder: Recorder, folder: Path) -> None:
    """The program that takes CPU time in known places, and says how much."""
    program = folder / "programs" / "hot_spots"
    done = recorder.record(folder / "rec", program, recorder_options=("--freq", "999"))
    check(done)
    (folder / "said").write_text(done.stdout)


def critical_paths(recorder: Recorder, folder: Path) -> None:
    """Eight ways to work together, with who the end depends on."""
    done = recorder.record(folder / "rec", folder / "programs" / "critical_paths")
    check(done)
    (folder / "said").write_text(done.stdout)


# Memory of the kernel

MEMORY = ("--what", "io,sched,memory")
GROUPS = Path("/sys/fs/cgroup/memory")
LIMIT_BYTES, READ_BYTES = 32 * MIB, 100 * MIB


def memory_sites(recorder: Recorder, folder: Path) -> None:
    """The program that has the kernel allocate known numbers of things."""
    words = [sys.executable, folder / "programs" / "memory_use.py"]
    done = recorder.record(folder / "rec", *words, recorder_options=MEMORY)
    check(done, printed=done.stdout)
    (folder / "said.json").write_text(done.stdout)


@contextmanager
def small_group() -> Iterator[Path]:
    """A memory control group with a limit; of version 1, as the recorder follows groups of version 2."""
    group = GROUPS / f"sysdock-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        raise CannotBeMadeError(f"no memory control groups of version 1 here: {error}") from error
    try:
        (group / "memory.limit_in_bytes").write_text(str(LIMIT_BYTES))
        yield group
    finally:
        group.rmdir()


def memory_limit(recorder: Recorder, folder: Path) -> None:
    """It reads a file in a control group with less memory."""
    with small_group() as group:
        make_cold(folder / "data", READ_BYTES)
        words = [sys.executable, folder / "programs" / "memory_use.py", group, folder / "data"]
        done = recorder.record(folder / "rec", *words, recorder_options=MEMORY)
    (folder / "data").unlink()
    check(done, printed=done.stdout)
    (folder / "said.json").write_text(done.stdout)


def memory_kill(recorder: Recorder, folder: Path) -> None:
    """It takes memory until the kernel kills it; the shell that starts it is not in the group."""
    if Path("/proc/swaps").read_text().count("\n") > 1:
        raise CannotBeMadeError("it would fill the swap space")
    with small_group() as group:
        words = [
            "sh",
            "-c",
            '"$@"; echo $?',
            "sh",
            sys.executable,
            folder / "programs" / "memory_use.py",
            group,
        ]
        done = recorder.record(folder / "rec", *words, recorder_options=MEMORY)
    (folder / "said").write_text(done.stdout)


HOLD_MS = 300
WAITERS = 4


def held_lock(kind: str) -> Callable[[Recorder, Path], None]:
    """A lock of the kernel that a thread holds for a known time, while others wait for it."""

    def record(recorder: Recorder, folder: Path) -> None:
        program = folder / "programs" / "lock_holder"
        words = [kind, folder / "file", str(WAITERS), str(HOLD_MS)]
        done = recorder.record(folder / "rec", program, *words, recorder_options=("--what", "io,sched,locks"))
        if done.returncode == 3 and "userfaultfd" in done.stderr:
            raise CannotBeMadeError("this kernel has no userfaultfd")
        check(done)
        (folder / "said").write_text(done.stdout)

    return record


# How often each worker of a storm does its work: a second or less.
STORMS = {"mappings": 2000, "forks": 1000, "renames": 2000}


def lock_storm(name: str) -> Callable[[Recorder, Path], None]:
    """Processes or threads that fight for a lock of the kernel."""

    def record(recorder: Recorder, folder: Path) -> None:
        program = folder / "programs" / "lock_storms"
        (folder / "files").mkdir()
        words = [program, name, folder / "files", str(STORMS[name])]
        check(recorder.record(folder / "rec", *words, recorder_options=("--what", "io,sched,locks")))

    return record


def children(recorder: Recorder, folder: Path) -> None:
    """Children of known work, which say how much CPU time they took."""
    (folder / "source").write_bytes(bytes(300_000))
    done = recorder.record(folder / "rec", sys.executable, "-c", CHILDREN, cwd=folder)
    check(done)
    (folder / "cpu_s").write_text(done.stdout)


# Namespaces

# A thread that is not the first makes a child, and becomes another program. All say their numbers.
OWN_NUMBERS = """
import os, threading
def work():
    null = os.open("/dev/null", os.O_WRONLY)
    for _ in range(5):
        os.write(null, bytes(1111))
    print(threading.get_native_id(), flush=True)
    child = os.fork()
    if not child:
        for _ in range(6):
            os.write(null, bytes(2222))
        os._exit(3)
    os.waitpid(child, 0)
    print(child, flush=True)
    os.execv("/bin/sh", ["sh", "-c", "echo $$; exit 7"])
print(os.getpid(), flush=True)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


def pid_namespace(depth: int) -> Callable[[Recorder, Path], None]:
    """A program that says the numbers of its threads and processes, in a PID namespace so far below this one."""

    def recorded(recorder: Recorder, folder: Path) -> None:
        command = recorder.command(
            folder / "rec", sys.executable, "-S", "-c", OWN_NUMBERS, options=("--stacks=all",)
        )
        below = ["unshare", "--fork", "--pid", "--mount-proc"] * depth
        done = subprocess.run([*below, *command], capture_output=True, text=True, timeout=600)
        if "Operation not permitted" in done.stderr:
            raise CannotBeMadeError(f"no namespace can be made here: {done.stderr.strip()}")
        assert (done.returncode, done.stderr) == (7, ""), done.stderr
        (folder / "numbers").write_text(done.stdout)

    return recorded


# Rights

NOBODY = 65534
# Which capabilities a recorder has.
RIGHTS = {"both": "+bpf,+perfmon", "bpf": "+bpf", "perfmon": "+perfmon", "none": "-all"}


def copy_sql(folder: Path | str) -> str:
    """SQL for the reads of `data` and the writes of `copy` in a folder: path, call, how many, bytes."""
    return (
        "SELECT path, call, count(*), sum(transferred_bytes) FROM calls JOIN paths USING (path_id) "
        f"WHERE path IN ('{folder}/data', '{folder}/copy') AND transferred_bytes > 0 GROUP BY ALL ORDER BY call"
    )


def as_nobody(native: Path, folder: Path, rights: str, *words: Path | str) -> subprocess.CompletedProcess:
    """Record as a user without any rights but these, in a folder that everybody may write."""
    if os.getuid() != 0 or not shutil.which("setpriv"):
        raise CannotBeMadeError("needs root and setpriv, to give up all but some capabilities")
    executable = folder / "sysdock-native"  # the checkout may be where only root can go
    shutil.copy(native, executable)
    # No new ones by sudo or the like; ambient, because the program's file has none.
    keep = [f"--inh-caps={RIGHTS[rights]}", f"--ambient-caps={RIGHTS[rights]}"]
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *keep]
    command = [*user, executable, "record", "--with", "kernel", "-o", folder / "rec", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=600)


def capabilities(recorder: Recorder, folder: Path) -> None:
    """Recorders with some rights, and what those without enough say."""
    said = {}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        os.chmod(made, 0o777)
        for rights in RIGHTS:
            (Path(made) / "data").write_bytes(b"x" * 5000)
            words = ["dd", "if=data", "of=copy", "bs=1000", "status=none"]
            done = as_nobody(recorder.native, Path(made), rights, "--", *words)
            said[rights] = [done.returncode, done.stderr, (Path(made) / "rec").exists()]
            if rights == "both" and said[rights][2]:
                shutil.move(Path(made) / "rec", folder / "rec")
        said["folder"] = made
    said["perf_event_paranoid"] = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    (folder / "said.json").write_text(json.dumps(said))


def fallback(recorder: Recorder, folder: Path) -> None:
    """Without the rights for the kernel recorder, and without a wish for one."""
    if os.getuid() != 0:
        raise CannotBeMadeError("needs root, to give it up")
    lack = ["setpriv", "--bounding-set=-bpf,-sys_admin", "--inh-caps=-bpf,-sys_admin"]
    command = [*lack, recorder.native, "record", "-o", folder / "rec", "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (folder / "said").write_text(done.stderr)


SCENES: dict[str, Callable[[Recorder, Path], None]] = {
    "every_file_call": every_file_call,
    "mapped_pages": mapped_pages,
    "page_cache": page_cache,
    "call_sites_pie": call_sites,
    "call_sites_no_pie": call_sites,
    "python_sites": python_sites,
    **{f"io_uring_{thread}": io_uring(thread) for thread in (0, 1)},
    **{f"libaio_{depth}_{direct}": libaio(depth, direct) for depth in (1, 16) for direct in (0, 1)},
    "io_counters": io_counters,
    "run_states": run_states,
    "probes": probes,
    "served_requests": served_requests,
    "interrupts": interrupts,
    "hot_spots": hot_spots,
    "memory_sites": memory_sites,
    "memory_limit": memory_limit,
    "memory_kill": memory_kill,
    **{f"held_{kind}": held_lock(kind) for kind in ("pipe", "file")},
    **{f"storm_{name}": lock_storm(name) for name in STORMS},
    "critical_paths": critical_paths,
    "children": children,
    "block_requests": block_requests,
    "block_requests_of_all": block_requests_of_all,
    **{f"pid_namespace_{depth}": pid_namespace(depth) for depth in (1, 2)},
    "capabilities": capabilities,
    "fallback": fallback,
}

STRICT = ["-Wall", "-Wextra", "-Werror", "-pthread"]
# gcc of distributions: no frame pointers.
NO_FRAME_POINTERS = ["-O2", "-g", "-fomit-frame-pointer", "-pthread"]
LIBRARY = ["libsites.so", *NO_FRAME_POINTERS, "-shared", "-fPIC", PROGRAMS / "call_sites_library.c"]
# What is compiled for a scene: name, and the compiler's options.
COMPILED: dict[str, list[list[str | Path]]] = {
    "every_file_call": [["every_file_call", "-g", "-O1", *STRICT, PROGRAMS / "every_file_call.c"]],
    "mapped_pages": [["mapped_pages", "-O1", *STRICT, PROGRAMS / "mapped_pages.c"]],
    "probes": [["probes", "-O1", "-g", *STRICT, PROGRAMS / "probes.c"]],
    "run_states": [["run_states", "-O1", *STRICT, PROGRAMS / "run_states.c"]],
    "interrupts": [["interrupts", "-O1", *STRICT, PROGRAMS / "interrupts.c"]],
    "hot_spots": [["hot_spots", "-O1", "-g", *STRICT, PROGRAMS / "hot_spots.c"]],
    **{
        f"held_{kind}": [["lock_holder", "-O1", *STRICT, PROGRAMS / "lock_holder.c"]]
        for kind in ("pipe", "file")
    },
    **{f"storm_{name}": [["lock_storms", "-O1", *STRICT, PROGRAMS / "lock_storms.c"]] for name in STORMS},
    "critical_paths": [["critical_paths", "-O1", *STRICT, PROGRAMS / "critical_paths.c"]],
    "jitted": [["jitted", "-O1", "-g", *STRICT, PROGRAMS / "jitted.c"]],
    "io_counters": [["io_counters", "-O1", "-w", "-pthread", PROGRAMS / "io_counters.c"]],
    "call_sites_pie": [
        ["call_sites", *NO_FRAME_POINTERS, "-fPIE", "-pie", PROGRAMS / "call_sites.c"],
        LIBRARY,
    ],
    "call_sites_no_pie": [["call_sites", *NO_FRAME_POINTERS, "-no-pie", PROGRAMS / "call_sites.c"], LIBRARY],
}


def build(name: str, folder: Path) -> None:
    """Compile what a scene runs, or lay it ready."""
    (folder / "programs").mkdir(parents=True)
    for out, *options in COMPILED.get(name, []):
        subprocess.run(["gcc", *options, "-o", folder / "programs" / out], check=True)
    if name == "python_sites":
        shutil.copy(PROGRAMS / "python_sites.py", folder / "programs")
    if name == "served_requests":
        shutil.copy(PROGRAMS / "request_server.py", folder / "programs")
    if name.startswith("memory"):
        shutil.copy(PROGRAMS / "memory_use.py", folder / "programs")
    if name.startswith("block_requests"):
        shutil.copy(PROGRAMS / "device_requests.py", folder / "programs")
        make_image(folder / "programs" / "image")


def make_image(image: Path) -> None:
    """A file system in a file."""
    with image.open("wb") as opened:
        opened.truncate(IMAGE_BYTES)
    mkfs = shutil.which("mkfs.ext4", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    options = ["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"]
    subprocess.run([mkfs, *options, image], check=True)


def main() -> None:
    """Record all scenes. One that fails leaves the others."""
    native, root = map(Path, sys.argv[1:])
    for name, record in SCENES.items():
        started, outcome = time.monotonic(), ""
        try:
            record(Recorder(native, "kernel"), root / name)
        except CannotBeMadeError as error:
            outcome = f"{SKIPPED}{error}"
        except Exception:
            outcome = traceback.format_exc()
        (root / name / OUTCOME).write_text(outcome)
        print(f"{name}: {outcome or 'recorded'} in {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
