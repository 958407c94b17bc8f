"""Settings are set, proved and put back on this machine, and what cannot be is said."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from sysdock.errors import UserError
from sysdock.experiment.state import Difference, Journal, State, problems
from sysdock.experiment.state.groups import hierarchy
from sysdock.experiment.state.mounts import merged, mounted_at

MIB = 1 << 20
# Nobody is hurt by these: half a second more or less until pages are written, and a limit that is never reached.
EXPIRE, DIRTY = "vm.dirty_expire_centisecs", "vm.dirty_background_bytes"


def sysctl(name: str) -> str:
    return Path("/proc/sys", *name.split(".")).read_text().strip()


def test_a_sysctl_is_set_proved_and_put_back(state: State) -> None:
    before = sysctl(EXPIRE)
    state.apply({f"sysctl:{EXPIRE}": "2950"})
    assert (sysctl(EXPIRE), state.prove()) == ("2950", [])
    Path("/proc/sys/vm/dirty_expire_centisecs").write_text("2960")
    assert state.prove() == [Difference("sysctl", EXPIRE, "2950", "2960")]
    assert state.undo() == []
    assert sysctl(EXPIRE) == before


@pytest.mark.parametrize("was", ["vm.dirty_background_ratio", DIRTY])
def test_of_a_pair_the_one_that_was_in_force_comes_back(state: State, was: str) -> None:
    # In force are the 10 % of the kernel; half of the cases begin with bytes.
    ratio = sysctl("vm.dirty_background_ratio")
    assert (ratio != "0", sysctl(DIRTY)) == (True, "0")
    if was == DIRTY:
        state.apply({f"sysctl:{DIRTY}": "2GiB"})
    mark = state.mark()
    state.apply({f"sysctl:{DIRTY}": "1GiB", "sysctl:vm.dirty_background_ratio": "11"})
    assert (sysctl(DIRTY), sysctl("vm.dirty_background_ratio")) == ("0", "11")
    assert state.undo(mark) == []
    assert sysctl(DIRTY) == (str(2 << 30) if was == DIRTY else "0")
    assert sysctl("vm.dirty_background_ratio") == ("0" if was == DIRTY else ratio)
    assert state.undo() == []
    assert (sysctl(DIRTY), sysctl("vm.dirty_background_ratio")) == ("0", ratio)


def test_undo_goes_back_to_a_mark(state: State) -> None:
    state.apply({f"sysctl:{EXPIRE}": "2950"})
    mark = state.mark()
    state.apply({f"sysctl:{EXPIRE}": "2960"})
    assert state.undo(mark) == []
    assert (sysctl(EXPIRE), state.prove()) == ("2950", [])


@pytest.mark.parametrize(
    ("setting", "value", "fact"),
    [
        ("sysctl:vm.dirty_byte", "1", "no sysctl `vm.dirty_byte`.*did you mean vm.dirty_bytes"),
        ("sysctl:vm.dirty_bytes", "many", "refuses this value of vm.dirty_bytes"),
        ("sysctl:vm.drop_caches", "x", "refuses|cannot be read"),
        ("sysfs:/sys/block/nothing/queue/scheduler", "none", "no such file"),
        ("cpu:4096", "offline", "CPU 4096 does not exist"),
        ("cgroup:sysdock-test/cpu.maxx", "1", "no file cpu.maxx"),
        ("cgroup:sysdock-test/bogus.max", "1", "no control group controller `bogus`"),
        ("mount.options:/nowhere", "noatime", "nothing is mounted"),
        ("file:/nowhere/at/all", "x", "no such folder"),
        ("cache:drop", "4", "not a value of cache:drop"),
    ],
)
def test_what_cannot_be_set_is_said_and_leaves_nothing(
    state: State, setting: str, value: str, fact: str
) -> None:
    with pytest.raises(UserError) as raised:
        state.apply({setting: value})
    assert re.search(fact, str(raised.value), re.DOTALL)


def test_a_value_that_reads_back_otherwise_is_refused_and_put_back(state: State) -> None:
    state.file_system("small", "ext4", 32 * MIB)
    file = Path(f"/sys/block/{state.device('small')}/queue/read_ahead_kb")
    before = file.read_text()
    mark = state.mark()
    # It is kept in pages.
    with pytest.raises(UserError, match="set to '255' and reads back as '252'"):
        state.apply({f"sysfs:{file}": "255"})
    assert state.undo(mark) == []
    assert file.read_text() == before


def test_a_choice_is_read_as_its_chosen_word(state: State) -> None:
    state.file_system("small", "ext4", 32 * MIB)
    file = Path(f"/sys/block/{state.device('small')}/queue/scheduler")
    before = file.read_text()
    assert "[none]" in before
    assert "mq-deadline" in before
    mark = state.mark()
    state.apply({f"sysfs:{file}": "mq-deadline"})
    assert "[mq-deadline]" in file.read_text()
    assert state.prove() == []
    assert state.undo(mark) == []
    assert file.read_text() == before


def test_a_file_comes_back_as_it_was(state: State, tmp_path: Path) -> None:
    file, link, hard = tmp_path / "x.conf", tmp_path / "link.conf", tmp_path / "hard"
    file.write_text("old\n")
    link.symlink_to(file)
    os.link(file, hard)
    os.chmod(file, 0o640)
    os.chown(file, 1, 2)
    os.setxattr(file, "user.note", b"kept")
    os.utime(file, ns=(10**18, 10**18 + 7))
    before = file.stat()
    state.apply({f"file:{link}": "new\n"})
    assert file.read_text() == "new\n"
    assert link.is_symlink()
    now = file.stat()
    assert (now.st_mode, now.st_uid, now.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert os.getxattr(file, "user.note") == b"kept"
    assert state.prove() == []
    file.write_text("else\n")
    assert [found.kind for found in state.prove()] == ["file"]
    assert state.undo() == []
    after = file.stat()
    assert file.read_text() == "old\n"
    assert (after.st_ino, after.st_mtime_ns, after.st_nlink) == (before.st_ino, before.st_mtime_ns, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hard", "journals", "link.conf", "x.conf"]


def test_a_file_that_was_not_there_is_removed(state: State, tmp_path: Path) -> None:
    state.apply({f"file:{tmp_path}/new": "content"})
    assert (tmp_path / "new").read_text() == "content"
    assert state.undo() == []
    assert not (tmp_path / "new").exists()


def test_a_group_is_made_limits_and_goes(state: State) -> None:
    name = f"sysdock-test-{os.getpid()}"
    limits = {"cpu.max": "150000 100000", "memory.max": "1GiB", "pids.max": "500", "cgroup.max.depth": "3"}
    state.apply({f"cgroup:{name}/{file}": value for file, value in limits.items()})
    assert state.prove() == []
    members = state.group_members(name)
    child = subprocess.Popen(["sleep", "60"])
    for file in members:
        file.write_text(str(child.pid))
    assert all(
        name in line for line in Path(f"/proc/{child.pid}/cgroup").read_text().split() if ":pids:" in line
    )
    assert state.undo() == []
    # Who was in it is gone with it.
    assert child.wait(600) == -9
    assert not any(file.parent.exists() for file in members)


def test_a_limit_of_a_device_is_put_back_alone(state: State) -> None:
    state.file_system("small", "ext4", 32 * MIB)
    number = Path(f"/sys/block/{state.device('small')}/dev").read_text().strip()
    name = f"sysdock-test-{os.getpid()}"
    state.apply({f"cgroup:{name}/io.max": f"{number} wiops=100 rbps=1048576"})
    assert state.prove() == []
    mark = state.mark()
    state.apply({f"cgroup:{name}/io.max": f"{number} wiops=50"})
    place = hierarchy("io")
    file = place.top / name / ("io.max" if place.version == 2 else "blkio.throttle.write_iops_device")
    assert "50" in file.read_text()
    assert state.undo(mark) == []
    assert "100" in file.read_text()
    assert "50" not in file.read_text()


def test_mount_options_of_an_own_file_system_change_by_mounting_anew(state: State) -> None:
    point = state.file_system("small", "ext4", 32 * MIB)
    (point / "kept").write_text("content")
    before = mounted_at(str(point))
    mark = state.mark()
    state.apply({"mount.options:small": "data=journal,relatime"})
    now = mounted_at(str(point))
    assert now is not None
    assert {"data=journal", "relatime"} <= set(now.options.split(","))
    assert state.prove() == []
    assert state.undo(mark) == []
    assert mounted_at(str(point)) == before
    assert (point / "kept").read_text() == "content"


def test_mount_options_wait_for_processes_with_mounts_of_their_own(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = state.file_system("data", "ext4", 32 * MIB)
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo ready; exec sleep 600"]
    for tries in (600, 2):
        monkeypatch.setattr("sysdock.experiment.state.mounts._TRIES_FREE", tries)
        with subprocess.Popen(words, stdout=subprocess.PIPE) as other:
            try:
                assert other.stdout is not None
                other.stdout.readline()
                if tries > 2:
                    threading.Timer(0.3, other.kill).start()
                    state.apply({"mount.options:data": "data=journal"})
                else:
                    # The kernel would mount it with the options that it has for the other process.
                    with pytest.raises(UserError, match=rf"mounted for: .*\({other.pid}\)"):
                        state.apply({"mount.options:data": "data=writeback"})
            finally:
                other.kill()
        now = mounted_at(str(point))
        assert (now is not None and "data=journal" in now.options.split(",")) == (tries > 2)


def test_mount_options_of_another_mount_change_by_remounting(state: State, tmp_path: Path) -> None:
    state.file_system("small", "ext4", 32 * MIB)
    point = tmp_path / "other"
    point.mkdir()
    subprocess.run(["mount", "-o", "nosuid", f"/dev/{state.device('small')}", point], check=True)
    try:
        before = mounted_at(str(point))
        mark = state.mark()
        state.apply({f"mount.options:{point}": "commit=30,noatime,nobarrier"})
        now = mounted_at(str(point))
        assert now is not None
        assert {"commit=30", "noatime", "nosuid", "nobarrier"} <= set(now.options.split(","))
        assert state.undo(mark) == []
        assert mounted_at(str(point)) == before
        with pytest.raises(UserError, match=r"nonsense|wrong fs type|bad option|parameter"):
            state.apply({f"mount.options:{point}": "nonsense"})
        state.undo(mark)
    finally:
        subprocess.run(["umount", point], check=True)


def test_options_take_the_place_of_those_that_they_contradict() -> None:
    assert merged("rw,noatime", "relatime") == "rw,relatime"
    assert merged("rw,nosuid,data=ordered", "data=journal,suid") == "rw,data=journal,suid"
    assert merged("rw,barrier=1", "nobarrier") == "rw,nobarrier"
    assert merged("noatime", "ro") == "noatime,ro"


def test_the_cache_is_dropped(state: State) -> None:
    mark = state.mark()
    state.apply({"cache:drop": "1"})
    assert (state.mark(), state.prove()) == (mark, [])


def test_two_experiments_do_not_change_the_same(state: State, tmp_path: Path) -> None:
    other = Journal.begin("the other, in /there")
    try:
        State(other, tmp_path / "other").apply({f"sysctl:{EXPIRE}": "2950"})
        with pytest.raises(UserError, match=r"changed by a running experiment \(the other, in /there\)"):
            state.apply({f"sysctl:{EXPIRE}": "2960"})
    finally:
        assert State(other, tmp_path / "other").undo() == []
        other.close()
    state.apply({f"sysctl:{EXPIRE}": "2960"})


@pytest.mark.usefixtures("root")
def test_without_root_it_says_so() -> None:
    """As nobody, in a process of its own; folders of pytest are closed to others."""
    program = (
        "import os\n"
        "from pathlib import Path\n"
        "from sysdock.experiment.state import Journal, State\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "try: State(Journal.begin('x'), Path('s')).apply({'sysctl:vm.dirty_bytes': '1GiB'})\n"
        "except Exception as error: print(error)\n"
    )
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        environment = {**os.environ, "SYSDOCK_STATE": f"{name}/journals"}
        words = [sys.executable, "-c", program]
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=name, env=environment)
    assert "changing vm.dirty_bytes needs root" in done.stdout, done.stderr


def test_settings_of_a_wrong_form_are_found_without_the_machine() -> None:
    wrong = {
        "sysctrl:vm.x": "did you mean sysctl",
        "sysctl": "lacks what it sets",
        "sysctl:../etc/passwd": "not the name of a sysctl",
        "sysfs:/etc/passwd": "not a path below /sys",
        "sysfs:/sys/../etc/passwd": "not a path below /sys",
        "cpu:0": "CPU 0 cannot be taken offline",
        "cpu:one": "not the number of a CPU",
        "file:relative": "not the absolute path",
        "file:/proc/sys/vm/x": "is the kernel's",
        "cgroup:cpu.max": "not a file of a control group",
        "cgroup:../x/cpu.max": "not a file of a control group",
        "cache:fill": "cannot be done",
        "mount.options:a/b": "neither a mount point",
    }
    found = problems(dict.fromkeys(wrong, "1"))
    assert len(found) == len(wrong)
    for said, expected in zip(found, wrong.values(), strict=True):
        assert expected in said
    right = ["sysctl:vm.dirty_bytes", "sysfs:/sys/block/{device}/queue/scheduler", "cpu:1", "file:/etc/x"]
    right += ["cgroup:load/cpu.max", "cache:drop", "mount.options:testfs", "mount.options:/srv"]
    right += ["sysctl:net/ipv4/conf/eth0.100/forwarding", "file:{testfs}/x"]
    assert problems(dict.fromkeys(right, "1")) == []
