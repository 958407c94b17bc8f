"""State that the importer rebuilds: descriptors, paths, kinds, offsets, processes. Short logs, and the odd_files program for the whole."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[3] / "testdata"
Import = Callable[..., Path]
Query = Callable[[Path, str], list[tuple]]


def log(*events: str) -> str:
    """A log of `PID EVENT` lines, a millisecond apart."""
    lines = []
    for number, event in enumerate(events):
        pid, text = event.split(" ", 1)
        duration = "" if text.endswith(("...>", "+++", "---")) else " <0.000010>"
        lines.append(f"{pid:5} 1700000000.{number * 1000:06} {text}{duration}\n")
    return "".join(lines)


def paths_of(query: Query, recording: Path, call: str) -> list[str | None]:
    """Path of each call of this name, in order of time."""
    rows = query(
        recording,
        f"SELECT path FROM calls LEFT JOIN paths USING (path_id) WHERE call = '{call}' ORDER BY ts_ns",
    )
    return [path for (path,) in rows]


def offsets_of(query: Query, recording: Path) -> list[int | None]:
    """Offset of each read, write and copy, in order of time."""
    rows = query(
        recording, "SELECT offset_bytes FROM calls WHERE class IN ('read', 'write', 'copy') ORDER BY ts_ns"
    )
    return [offset for (offset,) in rows]


def test_exec_closes_what_is_marked_and_keeps_the_rest(import_log: Import, query: Query) -> None:
    recording = import_log(
        log(
            '1 execve("/bin/a", ["a"], 0x1 /* 1 var */) = 0',
            '1 openat(AT_FDCWD, "/marked", O_RDONLY|O_CLOEXEC) = 3',
            '1 openat(AT_FDCWD, "/kept", O_RDONLY) = 4',
            '1 openat(AT_FDCWD, "/set", O_RDONLY) = 5',
            "1 fcntl(5, F_SETFD, FD_CLOEXEC) = 0",
            "1 fcntl(3, F_DUPFD, 10) = 10",
            '1 execve("/bin/b", ["b"], 0x1 /* 1 var */) = 0',
            '1 read(3, "", 1) = 0',
            '1 read(4, "", 1) = 0',
            '1 read(5, "", 1) = 0',
            '1 read(10, "", 1) = 0',
        )
    )
    assert paths_of(query, recording, "read") == [None, "/kept", None, "/marked"]
    assert query(
        recording, "SELECT comm FROM calls LEFT JOIN commands USING (comm_id) WHERE call = 'read' LIMIT 1"
    ) == [("b",)]


def test_fork_copies_the_table_and_shares_the_position(import_log: Import, query: Query) -> None:
    recording = import_log(
        log(
            '1 openat(AT_FDCWD, "/f", O_RDONLY) = 3',
            "1 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 2",
            '2 read(3, "abcd", 4) = 4',
            '1 read(3, "ef", 4) = 2',
            "2 close(3) = 0",
            '1 read(3, "", 4) = 0',
        )
    )
    assert offsets_of(query, recording) == [0, 4, 6]
    assert paths_of(query, recording, "read") == ["/f", "/f", "/f"]
    assert query(recording, "SELECT pid, ppid, depth FROM processes ORDER BY pid") == [
        (1, None, 0),
        (2, 1, 1),
    ]


def test_threads_share_the_table_and_the_pid(import_log: Import, query: Query) -> None:
    recording = import_log(
        log(
            "1 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD, stack=0x1} => {parent_tid=[2]}, 88) = 2",
            '2 openat(AT_FDCWD, "/f", O_RDONLY) = 3',
            '1 read(3, "ab", 2) = 2',
        )
    )
    assert paths_of(query, recording, "read") == ["/f"]
    assert query(recording, "SELECT DISTINCT pid FROM calls JOIN processes USING (task_id)") == [(1,)]


def test_a_child_may_speak_before_its_parent_returns_from_fork(import_log: Import, query: Query) -> None:
    recording = import_log(
        log(
            '1 openat(AT_FDCWD, "/f", O_RDONLY) = 3',
            "1 vfork( <unfinished ...>",
            '2 read(3, "ab", 2) = 2',
            "2 exit_group(0) = ?",
            "2 +++ exited with 0 +++",
            "1 <... vfork resumed>) = 2",
            '1 read(3, "cd", 2) = 2',
        )
    )
    assert offsets_of(query, recording) == [0, 2]
    assert query(recording, "SELECT pid, ppid, exit_code FROM processes ORDER BY pid") == [
        (1, None, None),
        (2, 1, 0),
    ]


def test_a_wrong_guess_of_the_parent_is_mended(import_log: Import, query: Query, manifest: Callable) -> None:
    """Two threads of different processes are in fork when a child speaks first: the later fork is taken until its parent says otherwise."""
    recording = import_log(
        log(
            "1 clone(child_stack=NULL, flags=SIGCHLD) = 2",
            '1 openat(AT_FDCWD, "/of one", O_RDONLY) = 3',
            '2 openat(AT_FDCWD, "/of two", O_RDONLY) = 3',
            "1 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>",
            "2 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD, stack=0x1} <unfinished ...>",
            "5 getpid() = 5",
            "1 <... clone resumed>) = 5",
            "2 <... clone3 resumed> => {parent_tid=[6]}, 88) = 6",
            '5 read(3, "x", 1) = 1',
            '6 read(3, "x", 1) = 1',
        )
    )
    assert manifest(recording)["issues"] == {"parent_guessed": 1}
    rows = query(recording, "SELECT tid, pid, ppid FROM processes ORDER BY tid")
    assert rows == [(1, 1, None), (2, 2, 1), (5, 5, 1), (6, 2, 1)]
    assert paths_of(query, recording, "read") == ["/of one", "/of two"]


def test_a_child_that_ends_before_its_parent_returns_has_one_row_below_the_right_parent(
    import_log: Import, query: Query, manifest: Callable
) -> None:
    """Two processes are in fork, and the child of the first comes and goes before either returns; so do many others behind it."""
    others = (
        f"{tid} exit_group(0) = ?\n{tid} +++ exited with 0 +++\n1 <... clone resumed>) = {tid}"
        for tid in range(100, 200)
    )
    again = "\n1 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>\n"
    recording = import_log(
        log(
            "1 clone(child_stack=NULL, flags=SIGCHLD) = 2",
            "1 clone(child_stack=NULL, flags=SIGCHLD) = 3",
            "2 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>",
            "3 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>",
            "5 getpid() = 5",
            "5 exit_group(7) = ?",
            "5 +++ exited with 7 +++",
            "1 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>",
            *again.join(others).split("\n"),
            "3 <... clone resumed>) = 6",
            "2 <... clone resumed>) = 5",
        )
    )
    assert manifest(recording)["issues"] == {"parent_guessed": 101}
    rows = query(recording, "SELECT tid, ppid, exit_code FROM processes WHERE tid < 100 ORDER BY tid")
    assert rows == [(1, None, None), (2, 1, None), (3, 1, None), (5, 2, 7), (6, 3, None)]
    assert query(recording, "SELECT count(*), min(ppid), max(ppid) FROM processes WHERE tid >= 100") == [
        (100, 1, 1)
    ]


def test_a_number_closed_in_two_halves_may_be_used_again_between_them(
    import_log: Import, query: Query
) -> None:
    recording = import_log(
        log(
            "1 clone(child_stack=0x1, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 2",
            '1 openat(AT_FDCWD, "/old", O_RDONLY) = 3',
            "1 close(3 <unfinished ...>",
            '2 openat(AT_FDCWD, "/new", O_RDONLY) = 3',
            "1 <... close resumed>) = 0",
            '2 read(3, "ab", 2) = 2',
        )
    )
    assert paths_of(query, recording, "close") == ["/old"]
    assert paths_of(query, recording, "read") == ["/new"]


def test_a_read_in_two_halves_belongs_to_the_file_it_began_with(import_log: Import, query: Query) -> None:
    recording = import_log(
        log(
            "1 clone(child_stack=0x1, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 2",
            '1 openat(AT_FDCWD, "/old", O_RDONLY) = 3',
            "1 read(3,  <unfinished ...>",
            "2 close(3) = 0",
            '2 openat(AT_FDCWD, "/new", O_RDONLY) = 3',
            '1 <... read resumed>"ab", 2) = 2',
        )
    )
    assert paths_of(query, recording, "read") == ["/old"]
    assert query(recording, "SELECT (ts_ns // 1000000) % 1000, dur_ns FROM calls WHERE call = 'read'") == [
        (2, 10_000)
    ]


def test_relative_paths_follow_the_working_directory(import_log: Import, query: Query) -> None:
    recording = import_log(
        log(
            '1 openat(AT_FDCWD, "unknown", O_RDONLY) = 9',
            '1 chdir("/home") = 0',
            '1 openat(AT_FDCWD, "a/../b//c/.", O_RDONLY) = 3',
            '1 openat(AT_FDCWD, "/dir", O_RDONLY|O_DIRECTORY) = 4',
            '1 openat(4, "f", O_RDONLY) = 5',
            "1 fchdir(4) = 0",
            '1 open("g", O_RDONLY) = 6',
            '1 openat(AT_FDCWD</tagged>, "h", O_RDONLY) = 7',
            '1 openat(AT_FDCWD, "link", O_RDONLY) = 8</target>',
        )
    )
    assert paths_of(query, recording, "openat") == [
        "unknown",
        "/home/b/c",
        "/dir",
        "/dir/f",
        "/tagged/h",
        "/target",
    ]
    assert paths_of(query, recording, "open") == ["/dir/g"]
    assert query(recording, "SELECT path FROM paths WHERE kind = 'directory' ORDER BY 1") == [
        ("/dir",),
        ("/home",),
    ]


def test_positions_follow_reads_seeks_and_appends(import_log: Import, query: Query) -> None:
    recording = import_log(
        log(
            '1 openat(AT_FDCWD, "/f", O_RDWR|O_CREAT|O_TRUNC, 0666) = 3',
            '1 write(3, "x"..., 100) = 100',
            "1 lseek(3, 10, SEEK_SET) = 10",
            '1 read(3, "x"..., 50) = 50',
            '1 pread64(3, "x"..., 5, 7) = 5',
            '1 read(3, "x"..., 5) = 5',
            "1 read(3, 0x1, 5) = -1 EIO (Input/output error)",
            "1 lseek(3, 0, SEEK_END) = 100",
            '1 preadv2(3, [{iov_base="x", iov_len=3}], 1, -1, 0) = 0',
            '1 openat(AT_FDCWD, "/f", O_WRONLY|O_APPEND) = 4',
            '1 write(4, "y"..., 20) = 20',
            '1 write(4, "y"..., 20) = 20',
            '1 openat(AT_FDCWD, "/of unknown size", O_WRONLY|O_APPEND) = 5',
            '1 write(5, "y"..., 20) = 20',
            "1 fstat(5, {st_mode=S_IFREG|0644, st_size=1020, ...}) = 0",
            '1 write(5, "y"..., 20) = 20',
            "1 sendfile(4, 3, NULL, 30) = 30",
            "1 sendfile(4, 3, [5] => [35], 30) = 30",
        )
    )
    assert offsets_of(query, recording) == [0, 10, 7, 60, 65, 100, 100, 120, None, 1020, 100, 5]


def test_pipes_sockets_and_terminals_have_no_offset(import_log: Import, query: Query) -> None:
    recording = import_log(
        log(
            "1 pipe2([3, 4], O_CLOEXEC) = 0",
            '1 write(4, "x", 1) = 1',
            "1 socket(AF_INET, SOCK_STREAM, IPPROTO_TCP) = 5",
            '1 write(5, "x", 1) = 1',
            '1 write(6</dev/pts/0<char 136:0>>, "x", 1) = 1',
            '1 write(7</dev/sda<block 8:0>>, "x", 1) = 1',
            '1 memfd_create("m", MFD_CLOEXEC) = 8',
            '1 write(8, "x", 1) = 1',
            "1 eventfd2(0, EFD_CLOEXEC) = 9",
            '1 write(9, "\\1\\0\\0\\0\\0\\0\\0\\0", 8) = 8',
            '1 write(1, "x", 1) = 1',
        )
    )
    rows = query(
        recording,
        "SELECT kind, path, offset_bytes FROM calls JOIN paths USING (path_id) WHERE call = 'write' ORDER BY ts_ns",
    )
    assert rows == [
        ("pipe", "pipe", None),
        ("socket", "socket", None),
        ("device", "/dev/pts/0", None),
        ("device", "/dev/sda", None),
        ("anonymous", "/memfd:m", 0),
        ("anonymous", "anon_inode:eventfd", None),
        ("unknown", "<stdout>", None),
    ]


def test_descriptors_in_a_message_are_not_mistaken_for_older_ones(import_log: Import, query: Query) -> None:
    recording = import_log(
        log(
            '1 openat(AT_FDCWD, "/old", O_RDONLY) = 4',
            '1 recvmsg(3, {msg_iov=[{iov_base="x", iov_len=1}], msg_control=[{cmsg_len=20, cmsg_level=SOL_SOCKET,'
            " cmsg_type=SCM_RIGHTS, cmsg_data=[4]}]}, 0) = 1",
            '1 read(4, "", 1) = 0',
        )
    )
    assert paths_of(query, recording, "read") == [None]


def test_vectors_ask_for_the_sum_of_their_parts(import_log: Import, query: Query) -> None:
    recording = import_log(
        log(
            '1 writev(1, [{iov_base="iov_len=7", iov_len=9}, {iov_base="b", iov_len=3}], 2) = 10',
            '1 writev(1, [{iov_base="a", iov_len=9}, ...], 40) = 400',
        )
    )
    assert query(recording, "SELECT requested_bytes, transferred_bytes FROM calls ORDER BY ts_ns") == [
        (12, 10),
        (None, 400),
    ]


def test_calls_that_never_end_are_kept_without_a_result(
    import_log: Import, query: Query, manifest: Callable
) -> None:
    recording = import_log(
        log(
            '1 openat(AT_FDCWD, "/f", O_RDONLY) = 3',
            "1 clone(child_stack=NULL, flags=SIGCHLD) = 2",
            "2 read(3, <unfinished ...>",
            "2 +++ killed by SIGKILL +++",
            "1 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_KILLED, si_pid=2, si_uid=0, si_status=SIGKILL} ---",
            "1 read(3,  <unfinished ...>",
        )
    )
    rows = query(
        recording,
        "SELECT pid, path_id IS NOT NULL, coalesce(value, transferred_bytes), dur_ns FROM calls JOIN processes USING (task_id)"
        " WHERE call = 'read' ORDER BY pid DESC",
    )
    assert rows == [(2, True, None, None), (1, True, None, None)]
    assert manifest(recording)["issues"] == {"unfinished_at_end": 1}
    assert manifest(recording)["has_exits"] is False
    assert query(recording, "SELECT exit_signal FROM processes WHERE pid = 2") == [("SIGKILL",)]
    received = "SELECT signal, code, sender_pid, pid FROM signals JOIN processes USING (task_id)"
    assert query(recording, received) == [("SIGCHLD", "CLD_KILLED", 2, 1)]


def test_a_log_over_midnight_keeps_going_forward(import_log: Import, query: Query) -> None:
    recording = import_log(
        "1 23:59:59.999990 getpid() = 1 <0.000001>\n1 00:00:00.000010 getpid() = 1 <0.000001>\n"
    )
    ((gap,),) = query(recording, "SELECT max(ts_ns) - min(ts_ns) FROM calls")
    assert gap == 20_000


@pytest.mark.parametrize(
    "form", ["odd_files.ttt_T_y.strace", "odd_files.ttT.strace", "odd_files.yy_C.strace"]
)
def test_the_odd_files_program_is_read_exactly(form: str, import_log: Import, query: Query) -> None:
    """The totals of testdata/programs/odd_files.py, per file, in each form of log."""
    recording = import_log(DATA / "strace" / form)
    names = [
        "a b", 'q"uote', "c) = 3 <0.1>", "nl\nx", "日本語", "<script>alert(1)<script>", "bad\\xff\\xfe", "x, y", "tail-",
        "back\\slash", "<unfinished ...>",
    ]  # fmt: skip
    rows = query(
        recording,
        "SELECT path, class, count(*), sum(transferred_bytes)::BIGINT, list(offset_bytes ORDER BY ts_ns) FROM calls JOIN paths USING (path_id)"
        " WHERE class IN ('read', 'write') AND path LIKE '/tmp/odd/%' AND path NOT LIKE '%app' GROUP BY ALL ORDER BY path, class",
    )
    expected = []
    for name in names:
        expected.append((f"/tmp/odd/{name}", "read", 2, 11, [5, 2]))
        expected.append((f"/tmp/odd/{name}", "write", 2, 92, [0, 1]))
        expected.append((f"/tmp/odd/{name}.new", "write", 3, 14, [12, 16, 19]))
    assert sorted(rows) == sorted(expected)
    appended = query(
        recording,
        "SELECT offset_bytes, transferred_bytes FROM calls JOIN paths USING (path_id)"
        " WHERE call = 'write' AND path = '/tmp/odd/app' ORDER BY ts_ns",
    )
    assert appended == [(0, 10), (10, 10), (20, 5), (25, 6)]
    tree = query(
        recording,
        "SELECT tree_order, depth, exit_code, exit_signal, command FROM processes ORDER BY tree_order",
    )
    assert [row[1:4] for row in tree] == [(0, 0, None), (1, 3, None), (1, 0, None), (1, None, "SIGKILL")]
    assert tree[0][4] == "cat app"


def test_both_forms_of_a_set_tell_the_same(import_log: Import, query: Query) -> None:
    """One file per thread (-ff) gives one process tree; pids come from the file names."""
    files = sorted((DATA / "strace" / "shell.ff").iterdir())
    assert len(files) == 3
    recording = import_log(*files)
    rows = query(recording, "SELECT depth, exit_code, command FROM processes ORDER BY tree_order")
    assert rows == [(0, 3, rows[0][2]), (1, 0, "cat /etc/hostname"), (1, 0, "wc -c")]
    ordered = query(
        recording,
        "SELECT count(*) FROM (SELECT ts_ns < lag(ts_ns, 1, ts_ns) OVER () AS back FROM calls) WHERE back",
    )
    assert ordered == [(0,)]


def test_a_set_of_thousands_of_files_is_read_in_order(native: Path, tmp_path: Path, query: Query) -> None:
    """Memory for all files together is bounded, and more of them may be open than a shell allows by itself."""
    count = 2000
    tids = range(1001, 1001 + count)
    for tid in tids:
        lines = "".join(
            f"1700000000.{step:03}{tid % 1000:03} getpid() = {tid} <0.000001>\n" for step in range(20)
        )
        (tmp_path / f"log.{tid}").write_text(lines)
    logs = [tmp_path / f"log.{tid}" for tid in tids]
    # A process counts its peak from that of its parent, and the tests' own is large.
    measure = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [sys.executable, "-c", measure, native, "import", *logs, "-o", tmp_path / "rec"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert int(done.stdout) < 400_000  # kB
    counted = "SELECT count(*), count(DISTINCT tid) FROM calls JOIN processes USING (task_id)"
    assert query(tmp_path / "rec", counted) == [(20 * count, count)]
    back = "SELECT count(*) FROM (SELECT ts_ns < lag(ts_ns, 1, ts_ns) OVER () AS back FROM calls) WHERE back"
    assert query(tmp_path / "rec", back) == [(0,)]


def test_compressed_logs_and_standard_input_give_the_same(native: Path, tmp_path: Path, query: Query) -> None:
    log_file = DATA / "strace" / "shell.ttt_T_y.strace"
    for tool, suffix in [("gzip", "gz"), ("zstd", "zst")]:
        packed = subprocess.run([tool, "-c", log_file], capture_output=True, check=True).stdout
        (tmp_path / f"log.{suffix}").write_bytes(packed)
    results = []
    for name, source in [
        ("plain", log_file),
        ("gz", tmp_path / "log.gz"),
        ("zst", tmp_path / "log.zst"),
        ("pipe", "-"),
    ]:
        with open(log_file, "rb") as stdin:
            subprocess.run([native, "import", source, "-o", tmp_path / name], check=True, stdin=stdin)
        results.append(query(tmp_path / name, "SELECT * FROM calls ORDER BY ALL"))
    assert len(results[0]) == 464
    assert all(result == results[0] for result in results)


def test_paths_rebuilt_without_tags_are_those_of_the_tags(
    import_log: Import, query: Query, tmp_path: Path
) -> None:
    """The same log with and without its -y tags: the rebuilt path is the tagged one for 99.9 % of moved bytes and more."""
    tagged = DATA / "strace" / "threads.ttt_T_y.strace"
    untagged = tmp_path / "untagged"
    untagged.write_text(re.sub(r"(?<=[0-9D])<(?:/|pipe:|socket:)[^<>]*>", "", tagged.read_text()))
    sql = (
        "SELECT ts_ns, tid, transferred_bytes, path FROM calls JOIN processes USING (task_id) LEFT JOIN paths USING (path_id)"
        " WHERE transferred_bytes > 0 ORDER BY 1, 2"
    )
    with_tags, without = query(import_log(tagged), sql), query(import_log(untagged), sql)
    assert sum(row[2] for row in with_tags) > 6000
    # Symbolic links are not in an untagged log; the tagged one shows where each opened path led.
    links = dict(re.findall(r'openat\(AT_FDCWD<[^>]*>, "([^"]*)".* = \d+<([^>]*)>', tagged.read_text()))
    pairs = [
        (row[2], row[3], links.get(bare[3], bare[3])) for row, bare in zip(with_tags, without, strict=True)
    ]
    wrong = [pair for pair in pairs if pair[1] != pair[2]]
    assert sum(moved for moved, *_ in wrong) <= 0.001 * sum(moved for moved, *_ in pairs), wrong[:5]


def test_how_a_file_was_opened_is_kept(import_log: Import, query: Query) -> None:
    text = log(
        '1 openat(AT_FDCWD, "/a", O_WRONLY|O_CREAT|O_DSYNC, 0666) = 3',
        '1 openat2(AT_FDCWD, "/b", {flags=O_RDONLY|O_DIRECT, resolve=RESOLVE_BENEATH}, 24) = 4',
        '1 open("/c", O_RDWR) = -1 ENOENT (No such file or directory)',
        '1 creat("/d", 0600) = 5',
        '1 read(3, "x", 1) = 1',
    )
    rows = query(
        import_log(text), "SELECT path, open_flags FROM calls JOIN paths USING (path_id) ORDER BY ts_ns"
    )
    assert rows == [
        ("/a", "O_WRONLY|O_CREAT|O_DSYNC"),
        ("/b", "O_RDONLY|O_DIRECT"),
        ("/c", "O_RDWR"),
        ("/d", None),
        ("/a", None),
    ]


def test_threads_belong_to_the_process_that_made_them(import_log: Import, query: Query) -> None:
    text = log(
        "1 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_THREAD|CLONE_FILES) = 2",
        "2 getpid() = 1",
        "2 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_THREAD|CLONE_FILES) = 3",
        "3 getpid() = 1",
        "1 fork() = 4",
        "4 getpid() = 4",
        "4 +++ exited with 0 +++",
        "1 fork() = 4",
        "4 getpid() = 4",
    )
    rows = query(import_log(text), "SELECT tid, process_id, task_id FROM processes ORDER BY task_id")
    # The id 4 is used twice, by two processes.
    assert rows == [(1, 0, 0), (2, 0, 1), (3, 0, 2), (4, 3, 3), (4, 4, 4)]


def test_a_file_may_be_called_deleted(import_log: Callable[..., Path], query: Callable) -> None:
    """The kernel says the same of a file that is gone: what was opened tells them apart."""
    lines = (
        'openat(AT_FDCWD</t>, "x (deleted)", O_RDONLY) = 3</t/x (deleted)>',
        'read(3</t/x (deleted)>, "", 8) = 0',
        "fsync(7</t/x (deleted)>) = 0",
        'read(3</t/x (deleted) (deleted)>, "", 8) = 0',
        'openat(AT_FDCWD</t>, "y", O_RDONLY) = 4</t/y>',
        'read(4</t/y (deleted)>, "", 8) = 0',
    )
    recording = import_log(
        "".join(f"1 1700000000.00000{n} {line} <0.000001>\n" for n, line in enumerate(lines))
    )
    paths = query(recording, "SELECT path FROM calls JOIN paths USING (path_id) ORDER BY ts_ns")
    assert [path for (path,) in paths] == ["/t/x (deleted)"] * 4 + ["/t/y"] * 2


def test_a_byte_and_its_text_are_two_names(import_log: Callable[..., Path], query: Callable) -> None:
    names = (r"/a\377", r"/a\\xff", r"/a\\x5cxff", r"/by\\x2did")
    lines = [f'1 1700000000.00000{n} stat("{name}", 0x1) = 0 <0.000001>\n' for n, name in enumerate(names)]
    recording = import_log("".join(lines))
    paths = query(recording, "SELECT path FROM calls JOIN paths USING (path_id) ORDER BY ts_ns")
    assert [path for (path,) in paths] == [r"/a\xff", r"/a\x5cxff", r"/a\x5cx5cxff", r"/by\x2did"]
