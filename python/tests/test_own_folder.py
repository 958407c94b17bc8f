"""Folders that others planted, or swap while we write: nothing of ours is written, changed or run there."""

from __future__ import annotations

import ast
import errno
import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from swapped_folders import WRITERS as WRITERS_OF_TRIALS
from swapped_folders import attack
from sysdock import to_disk
from sysdock.chart.output import write_atomically
from sysdock.checkup.site import update_rates, write_new
from sysdock.errors import UserError
from sysdock.experiment.scripts import refuse_strange_scripts
from sysdock.own_folder import (
    create,
    created,
    opened,
    refuse_existing,
    refuse_replaceable,
    set_mode,
    set_owner,
)
from sysdock.walk import open_folder

PACKAGE = Path(__file__).resolve().parents[1] / "sysdock"
NOBODY = 65534


@pytest.fixture
def as_root() -> None:
    """Skips where no folder can be given to somebody else."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to have folders of others")


def mode_of(path: Path) -> int:
    """The permission bits."""
    return path.stat().st_mode & 0o7777


def test_nothing_changes_mode_or_owner_by_path() -> None:
    """A path may lead elsewhere by the time it is used: fchmod(2) and fchown(2) of what is open."""
    forbidden = {"chmod", "chown", "lchown", "lchmod"}
    found = [
        f"{module.relative_to(PACKAGE)}:{node.lineno}"
        for module in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in forbidden
    ]
    assert found == []


@pytest.mark.parametrize("write", ["a folder", "a file", "a new file"])
def test_root_follows_no_link_of_a_stranger_above_what_it_writes(
    as_root: None, tmp_path: Path, write: str
) -> None:
    (tmp_path / "outside").mkdir()
    link = tmp_path / "link"
    link.symlink_to("outside")
    does: dict[str, Callable[[Path], object]] = {
        "a folder": lambda path: create(path).close(),
        "a file": lambda path: to_disk.write(path, b""),
        "a new file": lambda path: write_new(path, b""),
    }
    does[write](link / "ours")
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(UserError) as refused:
        does[write](link / "strangers")
    assert refused.value.code == "paths/strangers_link"
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["ours"]


def test_a_path_leads_where_the_kernel_says(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "file").touch()
    (tmp_path / "to-a").symlink_to("a")
    (tmp_path / "to-b").symlink_to(tmp_path / "to-a/b")
    (tmp_path / "loop").symlink_to("loop")
    for path in ("", "a/./b/..", "to-a/b", "to-b/../b"):
        handle = open_folder(tmp_path / path)
        assert os.path.samestat(os.fstat(handle), (tmp_path / path).stat())
        within = open_folder(Path(f"/proc/self/fd/{handle}"))
        assert os.path.samestat(os.fstat(within), os.fstat(handle))
        os.close(within)
        os.close(handle)
    for path, number in (("file", errno.ENOTDIR), ("none", errno.ENOENT), ("loop", errno.ELOOP)):
        with pytest.raises(OSError, match=path) as raised:
            open_folder(tmp_path / path)
        assert raised.value.errno == number


def test_a_new_folder_is_ours_alone_whatever_the_umask(tmp_path: Path) -> None:
    folder = create(tmp_path / "above" / "new")
    assert (folder.is_new, mode_of(tmp_path / "above" / "new")) == (True, 0o700)
    folder.close()
    (tmp_path / "open").mkdir(mode=0o777)
    set_mode(tmp_path / "open", 0o777)
    create(tmp_path / "open").close()
    assert mode_of(tmp_path / "open") == 0o700


@pytest.mark.parametrize("kind", ["file", "link", "dangling", "full"])
def test_what_is_there_already_is_refused(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    (tmp_path / "empty").mkdir()
    if kind == "file":
        place.touch()
    elif kind == "full":
        place.mkdir()
        (place / "x").touch()
    else:
        place.symlink_to("empty" if kind == "link" else "nothing")
    for refuses in (create, refuse_existing):
        with pytest.raises(UserError) as error:
            refuses(place)
        assert error.value.code == "recording/exists"
    assert os.path.lexists(place)


@pytest.mark.usefixtures("as_root")
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "planted"
    place.mkdir()
    set_owner(place, NOBODY, NOBODY)
    for refuses in (create, refuse_existing):
        with pytest.raises(UserError) as error:
            refuses(place)
        assert error.value.code == "recording/of_another_user"
    with pytest.raises(UserError) as error, opened(place):
        pass
    assert error.value.code == "recording/of_another_user"
    set_owner(place, 0, 0)
    set_mode(place, 0o770)
    with pytest.raises(UserError) as error, opened(place):
        pass
    assert error.value.code == "recording/others_write"


def swapped(folder: Path, victim: Path) -> None:
    """What the owner of the folder above does at any moment: another folder has the name."""
    folder.rename(folder.with_name("away"))
    folder.symlink_to(victim)


def test_a_folder_that_is_swapped_for_a_link_gets_nothing(tmp_path: Path) -> None:
    victim, place = tmp_path / "victim", tmp_path / "new"
    victim.mkdir()
    (victim / "data").write_text("precious")
    with created(place) as reach:
        (reach / "part").mkdir()
        swapped(place, victim)
        (reach / "part" / "file").write_text("ours")
        to_disk.write(reach / "data", b"ours")
    assert {path.name for path in victim.iterdir()} == {"data"}
    assert (victim / "data").read_text() == "precious"
    assert (tmp_path / "away" / "part" / "file").read_text() == "ours"


def test_what_is_cleared_after_an_error_is_only_what_was_made(tmp_path: Path) -> None:
    victim, place = tmp_path / "victim", tmp_path / "new"
    victim.mkdir()
    (victim / "data").write_text("precious")

    def fail() -> None:
        with created(place) as reach:
            (reach / "data").mkdir()
            (reach / "link").symlink_to(victim)
            swapped(place, victim)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert (victim / "data").read_text() == "precious"
    assert list((tmp_path / "away").iterdir()) == []


def test_errors_name_the_folder_and_not_its_descriptor(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file") as error, created(tmp_path / "new") as reach:
        (reach / "missing" / "file").write_text("x")
    assert error.value.filename == str(tmp_path / "new" / "missing" / "file")
    assert not (tmp_path / "new").exists()


WRITERS: dict[str, Callable[[Path], None]] = {
    "to_disk": lambda path: to_disk.write(path, b"new"),
    "chart": lambda path: write_atomically(path, b"new"),
    "site": lambda path: write_new(path, b"new"),
    "rates": lambda path: update_rates(path, Path("/x"), {"read": 1.0}),
}


@pytest.mark.parametrize("name", list(WRITERS))
def test_whoever_swaps_a_file_while_it_is_written_has_no_other_file_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The temporary file is replaced by a link to a file of root, before its mode and owner are set."""
    victim, folder = tmp_path / "shadow", tmp_path / "theirs"
    folder.mkdir()
    victim.write_text("precious")
    set_mode(victim, 0o600)
    before = victim.stat()
    real = os.fsync
    seen: list[str] = []

    def attack(handle: int) -> None:
        for path in folder.iterdir():
            if path.name != "out.svg":
                seen.append(path.name)
                path.unlink()
                path.symlink_to(victim)
        real(handle)

    monkeypatch.setattr(os, "fsync", attack)
    if name == "rates":
        (folder / "out.svg").write_text('[rates."/y"]\nread_bytes_s = 1.0\n')
    with suppress(OSError, UserError):
        WRITERS[name](folder / "out.svg")
    after = victim.stat()
    assert seen
    assert victim.read_text() == "precious"
    assert (after.st_mode, after.st_uid, after.st_size) == (before.st_mode, before.st_uid, before.st_size)


