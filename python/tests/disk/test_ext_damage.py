"""The raw reader on images that are cut or damaged: an error or a counted issue, never a crash, and never nothing without a word."""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import ext_images
import pytest
from sampling import sampled, some
from scans import Scan

VARIANTS = ("ext2_1k", "default", "blocks_1k", "inline_data_1k", "bigalloc_1k", "meta_bg_1k", "no_extents")


@pytest.fixture(params=some(VARIANTS, 2), scope="module")
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound image."""
    scratch = tmp_path_factory.mktemp("images")
    path = scratch / f"{request.param}.img"
    ext_images.make(path, request.param, scratch)
    return path


def scanned(native: Path, image: Path, folder: Path) -> subprocess.CompletedProcess:
    """Scan whatever it is."""
    command = [native, "disk", "scan", image, "-o", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode in (0, 2), done.stderr
    assert "panicked" not in done.stderr
    return done


@contextmanager
def damaged_copy(image: Path, copy: Path) -> Iterator[Callable[[dict[int, int]], Path]]:
    """A copy of an image, which differs from it in the bytes that were given last: `{place: value}`."""
    subprocess.run(["cp", "--sparse=always", image, copy], check=True)
    with open(image, "rb") as sound, open(copy, "r+b", buffering=0) as file:
        changed: dict[int, int] = {}

        def change(wanted: dict[int, int]) -> Path:
            for place in changed:
                sound.seek(place)
                file.seek(place)
                file.write(sound.read(1))
            changed.clear()
            changed.update(wanted)
            for place, value in wanted.items():
                file.seek(place)
                file.write(bytes([value]))
            return copy

        yield change


def test_a_cut_image_is_refused(image: Path, native: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut"
    cut.write_bytes(image.read_bytes()[: 30 << 20])
    done = scanned(native, cut, tmp_path / "rec")
    assert done.returncode == 2
    assert "cut off" in done.stderr
    assert "hint:" in done.stderr


def test_an_image_that_ends_in_its_super_block_is_refused(image: Path, native: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut"
    cut.write_bytes(image.read_bytes()[:1500])
    assert "cut off within its super block" in scanned(native, cut, tmp_path / "rec").stderr


def test_damage_anywhere_is_survived(image: Path, native: Path, tmp_path: Path) -> None:
    numbers = random.Random(1)
    content = image.read_bytes()
    # Where there is something to damage: not in the content of files.
    spots = [at for at in range(1024, len(content), 64) if any(content[at : at + 64])]
    with damaged_copy(image, tmp_path / "damaged") as change:
        for round_ in range(sampled(6, 12)):
            changed = {}
            for _ in range(20 << round_ % 6):
                at = numbers.choice(spots) + numbers.randrange(64)
                changed[at % len(content)] = numbers.choice((0, 1, 0x7F, 0x80, 0xFF, numbers.randrange(256)))
            scanned(native, change(changed), tmp_path / f"rec{round_}")


def test_each_kind_of_damage_is_counted(scan: Callable, tmp_path: Path) -> None:
    image = tmp_path / "image"
    ext_images.make(image, "no_checksums", tmp_path)
    sound = scan(image)
    assert sound.issues() == {}
    stat = ext_images.run("debugfs", "-R", "stat /large0", image)
    tree = int(stat.split("(ETB0):")[1].split(",")[0]) if "(ETB0)" in stat else None
    assert tree is not None
    commands = (
        "set_inode_field /big mode 0170000",
        "set_inode_field /middle links_count 1",
        "unlink /middle",
        "set_inode_field /short file_acl 999999",
        "freeb 3000 10",
    )
    ext_images.run("debugfs", "-w", "-f", "-", image, stdin="\n".join(commands))
    with open(image, "r+b") as file:
        file.seek(tree * 1024)
        file.write(b"\0\0")
    issues = scan(image).issues()
    assert {"broken_inode", "no_name", "broken_extents"} <= set(issues)
    assert scan(image).one("SELECT unread_files FROM file_systems") == 1


def test_what_is_no_file_system_is_said(native: Path, tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(b"\0" * 1024 + b"\xff" * 55 + b"\xff" + b"\x53\xef" + b"\xff" * 5000)
    done = scanned(native, image, tmp_path / "rec")
    assert done.returncode == 2
    assert not (tmp_path / "rec").exists()


@pytest.mark.parametrize(("name", "place", "magic"), [("xfs", 0, b"XFSB"), ("btrfs", 0x10040, b"_BHRfS_M")])
def test_an_image_that_must_be_mounted_is_not_scanned_as_a_file(
    name: str, place: int, magic: bytes, native: Path, tmp_path: Path
) -> None:
    image = tmp_path / "image"
    image.write_bytes(b"\0" * place + magic + b"\0" * 100_000)
    done = scanned(native, image, tmp_path / "rec")
    assert done.returncode == 2
    assert f"image: {name} that is not mounted" in done.stderr
    assert "mount -o loop,ro" in done.stderr
    assert not (tmp_path / "rec").exists()


def test_any_number_of_threads_gives_the_same(image: Path, scan: Callable) -> None:
    one, many = scan(image, "--threads", "1"), scan(image, "--threads", "7")
    for table in ("inodes", "extents", "free_extents", "layout", "paths"):
        assert one.rows(f"FROM {table}") == many.rows(f"FROM {table}")


# Where checksums are: those of e2fsprogs' defaults, and of other ways to lay groups and sums out.
SUMMED = (
    "default",
    "blocks_1k",
    "inline_data_1k",
    "bigalloc_1k",
    "meta_bg_1k",
    "32bit",
    "checksum_seed",
    "no_journal",
)


ROUNDS = sampled(10, 25)

OF_FILES = """
SELECT physical_bytes, length_bytes FROM extents JOIN inodes USING (inode)
WHERE physical_bytes IS NOT NULL AND kind <> 'directory'
UNION ALL SELECT physical_bytes, length_bytes FROM layout WHERE part IN ('journal', 'boot block', 'reserved descriptors')
UNION ALL SELECT physical_bytes, length_bytes FROM layout WHERE part IN ('super block', 'descriptors') AND number > 0
UNION ALL SELECT physical_bytes, length_bytes FROM layout WHERE part = 'indirect blocks' AND inode = 7
"""


def written_blocks(scan: Scan, content: bytes) -> list[int]:
    """Places of blocks that are not zeros, and neither the content of a file nor a backup: all of them are structures."""
    block = scan.one("SELECT block_bytes FROM file_systems")
    left_out = set()
    for first, length in scan.rows(OF_FILES):
        left_out |= set(range(first, first + length, block))
    places = range(0, len(content), block)
    return [place for place in places if place not in left_out and any(content[place : place + block])]


def is_rejected(image: Path, sound: Scan) -> bool:
    """Whether e2fsck finds an error in what is in use. The scan reads no other inodes, and no bits behind the end of a bitmap."""
    env = {**os.environ, "PATH": ext_images.PATH}
    done = subprocess.run(["e2fsck", "-fn", image], capture_output=True, text=True, env=env, check=False)
    unused = re.search(r"^Inode (\d+) passes checks, but checksum", done.stdout, flags=re.M)
    if unused and sound.one(f"SELECT count(*) FROM inodes WHERE inode = {unused[1]}") == 0:
        return False
    return done.returncode != 0 and "Padding at end of" not in done.stdout


@pytest.mark.parametrize("variant", some(SUMMED, 2))
def test_what_e2fsck_rejects_has_a_remark(variant: str, native: Path, scan: Callable, tmp_path: Path) -> None:
    """A bit here and there: whatever has a checksum is checked."""
    image = tmp_path / "image"
    ext_images.make(image, variant, tmp_path)
    content = image.read_bytes()
    sound = scan(image)
    block = sound.one("SELECT block_bytes FROM file_systems")
    places = written_blocks(sound, content)
    numbers = random.Random(3)
    rejected, silent = 0, []
    with damaged_copy(image, tmp_path / "damaged") as change:
        for round_ in range(ROUNDS):
            at = numbers.choice(places) + numbers.randrange(block)
            damaged = change({at: content[at] ^ 1 << numbers.randrange(8)})
            if not is_rejected(damaged, sound):
                continue
            rejected += 1
            done = scanned(native, damaged, tmp_path / f"rec{round_}")
            if done.returncode == 0 and not Scan(tmp_path / f"rec{round_}", "").issues():
                silent.append(at)
    assert rejected >= ROUNDS // 4
    assert silent == []
