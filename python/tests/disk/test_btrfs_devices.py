"""btrfs over several devices, in all profiles: what lies at the places that a scan tells, read from the devices themselves."""

from __future__ import annotations

import os
import re
import struct
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import pytest
from sampling import some
from sysdock.sentences import fact, facts_from_json, listed, say
from waiting import wait_for

sys.path.insert(0, str(Path(__file__).parent))
from ext_images import needs, run
from loops import MIB, allocate, btrfs_of, filefrag, mounted
from scans import Scan, scanned
from sysdock.disk.map import MapOptions, drawn

BLOCK = 4096
STRIPE = 65536
# Devices, profiles of data and metadata, mount options.
KINDS = {
    "single": (2, "single", "raid1", ""),
    "raid0 of 2": (2, "raid0", "raid0", ""),
    "raid0 of 3": (3, "raid0", "raid1", ""),
    "raid1": (2, "raid1", "raid1", ""),
    "raid10": (4, "raid10", "raid10", ""),
    "raid5 of 2": (2, "raid5", "raid5", ""),
    "raid5 of 3": (3, "raid5", "raid5", ""),
    "raid5 of 4": (4, "raid5", "raid1", ""),
    "raid6 of 3": (3, "raid6", "raid6", ""),
    "raid6 of 4": (4, "raid6", "raid6", ""),
    "raid6 of 5": (5, "raid6", "raid1c3", ""),
    "raid1c3": (3, "raid1c3", "raid1c3", ""),
    "raid1c4": (4, "raid1c4", "raid1c4", ""),
    "raid0, packed": (2, "raid0", "raid1", "compress-force=zstd"),
    "raid5, packed": (3, "raid5", "raid5", "compress-force=zstd"),
}
COPIES = {"raid1": 2, "raid10": 2, "raid1c3": 3, "raid1c4": 4}