def test_a_planted_temporary_file_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "out.new").symlink_to("victim")
    to_disk.write(tmp_path / "out", b"new")
    assert ((tmp_path / "victim").read_text(), (tmp_path / "out").read_text()) == ("precious", "new")


@pytest.mark.usefixtures("as_root")
def test_a_place_that_somebody_else_could_replace_is_refused(tmp_path: Path) -> None:
    above = tmp_path / "theirs"
    above.mkdir()
    refuse_replaceable(above / "new" / "rec")
    set_mode(above, 0o777)
    with pytest.raises(UserError) as error:
        refuse_replaceable(above / "new" / "rec")
    assert error.value.code == "recording/others_may_replace"
    set_mode(above, 0o1777)
    refuse_replaceable(above / "new" / "rec")
    set_owner(above, NOBODY, NOBODY)
    with pytest.raises(UserError):
        refuse_replaceable(above / "new" / "rec")


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize("damage", ["owner", "mode", "folder", "link", "none"])
def test_root_runs_no_script_that_somebody_else_may_have_written(tmp_path: Path, damage: str) -> None:
    (tmp_path / "within").mkdir()
    script = tmp_path / "within" / "run.sh"
    script.write_text("true")
    if damage == "owner":
        set_owner(script, NOBODY, NOBODY)
    elif damage == "mode":
        set_mode(script, 0o666)
    elif damage == "folder":
        set_mode(tmp_path / "within", 0o777)
    elif damage == "link":
        script.rename(tmp_path / "other")
        script.symlink_to("../other")
    command = ["sh", "-e", str(script), f"{tmp_path}/missing", "/bin/true"]
    if damage == "none":
        refuse_strange_scripts(command, tmp_path)
        return
    with pytest.raises(UserError) as error:
        refuse_strange_scripts(command, tmp_path)
    assert error.value.code == "recording/scripts_of_others"


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize("verb", ["experiment", "merge", "probe", "health", "export"])
def test_verbs_that_write_take_no_folder_of_somebody_else(
    tmp_path: Path, verb: str, merged: list[Path]
) -> None:
    from click.testing import CliRunner
    from sysdock.cli import sysdock

    planted = tmp_path / "planted"
    planted.mkdir()
    set_owner(planted, NOBODY, NOBODY)
    words = {
        "experiment": ["experiment", "compare", "--blocks", "1", "-o", planted, "true", "true"],
        "merge": ["merge", *merged, "-o", planted],
        "probe": ["probe", "init", tmp_path, "--series", planted],
        "health": ["health", tmp_path, "--nodes", "a,b", "--launch", "sh -c", "-o", planted],
        "export": ["export", merged[0], "--to", "csv", "-o", planted],
    }[verb]
    with pytest.raises(UserError) as error:
        CliRunner().invoke(sysdock, [*map(str, words)], catch_exceptions=False, standalone_mode=False)
    assert error.value.code == "recording/of_another_user"
    assert list(planted.iterdir()) == []


@pytest.fixture
def merged(tmp_path: Path) -> list[Path]:
    """Two recordings."""
    from sysdock.recording.native import import_quietly

    found = []
    for name in ("a", "b"):
        log = tmp_path / f"{name}.log"
        log.write_text('4242  1700000000.000000 openat(AT_FDCWD, "/x", O_RDONLY) = 3 <0.000010>\n')
        import_quietly(log, tmp_path / f"rec-{name}")
        assert json.loads((tmp_path / f"rec-{name}" / "recording.json").read_text())["captures"]
        found.append(tmp_path / f"rec-{name}")
    return found


@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize("number", range(len(WRITERS_OF_TRIALS)))
def test_nothing_is_written_elsewhere_while_somebody_swaps_files_for_links(number: int) -> None:
    """`tools/break attack folders` makes more of them. Not in a folder of pytest, which others cannot enter."""
    with tempfile.TemporaryDirectory() as folder:
        assert attack(number, Path(folder)) is None
