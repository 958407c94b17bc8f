"""Step 4: what is handed over holds no contents, and with hashed names no name."""

from __future__ import annotations

import gzip
import json
import stat
import tarfile
from pathlib import Path

import duckdb
import pytest
from make_recording import RecordingMaker
from sysdock.analysis import Session
from sysdock.checkup.bundle import names_in, write_bundle
from sysdock.checkup.hashed_names import LEFT_OUT, Hasher, read_key, translate
from sysdock.checkup.ratio import JobTimes
from sysdock.checkup.statement import Step
from sysdock.checkup.steps import first_steps
from sysdock.checkup.user_input import Given
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.recording.native import import_quietly

ROOT = Path(__file__).resolve().parents[3]
# Nothing of these may survive hashing. None of them is a part of another word.
NAMES = (
    "zebraproj", "quaggadir", "okapifile", "tapirlib", "ibexprog", "gnuhost", "kudumount", "elandserver",
    "orixarg", "mooselog", "lynxfunc", "puma.dat", "sourcevole", "civetopt", "skunkpipe",
)  # fmt: skip
CONTENT = "SECRETCONTENT"


@pytest.fixture
def recording(maker: RecordingMaker) -> Path:
    """A recording with a name of its own in every place where one may stand."""
    calls = [
        {"t": n / 1e3, "call": "write", "path": "/zebraproj/quaggadir/okapifile", "transferred_bytes": 9, "dur_ns": 900_000,
         "comm": "ibexprog", "stack_id": 0}
        for n in range(500)
    ]  # fmt: skip
    calls += [
        {"t": 1, "call": "openat", "path": "puma.dat", "errno": "ENOENT", "comm": "ibexprog"},
        {"t": 2, "call": "read", "path": "skunkpipe:[7]", "kind": "pipe", "transferred_bytes": 5},
        {"t": 3, "call": "read", "path": "pipe:[42]", "kind": "pipe", "transferred_bytes": 5},
        {"t": 4, "call": "sendfile", "class": "copy", "path": "/zebraproj/a", "to_path": "/kudumount/b", "transferred_bytes": 5},
    ]  # fmt: skip
    life = {"pid": 100, "tid": 100, "depth": 0, "tree_order": 0, "start_ts_ns": 1_700_000_000_000_000_000, "execs": 1,
            "calls": 5, "command": "ibexprog --key=orixarg /zebraproj", "log": "mooselog"}  # fmt: skip
    frame = {
        "stack_id": 0,
        "frame": 0,
        "object": "/lib/tapirlib",
        "function": "lynxfunc",
        "offset": 1,
        "source": "sourcevole.c:3",
    }
    issue = {"source": "mooselog", "line": 3, "issue": "unknown_line", "understood": False,
             "detail": "detail of mooselog", "excerpt": f'write(3, "{CONTENT}"'}  # fmt: skip
    folder = maker.make(
        calls,
        processes=[life],
        stacks=[frame],
        import_issues=[issue],
        command="ibexprog orixarg",
        host="gnuhost",
        directory="/zebraproj/quaggadir",
        sources=[{"path": "/zebraproj/mooselog", "bytes": 1, "lines": 1}],
        clock={
            "kind": "epoch",
            "resolution_ns": 1,
            "has_durations": True,
            "note": [{"code": "clock/stated", "note": "of gnuhost"}],
        },
        options=["-P", "/zebraproj"],
    )
    add_environment(folder)
    return folder


