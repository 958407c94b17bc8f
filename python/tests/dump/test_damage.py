"""Structures of requests, sockets and counts that lie: pointers into nowhere, lists without an end, huge numbers.

Each case changes a few bytes of the dump of a kernel without random addresses. Whatever they say, the dump is read to
its end, and what is wrong has a status.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from made_dumps import MadeDump
from sysdock.analysis import Session
from sysdock.dump import Dump
from sysdock.sentences import facts_from_json, say

DIRECT_MAP = 0xFFFF888000000000
IMAGE = 0xFFFFFFFF80000000
NOWHERE = 0xDEAD000000000100
HUGE = 0xFFFFFFFF
DISK = "nvme0n1"
# By the size of a number, how `struct` names it.
FORMATS = {4: "<I", 8: "<Q"}


class Patient:
    """A dump that is damaged: finds what lies where, and changes it in a copy."""

    def __init__(self, made: MadeDump, dump: Dump, folder: Path) -> None:
        self.dump = dump
        self.made = made
        self.core = folder / "damaged"
        shutil.copy(made.core, self.core)
        with open(made.core, "rb") as file:
            head = file.read(4096)
        (table,), (count,) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<H", head, 56)
        entries = [struct.unpack_from("<IIQQQQ", head, table + 56 * number) for number in range(count)]
        self.segments = [entry for entry in entries if entry[0] == 1]

    def member(self, structure: str, address: int, path: str) -> int:
        """Where a member lies."""
        return address + self.dump.offset(structure, path)

    def word(self, address: int) -> int:
        """The eight bytes at an address."""
        found = self.dump.bytes(address, 8)
        assert found is not None
        return int(struct.unpack("<Q", found)[0])

    def pointer(self, structure: str, address: int, path: str) -> int:
        """What a member points to."""
        return self.word(self.member(structure, address, path))

    def hurt(self, address: int, value: int, size: int = 8) -> None:
        """Write another number there."""
        physical = address - (IMAGE if address >= IMAGE else DIRECT_MAP)
        place = next(
            offset + physical - start
            for _, _, offset, _, start, length in self.segments
            if start <= physical < start + length
        )
        with open(self.core, "r+b") as file:
            file.seek(place)
            file.write(struct.pack(FORMATS[size], value))

    def disk(self) -> int:
        """The `gendisk` whose requests hang."""
        head = self.member("super_block", self.word(self.dump.symbol("blockdev_superblock")), "s_inodes")
        inodes = self.dump.list("inode", head, "i_sb_list")
        distance = self.dump.offset("bdev_inode", "vfs_inode")
        for row in inodes:
            disk = self.pointer("bdev_inode", row.address - distance, "bdev.bd_disk")
            name = self.dump.bytes(self.member("gendisk", disk, "disk_name"), 16) if disk else None
            if name and name.startswith(DISK.encode()):
                return disk
        raise AssertionError(DISK)

    def tables(self) -> list[int]:
        """The tables of requests of that disk: one for each of its queues."""
        queue = self.pointer("gendisk", self.disk(), "queue")
        tags = self.pointer("request_queue", queue, "tag_set")
        count = self.word(self.member("blk_mq_tag_set", tags, "nr_hw_queues")) % 2**32
        first = self.pointer("blk_mq_tag_set", tags, "tags")
        return [self.word(first + 8 * number) for number in range(count)]

    def tags(self) -> int:
        """The first of them."""
        return self.tables()[0]

    def file(self, descriptor: int) -> int:
        """A file that the task with the sockets has open."""
        [pid] = self.made.started["sockets"]
        [task] = [row.address for row in self.dump.tasks() if row.pid == pid]
        table = self.pointer("files_struct", self.pointer("task_struct", task % 2**64, "files"), "fdt")
        return self.word(self.pointer("fdtable", table, "fd") + 8 * descriptor)

    def sock(self, descriptor: int) -> int:
        """The `sock` of that file."""
        return self.pointer("socket", self.pointer("file", self.file(descriptor), "private_data"), "sk")


@pytest.fixture
def patient(dumps: dict[str, MadeDump], tmp_path: Path) -> Iterator[Patient]:
    """A dump to damage."""
    with Dump.open(dumps["6.12"].core) as dump:
        yield Patient(dumps["6.12"], dump, tmp_path)


def issues(session: Session) -> set[str]:
    """What could not be read."""
    details = session.fetch("SELECT detail FROM import_issues")
    return {say(facts_from_json(detail), "en") for (detail,) in details}


def cyclic_disks(patient: Patient) -> None:
    head = patient.member("super_block", patient.word(patient.dump.symbol("blockdev_superblock")), "s_inodes")
    first = patient.word(head)
    patient.hurt(first, first)


def wild_queue(patient: Patient) -> None:
    patient.hurt(patient.member("gendisk", patient.disk(), "queue"), NOWHERE)


def many_queues(patient: Patient) -> None:
    queue = patient.pointer("gendisk", patient.disk(), "queue")
    tags = patient.pointer("request_queue", queue, "tag_set")
    patient.hurt(patient.member("blk_mq_tag_set", tags, "nr_hw_queues"), HUGE, 4)


def many_tags(patient: Patient) -> None:
    patient.hurt(patient.member("blk_mq_tags", patient.tags(), "nr_tags"), HUGE, 4)


def wild_requests(patient: Patient) -> None:
    patient.hurt(patient.member("blk_mq_tags", patient.tags(), "static_rqs"), NOWHERE)


def wild_request(patient: Patient) -> None:
    patient.hurt(patient.pointer("blk_mq_tags", patient.tags(), "static_rqs"), NOWHERE)


@pytest.mark.parametrize(
    ("wound", "issue"),
    [
        (cyclic_disks, "the list of disks: cycle"),
        (wild_queue, f"requests of disk {DISK}: not mapped"),
        (many_queues, f"requests of disk {DISK}: too long"),
        (many_tags, f"requests of disk {DISK}: too long"),
        (wild_requests, f"requests of disk {DISK}: not mapped"),
        (wild_request, f"requests of disk {DISK}: not mapped"),
    ],
)
def test_requests_that_lie(
    wound: Callable[[Patient], None], issue: str, patient: Patient, read: Callable[..., Session]
) -> None:
    wound(patient)
    session = read(patient.core)
    assert issue in issues(session)
    assert session.fetch("SELECT count(*) > 100 FROM dump_tasks WHERE status = 'ok'") == [(True,)]
    findings = {finding.rule: finding for finding in session.diagnose()}
    assert findings["dump/damaged"].status == "finding"


@pytest.mark.parametrize(
    ("member", "value", "column", "status"),
    [
        ("start_time_ns", 2**64 - 1, "age_ns", "damaged page"),
        ("io_start_time_ns", 2**63 - 1, "issued_ns", "damaged page"),
        ("mq_hctx", NOWHERE, "queue", "not mapped"),
    ],
)
def test_requests_with_a_member_that_cannot_be(
    member: str, value: int, column: str, status: str, patient: Patient, read: Callable[..., Session]
) -> None:
    whole = read(patient.made.core).fetch("FROM dump_requests")
    assert whole
    for tags in patient.tables():
        requests = patient.pointer("blk_mq_tags", tags, "static_rqs")
        for number in range(patient.word(patient.member("blk_mq_tags", tags, "nr_tags")) % 2**32):
            request = patient.word(requests + 8 * number)
            patient.hurt(patient.member("request", request, member), value)
    rows = read(patient.core).fetch(f"SELECT {column}, status FROM dump_requests")
    # It is missing, and everything else is there.
    assert rows == [(None, status)] * len(whole)


def wild_private_data(patient: Patient, descriptor: int) -> None:
    patient.hurt(patient.member("file", patient.file(descriptor), "private_data"), NOWHERE)


def wild_sock(patient: Patient, descriptor: int) -> None:
    socket = patient.pointer("file", patient.file(descriptor), "private_data")
    patient.hurt(patient.member("socket", socket, "sk"), NOWHERE)


def cyclic_packets(patient: Patient, descriptor: int) -> None:
    queue = patient.member("sock", patient.sock(descriptor), "sk_receive_queue")
    packet = patient.word(queue)
    assert packet != queue
    patient.hurt(packet, packet)


def wild_packet(patient: Patient, descriptor: int) -> None:
    patient.hurt(patient.member("sock", patient.sock(descriptor), "sk_receive_queue"), NOWHERE)


def wild_peer(patient: Patient, descriptor: int) -> None:
    patient.hurt(patient.member("unix_sock", patient.sock(descriptor), "peer"), NOWHERE)


def wild_name(patient: Patient, descriptor: int) -> None:
    patient.hurt(patient.member("unix_sock", patient.sock(descriptor), "addr"), NOWHERE)


@pytest.mark.parametrize(
    ("wound", "status"),
    [
        (wild_private_data, "not mapped"),
        (wild_sock, "not mapped"),
        (cyclic_packets, "cycle"),
        (wild_packet, "not mapped"),
        (wild_peer, "not mapped"),
        (wild_name, "not mapped"),
    ],
)
def test_sockets_that_lie(
    wound: Callable[[Patient, int], None], status: str, patient: Patient, read: Callable[..., Session]
) -> None:
    # The end of a pair in which ten bytes wait that nobody has read.
    [pid] = patient.made.started["sockets"]
    whole = read(patient.made.core)
    sql = "SELECT fd FROM dump_sockets WHERE family = 'unix' AND receive_bytes = 10"
    [(descriptor,)] = whole.fetch(sql)
    wound(patient, descriptor)
    session = read(patient.core)
    sql = "SELECT pid, fd, status FROM dump_sockets WHERE status <> 'ok'"
    wrong = session.fetch(sql)
    # Its other end may be seen to lie, too.
    assert (pid, descriptor, status) in wrong
    assert len(wrong) <= 2
    assert session.fetch("SELECT count(*) FROM dump_sockets") == whole.fetch(
        "SELECT count(*) FROM dump_sockets"
    )


def test_a_name_of_a_socket_is_no_longer_than_names_are(
    patient: Patient, read: Callable[..., Session]
) -> None:
    whole = read(patient.made.core)
    [(descriptor,)] = whole.fetch("SELECT fd FROM dump_sockets WHERE local = '/tmp/socket'")
    address = patient.pointer("unix_sock", patient.sock(descriptor), "addr")
    patient.hurt(patient.member("unix_address", address, "len"), HUGE, 4)
    session = read(patient.core)
    [(local, status)] = session.fetch(f"SELECT local, status FROM dump_sockets WHERE fd = {descriptor}")
    assert (local, status) == ("/tmp/socket", "ok")


def cyclic_caches(patient: Patient) -> None:
    first = patient.word(patient.dump.symbol("slab_caches"))
    patient.hurt(first, first)


def wild_slab(patient: Patient) -> None:
    cache = patient.word(patient.dump.symbol("slab_caches")) - patient.dump.offset("kmem_cache", "list")
    node = patient.word(patient.member("kmem_cache", cache, "node"))
    patient.hurt(patient.member("kmem_cache_node", node, "partial"), NOWHERE)


def cyclic_numbers(patient: Patient) -> None:
    node = numbers(patient)
    patient.hurt(patient.member("xa_node", node, "slots"), node + 2)


def wild_numbers(patient: Patient) -> None:
    patient.hurt(patient.member("xa_node", numbers(patient), "slots"), NOWHERE + 2)


def numbers(patient: Patient) -> int:
    """The uppermost node of the tree of the numbers of processes."""
    space = patient.dump.symbol("init_pid_ns")
    return patient.pointer("pid_namespace", space, "idr.idr_rt.xa_head") - 2


def many_threads(patient: Patient) -> None:
    patient.hurt(patient.dump.symbol("nr_threads"), 2**31 - 1, 4)


TREE = "tasks in the tree of numbers"
SLABS = "slabs in the lists of their caches"


@pytest.mark.parametrize(
    ("wound", "name", "statuses"),
    [
        (cyclic_caches, SLABS, {"cycle"}),
        (wild_slab, SLABS, {"not mapped"}),
        (cyclic_numbers, TREE, {"damaged page", "cycle"}),
        (wild_numbers, TREE, {"not mapped"}),
        (many_threads, "tasks in the list", {"differs"}),
    ],
)
def test_counts_that_lie(
    wound: Callable[[Patient], None],
    name: str,
    statuses: set[str],
    patient: Patient,
    read: Callable[..., Session],
) -> None:
    wound(patient)
    session = read(patient.core)
    found = dict(session.fetch("SELECT name, status FROM dump_counts"))
    assert found.pop(name) in statuses
    # The others have nothing to do with it.
    assert found == {
        other: status
        for other, status in read(patient.made.core).fetch("SELECT name, status FROM dump_counts")
        if other != name
    }
