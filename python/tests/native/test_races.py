"""The owner of a folder that root measures puts links, other folders and mounts in the way."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest
from racing import NOBODY, STEPS, make_race, races
from sysdock.sentences import fact, say

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root has more rights than the owner")


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"steps": STEPS}))
    return path


def test_nothing_outside_changes(native: Path, place: Path, plan: Path) -> None:
    ended = races(place, lambda measured: [native, "load", measured, "--plan", plan, "--rows"], swaps=150)
    # Some are not disturbed, or only after the files are open.
    assert ended.total() > 1


def test_it_is_done_by_the_owner(native: Path, place: Path) -> None:
    race = make_race(place)
    process = subprocess.Popen(
        [native, "load", race.folder, "--item", "log", "--for", "300s", "--rows"], stdout=subprocess.DEVNULL
    )
    try:
        workspace = None
        while workspace is None and process.poll() is None:
            workspace = next(race.folder.glob(".sysdock-load-*/owner"), None)
        assert workspace is not None
        found = workspace.parent.stat()
        assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (NOBODY, 0o700)
    finally:
        process.terminate()
        process.wait()
    assert list(race.folder.iterdir()) == []


def test_a_link_of_another_user_is_not_followed(native: Path, place: Path, plan: Path) -> None:
    race = make_race(place)
    link = race.folder / "link"
    link.symlink_to(race.outside)
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    before = race.before()
    for output in (
        [link, "--rows"],
        [place / "measured", "-o", link / "rec"],
        [place / "measured", "-o", link / "new" / "rec"],
    ):
        (place / "measured").mkdir(exist_ok=True)
        done = subprocess.run([native, "load", *output, "--plan", plan], capture_output=True, text=True)
        assert done.returncode == 2
        assert say(fact("paths/strangers_link", name="link", user=str(NOBODY)), "en") in done.stderr
    assert race.before() == before
