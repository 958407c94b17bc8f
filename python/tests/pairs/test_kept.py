"""When a kept recording is judged, and what is the same to the recorder."""

from __future__ import annotations

from pathlib import Path

import kept
import pytest
from kept import essence
from pairs import FOLDER, VARIANTS, Pair, load

RUST = """//! What it is.
use std::fs;

/// A sum of "numbers".
pub fn sum(left: u32, /* of */ right: u32) -> char {
    let url = "http://a // no comment {";
    let raw = r#"// "neither" #"#; // but this
    '"'
}

#[cfg(test)]
mod tests {
    #[test]
    fn it() {
        assert_eq!("}", "}");
    }
}
"""


@pytest.fixture
def pair() -> Pair:
    return load(FOLDER / "rereads_c_header")


@pytest.fixture
def recordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Folders in place of recordings; what is kept goes to a folder of the test."""
    monkeypatch.setattr(kept, "KEPT", tmp_path / "kept")
    for variant in VARIANTS:
        (tmp_path / variant / "calls").mkdir(parents=True)
        (tmp_path / variant / "calls" / "part").write_text(variant)
    return {variant: tmp_path / variant for variant in VARIANTS}


def test_a_rewording_is_the_same_to_the_recorder() -> None:
    same = (
        RUST.replace("A sum", "The total")
        .replace("// but this", "")
        .replace("fn it", "fn that")
        .replace("\n", "\n\n")
    )
    assert essence(".rs", same) == essence(".rs", RUST)
    assert "tests" not in essence(".rs", RUST)
    assert "http://a // no comment {" in essence(".rs", RUST)


@pytest.mark.parametrize(
    ("old", "new"), [("u32", "u64"), ("no comment", "a comment"), ("neither", "both"), ("fs;", "io;")]
)
def test_another_program_is_another_one(old: str, new: str) -> None:
    assert essence(".rs", RUST.replace(old, new, 1)) != essence(".rs", RUST)


def test_a_description_of_a_column_is_the_same_to_the_recorder() -> None:
    table = 'name = "calls"\ntext = "One row."\n# For people.\n[[columns]]\nname = "x"\n'
    assert essence(".toml", table.replace("One row.", r"A row \"of\" calls.")) == essence(".toml", table)
    assert essence(".toml", table.replace('"x"', '"y"')) != essence(".toml", table)


def test_what_is_kept_is_found_again(pair: Pair, recordings: dict[str, Path], tmp_path: Path) -> None:
    assert kept.kept(pair, "kernel", tmp_path / "out") is None
    kept.keep(pair, "kernel", recordings, {"faulty": "1\n", "fixed": "1\n"})
    found = kept.kept(pair, "kernel", tmp_path / "out")
    assert found
    assert found.printed == {"faulty": "1\n", "fixed": "1\n"}
    assert {name: (path / "calls" / "part").read_text() for name, path in found.folders.items()} == {
        variant: variant for variant in VARIANTS
    }
    assert kept.kept(pair, "strace", tmp_path / "other") is None


@pytest.mark.parametrize("changed", ["recorder", "pair", "format"])
def test_what_was_recorded_of_something_else_is_not_judged(
    pair: Pair, recordings: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    kept.keep(pair, "kernel", recordings, {})
    if changed == "recorder":
        monkeypatch.setattr(kept, "_recorder_key", lambda: "another")
    elif changed == "format":
        monkeypatch.setattr(kept, "FORMAT_VERSION", 0)
    else:
        monkeypatch.setattr(kept, "_files_of", lambda _: [pair.folder / "pair.toml"])
    assert kept.kept(pair, "kernel", tmp_path / "out") is None


def test_a_key_depends_on_what_a_pair_uses(pair: Pair) -> None:
    shared = {
        path.name for path in kept._files_of(load(FOLDER / "case06_naoj_ls")) if path.parent.name == "shared"
    }
    assert "slowfs.c" in shared
    assert {path.name for path in kept._files_of(pair)} >= {"pair.toml", "faulty.c", "fixed.c"}