@dataclass
class Chunk:
    """What `btrfs inspect-internal dump-tree` says of a chunk."""

    address: int
    length: int
    profile: str
    slots: list[tuple[int, int]]

    @cached_property
    def parities(self) -> int:
        return {"RAID5": 1, "RAID6": 2}.get(self.profile, 0)

    @cached_property
    def columns(self) -> int:
        of = {"RAID0": len(self.slots), "RAID10": len(self.slots) // 2}
        return len(self.slots) - self.parities if self.parities else of.get(self.profile, 1)


@dataclass
class Found:
    """A file system on its mount point, its scan, and its images by number of device."""

    root: Path
    images: dict[int, Path]
    chunks: list[Chunk]
    scan: Scan

    def read(self, device: int, place: int, length: int) -> bytes:
        """What lies on a device."""
        with self.images[device].open("rb") as image:
            return os.pread(image.fileno(), length, place)

    def pieces(self, part: str) -> list[tuple[int, int, int]]:
        """Device, place and length of each row of `layout`."""
        return self.scan.rows(
            f"SELECT device, physical_bytes, length_bytes FROM layout WHERE part = '{part}'"
        )


def patterned(file: int, inode: int, first: int, blocks: int, salt: int) -> None:
    """Blocks that are like no others."""
    parts = [struct.pack("<QQQQ", inode, first + each, salt, 77) * (BLOCK // 32) for each in range(blocks)]
    os.pwrite(file, b"".join(parts), first * BLOCK)


def fill(root: Path) -> None:
    """Files over many stripes: fragmented, with holes, partly rewritten, without their last block."""

    def write(name: str, places: list[tuple[int, int]], salt: int = 0) -> None:
        file = os.open(root / name, os.O_RDWR | os.O_CREAT)
        for first, blocks in places:
            patterned(file, os.fstat(file).st_ino, first, blocks, salt)
            os.fsync(file)
        os.close(file)

    write("large", [(0, 3001)])
    os.truncate(root / "large", 3001 * BLOCK - 77)
    for turn in range(12):
        for number in range(5):
            write(f"turns{number}", [(turn * (number + 1), number + 1)])
    write("holes", [(each * 37, 1 + each % 20) for each in range(30)])
    write("anew", [(0, 400)])
    os.sync()
    write("anew", [(each * 50 + 3, 7) for each in range(7)], salt=1)
    for number in range(60):
        write(f"small{number}", [(0, 1 + number % 3)])
    for number in range(0, 60, 2):
        (root / f"small{number}").unlink()
    allocate(root / "unwritten", 0, 300 * BLOCK)
    os.sync()


def chunks_of(device: str) -> list[Chunk]:
    """The chunk tree, by btrfs-progs."""
    said = run("btrfs", "inspect-internal", "dump-tree", "-t", "chunk", device)
    head = r"CHUNK_ITEM (\d+)\).*?length (\d+) owner \d+ stripe_len (\d+) type (\S+)(.*?)(?=\titem|\Z)"
    chunks = []
    for address, length, stripe, kind, rest in re.findall(head, said, re.DOTALL):
        assert int(stripe) == STRIPE
        slots = [(int(each[0]), int(each[1])) for each in re.findall(r"devid (\d+) offset (\d+)", rest)]
        profile = kind.partition("|")[2].partition("/")[0] or "single"
        chunks.append(Chunk(int(address), int(length), profile, slots))
    return chunks


@pytest.fixture(scope="module", params=some(KINDS, 2))
def kind(request: pytest.FixtureRequest) -> str:
    """Each profile."""
    return request.param


@pytest.fixture(scope="module")
def found(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Found]:
    """A file system with files in it, mounted, and its scan."""
    count, data, metadata, options = KINDS[kind]
    folder = tmp_path_factory.mktemp("devices")
    with btrfs_of(folder, count, 256 * MIB, "-d", data, "-m", metadata) as images:
        chosen = ["-o", options] if options else []
        with mounted(Path(next(iter(images))), folder / "point", *chosen) as root:
            fill(root)
            scan = scanned(root, folder / "rec", "--no-measure")
            numbers = dict(scan.rows("SELECT device, path FROM devices"))
            by_number = {number: images[path] for number, path in numbers.items()}
            assert len(by_number) == count
            yield Found(root, by_number, chunks_of(next(iter(images))), scan)


def test_it_is_read_by_its_trees(kind: str, found: Found) -> None:
    count, data, metadata, _ = KINDS[kind]
    [(method, reason)] = found.scan.rows("SELECT method, reason FROM file_systems")
    assert method == "tree"
    words = [data if data == "single" else data.upper(), metadata.upper()]
    profiles = f"data {words[0]}, metadata {words[1]}, system {words[1]}"
    several = fact("disk/several_devices", devices=count, profiles=profiles)
    assert facts_from_json(reason) == listed([fact("disk/trees_of_btrfs"), several], "semicolon")
    stated = dict(found.scan.rows("SELECT name, value FROM environment WHERE section = 'file system'"))
    assert stated["devices"] == str(count)
    assert [stated["profile of data"], stated["profile of metadata"]] == words


def test_fragments_are_those_of_filefrag(found: Found) -> None:
    ours = dict(found.scan.query("SELECT path, fragments FROM inodes WHERE kind = 'file'"))
    theirs = {str(path): count for path, count in filefrag(sorted(found.root.iterdir())).items()}
    assert len(theirs) > 35
    assert max(theirs.values()) > 10
    assert ours == theirs


def test_each_byte_of_each_device_is_told_once(found: Found) -> None:
    pieces = found.scan.rows(
        """SELECT device, physical_bytes, end_bytes FROM (
            SELECT DISTINCT device, physical_bytes,
                physical_bytes + coalesce(stored_bytes, length_bytes) AS end_bytes
            FROM extents WHERE physical_bytes IS NOT NULL
            UNION ALL SELECT device, physical_bytes, physical_bytes + length_bytes FROM free_extents
            UNION ALL SELECT device, physical_bytes, physical_bytes + length_bytes FROM layout WHERE part <> 'group'
        ) ORDER BY ALL"""
    )
    assert all(end == begin for (device, _, end), (other, begin, _) in pairwise(pieces) if device == other)
    ends = {device: end for device, _, end in pieces}
    begins = {device: begin for device, begin, _ in reversed(pieces)}
    assert set(begins.values()) == {0}
    assert ends == {number: image.stat().st_size for number, image in found.images.items()}
    assert ends == dict(found.scan.rows("SELECT device, size_bytes FROM devices"))
    [(size, free)] = found.scan.rows("SELECT size_bytes, free_bytes FROM file_systems")
    assert size == sum(ends.values())
    # In bytes of devices, but for what btrfs keeps ready; not told to a byte where profiles are mixed.
    assert abs(free - found.scan.one("SELECT sum(free_bytes) FROM devices")) < size / 6


def test_blocks_of_files_lie_where_they_are_told(kind: str, found: Found) -> None:
    rows = found.scan.query(
        """SELECT path, device, logical_bytes, physical_bytes, length_bytes, flags FROM extents
        JOIN inodes USING (inode) WHERE kind = 'file'"""
    )
    told = Counter()
    for path, device, logical, physical, length, flags in rows:
        told[path] += length
        # An extent that was written anew in its middle is used twice, by the one file.
        if flags not in ("", "shared"):
            assert set(flags.split("+")) <= {"unwritten", "compressed", "shared", "inline"}
            continue
        wanted = Path(path).read_bytes()[logical : logical + length]
        assert len(wanted) > length - BLOCK
        assert found.read(device, physical, len(wanted)) == wanted, (path, device, physical)
    # Nothing of a file is left out: what reads as something has a row.
    for path in found.root.iterdir():
        if path.name != "unwritten":
            written = sum(1 for block in blocks_of(path.read_bytes()) if block.strip(b"\0"))
            assert told[str(path)] == written * BLOCK, path
    assert any("compressed" in row[5] for row in rows) == ("packed" in kind)


def blocks_of(content: bytes) -> list[bytes]:
    """Blocks of a piece; the last may be short."""
    return [content[at : at + BLOCK] for at in range(0, len(content), BLOCK)]


def test_copies_are_copies(kind: str, found: Found) -> None:
    """Each block of data is as often in copies as the profile has further ones."""
    first = found.scan.rows(
        "SELECT device, physical_bytes, coalesce(stored_bytes, length_bytes) FROM extents WHERE physical_bytes IS NOT NULL"
    )
    count = COPIES.get(KINDS[kind][1], 1)
    kept = Counter(block for piece in found.pieces("unreferenced") for block in blocks_of(found.read(*piece)))
    # All copies of an unreferenced block are reported as such.
    assert all(times % count == 0 for times in kept.values())
    blocks = Counter(block for piece in first for block in blocks_of(found.read(*piece)))
    for block, times in kept.items():
        blocks[block] += times // count
    copies = Counter(block for piece in found.pieces("copy") for block in blocks_of(found.read(*piece)))
    assert (count > 1) == bool(copies)
    unreferenced = {block: (count - 1) * (times // count) for block, times in kept.items()}
    wanted = {block: (count - 1) * times - unreferenced.get(block, 0) for block, times in blocks.items()}
    assert +copies == +Counter(wanted)


def doubled(number: int) -> int:
    """Twice a number in the field that Q of RAID6 is computed in."""
    return (number << 1) ^ (0x11D if number & 0x80 else 0)


def q_of(stripes: list[bytes]) -> bytes:
    """The second parity of stripes in the order of their columns."""
    table = bytes(doubled(number) for number in range(256))
    total = bytes(len(stripes[0]))
    for stripe in reversed(stripes):
        total = xor(total.translate(table), stripe)
    return total


def xor(one: bytes, other: bytes) -> bytes:
    return (int.from_bytes(one, "little") ^ int.from_bytes(other, "little")).to_bytes(len(one), "little")


def test_parity_is_the_sum_of_what_lies_beside_it(kind: str, found: Found) -> None:
    told = found.pieces("parity")
    assert bool(told) == ("RAID5" in str(found.chunks) or "RAID6" in str(found.chunks))
    kinds = Counter()
    for device, place, length in told:
        [(chunk, begin)] = [
            (chunk, slot)
            for chunk in found.chunks
            for number, slot in chunk.slots
            if number == device and slot <= place < slot + chunk.length // chunk.columns
        ]
        row, within = divmod(place - begin, STRIPE)
        assert within + length <= STRIPE
        own = chunk.slots.index((device, begin))
        contents = [found.read(number, slot + row * STRIPE + within, length) for number, slot in chunk.slots]
        # The numbers of the slots determine the columns; the test checks which of them is parity.
        turned = contents[row % len(contents) :] + contents[: row % len(contents)]
        columns, parities = turned[: chunk.columns], turned[chunk.columns :]
        total = bytes(length)
        for column in columns:
            total = xor(total, column)
        wanted = [total, q_of(columns)][: chunk.parities]
        assert parities == wanted, (kind, device, place)
        kinds[(own - row) % len(contents) - chunk.columns] += 1
    # P, and Q as often.
    assert set(kinds.values()) <= {len(told) // max(1, len(kinds))}
    assert all(number >= 0 for number in kinds)


def test_chunks_are_those_of_btrfs_progs(found: Found) -> None:
    theirs = [
        (number, device, place, chunk.length // chunk.columns)
        for number, chunk in enumerate(found.chunks)
        for device, place in chunk.slots
    ]
    sql = "SELECT number, device, physical_bytes, length_bytes FROM layout WHERE part = 'group' ORDER BY ALL"
    assert found.scan.rows(sql) == sorted(theirs)
    allocated = Counter()
    for _, device, _, length in theirs:
        allocated[device] += length
    assert dict(found.scan.rows("SELECT device, allocated_bytes FROM devices")) == allocated
    free = "SELECT device, CAST(sum(length_bytes) AS BIGINT) FROM free_extents GROUP BY device"
    assert dict(found.scan.rows("SELECT device, free_bytes FROM devices")) == dict(found.scan.rows(free))


def test_addresses_lead_where_btrfs_map_logical_says(found: Found) -> None:
    needs("btrfs-map-logical")
    addressed = found.scan.rows(
        """SELECT address_bytes, device, physical_bytes FROM extents WHERE address_bytes IS NOT NULL
        ORDER BY hash(address_bytes) LIMIT 25"""
    )
    paths = dict(found.scan.rows("SELECT device, path FROM devices"))
    is_striped = any(chunk.columns + chunk.parities > 1 for chunk in found.chunks)
    assert bool(addressed) == is_striped
    answers = 0
    for address, device, physical in addressed:
        said = run("btrfs-map-logical", "-l", address, "-b", BLOCK, paths[device], may_fail=True)
        # It ends without a word where the item before the address is in another leaf (btrfs-progs 6.2).
        for place, path in re.findall(rf"mirror 1 logical {address} physical (\d+) device (\S+)", said):
            assert (int(place), path) == (physical, paths[device])
            answers += 1
    assert answers >= len(addressed) - 2


def test_the_map_shows_each_device_whole_and_each_break_once(kind: str, found: Found) -> None:
    shown = drawn(found.scan.folder, MapOptions(size=256)).shown
    begin = 0
    for device, (number, image) in zip(shown["devices"], found.images.items(), strict=True):
        assert (device["device"], device["from"]) == (number, begin)
        assert device["path"].startswith("/dev/loop")
        begin += image.stat().st_size
    assert shown["size_bytes"] == begin
    assert {label["device"] for label in shown["labels"]} == set(found.images)
    shares = {share["class"]: share["bytes"] for share in shown["shares"]}
    assert sum(shares.values()) == begin
    assert shares["unknown"] == 0
    assert shown["wrong_rows"] == shown["beyond_bytes"] == 0
    assert shares["free"] == found.scan.one("SELECT sum(length_bytes) FROM free_extents")
    if "packed" not in kind:
        # A compressed extent that was written anew in its middle is read whole by two rows.
        assert shown["claimed_again_bytes"] == 0
        breaks = found.scan.one("SELECT sum(greatest(fragments - 1, 0)) FROM inodes")
        assert shares["break"] == breaks * BLOCK


def forget(device: str) -> None:
    """Has the kernel forget a device; what looks at each device that was unmounted may hold it for a while."""
    command = ("btrfs", "device", "scan", "--forget", device)
    wait_for(lambda: run(*command, may_fail=True) == "", f"{device} to be forgotten", every_s=0.1)


def test_a_missing_device_is_said(tmp_path: Path) -> None:
    with btrfs_of(tmp_path, 2, 256 * MIB, "-d", "raid1", "-m", "raid1") as images:
        first, second = images
        with mounted(Path(first), tmp_path / "point") as root:
            fill(root)
        forget(first)
        with mounted(Path(second), tmp_path / "point", "-o", "degraded") as root:
            found = scanned(root, tmp_path / "rec", "--no-measure")
    assert found.rows("SELECT device, path, missing FROM devices") == [(1, None, True), (2, second, False)]
    reason = found.one("SELECT reason FROM file_systems")
    assert fact("disk/device_missing", numbers="1") in facts_from_json(reason).parts
    assert say(facts_from_json(reason), "en") in found.messages
    assert found.one("SELECT count(*) FROM extents WHERE device = 1") > 0