def add_environment(folder: Path) -> None:
    """Mounts and a command, which the maker does not write."""
    manifest = json.loads((folder / "recording.json").read_text())
    part = folder / manifest["tables"]["environment"]["parts"][0]["file"]
    rows = [
        ("host", "name", "gnuhost", "recorder"),
        ("host", "machine", "x86_64", "recorder"),
        ("kernel", "release", "6.1", "recorder"),
        (
            "mount",
            "/kudumount",
            "nfs4 on elandserver:/zebraproj (rw,vers=4,addr=civetopt,rsize=1024k)",
            "recorder",
        ),
        ("command", "command", "ibexprog orixarg", "recorder"),
    ]
    values = ", ".join(str(row) for row in rows)
    duckdb.sql(
        f"COPY (SELECT * FROM (VALUES {values}) t(section, name, value, source)) TO '{part}' (FORMAT parquet)"
    )
    import hashlib

    entry = manifest["tables"]["environment"]
    data = part.read_bytes()
    entry |= {"rows": len(rows)}
    entry["parts"][0] |= {"rows": len(rows), "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (folder / "recording.json").write_text(json.dumps(manifest))


def steps_of(session: Session) -> list[Step]:
    from fractions import Fraction

    job = JobTimes(Fraction(1), Fraction(2), name="ibexprog orixarg")
    return first_steps(Given(job=job), session)


def bundle(recording: Path, path: Path, *, hashed: bool = False, with_commands: bool = False) -> Path:
    """Writes one and unpacks it; returns its folder."""
    with Session(Recording.open(recording), Library()) as session:
        write_bundle(path, session, steps_of(session), hashed=hashed, with_commands=with_commands, lang="en")
    target = path.parent / f"{path.name}.d"
    with tarfile.open(path) as archive:
        archive.extractall(target, filter="data")
    return target / "checkup"


def everything(folder: Path) -> str:
    """All text in the files as bytes, and all texts in their Parquet columns, which may be compressed."""
    found = []
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            found.append(file.read_bytes().decode("latin-1"))
        if file.suffix == ".parquet":
            for row in duckdb.sql(f"SELECT * FROM '{file}'").fetchall():
                found += [value for value in row if isinstance(value, str)]
    return "\n".join(found)


def test_the_names_are_there_before(recording: Path) -> None:
    """Or the tests below would look for what never was."""
    text = everything(recording)
    assert [name for name in (*NAMES, CONTENT) if name not in text] == []


def test_no_content_and_no_command_lines(recording: Path, tmp_path: Path) -> None:
    text = everything(bundle(recording, tmp_path / "b.tar.gz"))
    assert CONTENT not in text
    assert "orixarg" not in text
    assert "/zebraproj/quaggadir/okapifile" in text
    assert LEFT_OUT in text


def test_command_lines_where_asked_for(recording: Path, tmp_path: Path) -> None:
    text = everything(bundle(recording, tmp_path / "b.tar.gz", with_commands=True))
    assert "ibexprog --key=orixarg /zebraproj" in text
    assert CONTENT not in text


@pytest.mark.parametrize("with_commands", [False, True])
def test_no_name_survives_hashing(recording: Path, tmp_path: Path, with_commands: bool) -> None:
    path = tmp_path / "b.tar.gz"
    text = everything(bundle(recording, path, hashed=True, with_commands=with_commands))
    text += gzip.decompress(path.read_bytes()).decode("latin-1")
    assert [name for name in (*NAMES, CONTENT) if name in text] == []
    # What tells nothing about the user is kept.
    assert "pipe:[42]" in text
    assert "(rw,vers=4,rsize=1024k)" in text
    assert "x86_64" in text


def test_the_same_name_has_the_same_hash(recording: Path, tmp_path: Path) -> None:
    path = tmp_path / "b.tar.gz"
    folder = bundle(recording, path, hashed=True)
    hasher = Hasher(read_key(Path(f"{path}.key")))
    with Session(Recording.open(folder / "recording"), Library()) as session:
        paths = [name for (name,) in session.fetch("SELECT path FROM paths ORDER BY path_id")]
        [(mount,)] = session.fetch("SELECT name FROM environment WHERE section = 'mount'")
        assert session.fetch("SELECT count(*) FROM calls") == [(504,)]
    assert paths[0] == hasher.path("/zebraproj/quaggadir/okapifile")
    assert paths[0].split("/")[1] == hasher.word("zebraproj")
    assert mount == "/" + hasher.word("kudumount")


def test_findings_are_the_same_with_hashed_names(recording: Path, tmp_path: Path) -> None:
    plain = json.loads((bundle(recording, tmp_path / "a") / "diagnosis.json").read_text())
    hashed = json.loads((bundle(recording, tmp_path / "b", hashed=True) / "diagnosis.json").read_text())
    assert [(f["rule"], f["status"], f["gain_ns"]) for f in plain] == [
        (f["rule"], f["status"], f["gain_ns"]) for f in hashed
    ]
    assert any(f["status"] == "finding" for f in hashed)


def test_a_real_recording_can_be_opened_and_translated(native: Path, tmp_path: Path) -> None:
    recording = tmp_path / "rec"
    import_quietly(ROOT / "testdata" / "strace" / "odd_files.ttt_T_y.strace", recording)
    path = tmp_path / "b.tar.gz"
    folder = bundle(recording, path, hashed=True)
    with (
        Session(Recording.open(recording), Library()) as before,
        Session(Recording.open(folder / "recording"), Library()) as after,
    ):
        sql = "SELECT call, transferred_bytes, dur_ns FROM calls ORDER BY ts_ns, task_id, call"
        assert before.fetch(sql) == after.fetch(sql)
        rows = after.run("io/files").rows()
        names = "\n|\n".join(str(row[0]) for row in rows)
        original = {str(row[0]) for row in before.run("io/files").rows()}
    translated, unknown = translate(names, read_key(Path(f"{path}.key")), names_in(Recording.open(recording)))
    assert unknown == 0
    assert set(translated.split("\n|\n")) == original


def test_the_archive_tells_nothing_about_its_maker(recording: Path, tmp_path: Path) -> None:
    path = tmp_path / "b.tar.gz"
    bundle(recording, path)
    with tarfile.open(path) as archive:
        for entry in archive:
            assert (entry.uid, entry.gid, entry.uname, entry.gname, entry.mtime) == (0, 0, "", "", 0)


def test_the_key_is_for_its_owner_only(recording: Path, tmp_path: Path) -> None:
    path = tmp_path / "b.tar.gz"
    bundle(recording, path, hashed=True)
    assert stat.S_IMODE(Path(f"{path}.key").stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["b.tar.gz", "b.tar.gz.key"])
def test_nothing_is_overwritten(recording: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(UserError, match="already exists"):
        bundle(recording, tmp_path / "b.tar.gz", hashed=True)
    assert (tmp_path / name).read_text() == "mine"
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted([name, "rec"])


def test_half_a_bundle_is_never_left(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sysdock.to_disk._name", fail)
    with pytest.raises(OSError, match="No space"):
        bundle(recording, tmp_path / "b.tar.gz", hashed=True)
    assert [file.name for file in tmp_path.iterdir()] == ["rec"]


def test_texts_with_unknown_hashes_and_wrong_keys(tmp_path: Path) -> None:
    hasher = Hasher()
    text = f"{hasher.word('alpha')} and {hasher.word('beta')}, but not n12 or {'n' + 'a' * 16}x"
    assert translate(text, hasher.key, ["/x/alpha"]) == (text.replace(hasher.word("alpha"), "alpha"), 1)
    key = tmp_path / "key"
    key.write_text("hello")
    with pytest.raises(UserError, match="not the key"):
        read_key(key)
