"""Recordings of several ranks as one: what rows say stays the same, what names them stays apart."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from make_recording import STARTED_NS, RecordingMaker
from row_meanings import differences
from small_disk import small_disk
from sysdock.analysis import Session
from sysdock.analysis.diagnosis import _is_beyond
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording import Recording
from sysdock.recording.limits import made_here
from sysdock.recording.merged_ranks import members_of, names_of
from sysdock.recording.merging import Merged, Wishes, merge
from sysdock.recording.writing import write_manifest

RANK = {"section": "job", "source": "recorder"}


def call(t: float, name: str, path: str, **more: Any) -> dict[str, Any]:
    return {"t": t, "call": name, "path": path, "dur_ns": 1_000_000, "comm": "solver", **more}


def change(folder: Path, **keys: Any) -> Path:
    """Other values of recording.json, so that no two recordings are the same."""
    place = folder / "recording.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), **keys}))
    return folder


def merged(folders: Sequence[Path], **wishes: Any) -> Merged:
    recordings = [Recording.open(folder) for folder in folders]
    return merge(recordings, Library(), folders[0].parent / "job", Wishes(**wishes))


def ranks_of(
    folders: Sequence[Path], ranks: Sequence[tuple[str, int]] = (), *, in_order: bool = False
) -> tuple[list[tuple[int | None, str, str]], list[str]]:
    recordings = [Recording.open(folder) for folder in folders]
    members, remarks = members_of(recordings, Library(), ranks, in_order=in_order)
    return [(member.rank, member.name, member.rank_from) for member in members], remarks


def fetch(found: Merged, sql: str) -> list[tuple[Any, ...]]:
    with Session(found.recording) as session:
        return session.fetch(sql)


def two_ranks(maker: RecordingMaker, **second: Any) -> list[Path]:
    first = maker.make(name="rank.0", host="n0")
    return [first, maker.make(name="rank.1", **{"host": "n0", "command": "solver", **second})]


MOUNTS = [
    {"section": "mount", "name": point, "value": f"{type_} on x (rw)", "source": "recorder"}
    for point, type_ in (("/", "ext4"), ("/scratch", "lustre"))
]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], Merged]:
    """Four recordings on two hosts: two with all tables of waits, two of calls only, which lost something."""
    maker = RecordingMaker(Library(), tmp_path_factory.mktemp("job"))
    stack = {"stack_id": 3, "frame": 0, "object": "/bin/x", "function": "f", "address": 1}
    pipe = call(2, "read", "pipe:[7]", kind="pipe")
    calls = [call(0, "read", "/tmp/a"), call(1, "read", "/scratch/a"), pipe]
    many = [call(3 + n / 1000, "read", f"/scratch/{n * 7919 % 501}") for n in range(3000)]
    told = [{"section": "cpu", "name": "online", "value": value, "source": "recorder"} for value in "48"]
    lossy = {"lost_events": 3, "complete": False, "ended_by": "interrupted"}
    folders = [
        change(maker.make_waits("r0"), host="n0", command="a"),
        change(maker.make_waits("r1"), host="n1", command="b"),
        maker.make([*calls, *many], "r2", host="n0", stacks=[stack], environment=[*MOUNTS, told[0]]),
        maker.make([*calls, *many], "r3", host="n1", environment=[*MOUNTS, told[1]], **lossy),
    ]
    return folders, merged(folders)


Job = tuple[list[Path], Merged]


class TestRows:
    """What the rows of a merge say."""

    def test_rows_of_all_tables_say_what_they_said_in_their_recordings(self, job: Job) -> None:
        folders, found = job
        assert differences([Recording.open(each) for each in folders], found.recording, Library()) == []

    def test_processes_with_one_pid_stay_apart(self, job: Job) -> None:
        rows = fetch(job[1], "SELECT rank, pid, process_id, log FROM processes WHERE pid = 100 ORDER BY rank")
        assert [row[:2] for row in rows] == [(0, 100), (1, 100), (2, 100), (3, 100)]
        assert len({row[2] for row in rows}) == 4
        assert [row[3] for row in rows] == ["r0: t.log", "r1: t.log", "r2: t.log", "r3: t.log"]
        assert fetch(job[1], "SELECT rank, count(*) FROM calls GROUP BY ALL ORDER BY ALL")[2:] == [
            (2, 3003),
            (3, 3003),
        ]

    def test_a_path_is_one_file_unless_it_lies_on_disks_of_two_hosts_or_is_no_path(self, job: Job) -> None:
        rows = fetch(
            job[1],
            "SELECT path, count(*) FROM paths WHERE path LIKE '%a' OR kind = 'pipe' GROUP BY ALL ORDER BY ALL",
        )
        assert rows == [("/data", 1), ("/scratch/a", 1), ("/tmp/a", 2), ("pipe:[7]", 2)]
        assert fetch(job[1], "SELECT count(*), count(DISTINCT comm) FROM commands") == [(1, 1)]

    def test_rows_of_a_rank_keep_their_order(self, job: Job) -> None:
        times = [ts for (ts,) in fetch(job[1], "SELECT ts_ns FROM calls")][-6006:]
        assert times[:3003] == sorted(times[:3003])
        assert times[3003:] == times[:3003]

    def test_cpus_and_devices_of_hosts_stay_apart(self, job: Job) -> None:
        cpus = (
            "SELECT DISTINCT t.rank, s.cpu FROM samples AS s JOIN processes AS t USING (task_id) ORDER BY ALL"
        )
        assert fetch(job[1], cpus) == [(0, 0), (1, 1)]
        assert fetch(job[1], "SELECT rank, first_cpu FROM ranks") == [(0, 0), (1, 1), (2, 0), (3, 1)]
        assert fetch(job[1], "SELECT device FROM block_requests ORDER BY ALL") == [("n0:sda",), ("n1:sda",)]

    def test_what_all_say_of_the_environment_stands_there_once(self, job: Job) -> None:
        rows = fetch(
            job[1], "SELECT name, value, source FROM environment WHERE section <> 'mount' ORDER BY ALL"
        )
        assert rows == [
            ("hostname", "box", "recorder"),
            ("online", "4", "recorder of r2"),
            ("online", "8", "recorder of r3"),
        ]

    def test_a_table_that_only_some_have(self, job: Job) -> None:
        assert "table `samples`: only 2 of 4 recordings have it" in job[1].remarks

    def test_what_is_left_out_is_counted(self, job: Job) -> None:
        folders, found = job
        rows = sum(Recording.open(folder).rows("system_metrics") for folder in folders[:2])
        assert found.recording.captures[0]["counts"]["left_out_system_metrics"] == rows == 4
        assert any("`system_metrics` is left out (4 rows)" in remark for remark in found.remarks)
        assert "system_metrics" not in found.recording.tables

    def test_captures_of_one_sort_add_up(self, job: Job) -> None:
        recording = job[1].recording
        own, logs = recording.captures[0], recording.captures[-1]
        assert (own["recorder"], own["total"]) == ("merge", 4)
        assert (logs["total"], logs["lost"], logs["ended_by"]) == (6008, 3, "interrupted")
        assert recording.manifest["complete"] is False

    def test_rules_about_one_command_are_silent(self, job: Job) -> None:
        folders, found = job
        # With sched and without critical_path: it says `unknown`, but of a merge nothing at all.
        rule = Library().rule("time/serial")
        with Session(found.recording) as of_all, Session(Recording.open(folders[2])) as of_one:
            assert _is_beyond(of_all, rule)
            assert "run_states" in found.recording.tables
            assert of_one.missing(rule)

    def test_scans_of_two_nodes_keep_their_inodes_and_devices_apart(self, maker: RecordingMaker) -> None:
        folders = [change(maker.make_scan(f"scan{n}"), host=f"n{n}") for n in (0, 1)]
        found = merged(folders)
        assert differences([Recording.open(each) for each in folders], found.recording, Library()) == []
        assert fetch(found, "SELECT count(DISTINCT inode), count(DISTINCT device) FROM extents") == [(2, 2)]
        rows = fetch(found, "SELECT r.rank, r.inode_offset, r.device_offset FROM ranks AS r ORDER BY 2")
        assert rows == [(None, 0, 0), (None, 13, 1)]


class TestClock:
    """One clock for all."""

    def test_times_of_a_rank_are_shifted_by_its_offset(self, maker: RecordingMaker) -> None:
        folders = two_ranks(maker, host="n1")
        found = merged(folders, offsets=(("rank.1", -2_000_000_000),))
        rows = fetch(found, "SELECT rank, min(ts_ns) FROM calls GROUP BY ALL ORDER BY ALL")
        assert rows == [(0, STARTED_NS), (1, STARTED_NS - 2_000_000_000)]
        assert found.recording.started_ns == STARTED_NS - 2_000_000_000
        starts = fetch(
            found, "SELECT min(start_ts_ns) - $start FROM processes".replace("$start", str(STARTED_NS))
        )
        assert starts == [(-2_000_000_000,)]
        assert found.remarks == []

    def test_that_nobody_knows_how_clocks_compare_is_said(self, maker: RecordingMaker) -> None:
        third = maker.make(name="rank.2", host="n1", command="another")
        found = merged([*two_ranks(maker, host="n1"), third])
        assert any("rank.1: another host, and nothing shows how its clock" in text for text in found.remarks)
        assert fetch(found, "SELECT offset_from FROM ranks ORDER BY rank") == [
            ("first",),
            ("unknown",),
            ("same host",),
        ]

    def test_shared_files_tell_how_far_clocks_are_apart(self, maker: RecordingMaker) -> None:
        flags = {"class": "open", "open_flags": "O_WRONLY|O_CREAT|O_EXCL", "result": 3}
        maker.make([call(10.0, "openat", "/scratch/go", **flags)], "rank.0", host="n0")
        look = {"call": "stat", "class": "stat", "path": "/scratch/go", "dur_ns": 100_000}
        looks = [{"t": 109.99, "errno": "ENOENT", **look}, {"t": 110.01, **look}]
        maker.make(looks, "rank.1", host="n1")
        found = merged([maker.folder / "rank.0", maker.folder / "rank.1"], align=True)
        columns = "offset_ns, least_offset_ns, greatest_offset_ns, offset_from"
        [row] = fetch(found, f"SELECT {columns} FROM ranks WHERE rank = 1")
        # It was created at 10 s, and found until 110.0111 s; it was created until 10.002 s, and missed at 109.99 s.
        assert row == (-99_999_550_000, -100_011_100_000, -99_988_000_000, "shared files")
        assert "fit 1 shared files" in found.remarks[0]

    def test_without_a_shared_file_nothing_is_added_and_that_is_said(self, maker: RecordingMaker) -> None:
        folders = [maker.make([call(0, "read", f"/f{n}")], f"rank.{n}", host=f"n{n}") for n in (0, 1)]
        found = merged(folders, align=True)
        assert fetch(found, "SELECT offset_ns, offset_from FROM ranks WHERE rank = 1") == [(0, "unknown")]
        assert "rank.1: no shared file to compare clocks by" in found.remarks[0]

    @pytest.mark.parametrize(
        ("kind", "said"), [("order", "its log has no clock"), ("relative", "count from its first line")]
    )
    def test_a_log_without_a_time_is_refused(self, maker: RecordingMaker, kind: str, said: str) -> None:
        with pytest.raises(UserError, match=said):
            merged(two_ranks(maker, clock={"kind": kind, "has_durations": True}))
        assert not (maker.folder / "job").exists()

    def test_a_time_that_an_offset_does_not_fit_is_refused(self, maker: RecordingMaker) -> None:
        with pytest.raises(UserError, match="cannot be merged: "):
            merged(
                two_ranks(maker, host="n1", started_ns=1),
                offsets=(("rank.1", 1 << 61), ("rank.1", 1 << 61), ("rank.1", 1 << 61), ("rank.1", 1 << 61)),
            )
        assert not (maker.folder / "job").exists()

    def test_an_offset_for_nobody_is_an_error(self, maker: RecordingMaker) -> None:
        with pytest.raises(UserError, match="--offset n7: no recording of that name"):
            merged(two_ranks(maker), offsets=(("n7", 1),))


class TestRanks:
    """Which rank a recording is."""

    def told(self, maker: RecordingMaker, *variables: dict[str, int]) -> list[Path]:
        return [
            maker.make(
                name=f"r{place}",
                environment=[{"name": name, "value": str(value), **RANK} for name, value in own.items()],
                command=str(place),
            )
            for place, own in enumerate(variables)
        ]

    def test_the_number_is_what_mpi_told_the_processes(self, maker: RecordingMaker) -> None:
        outer = {"SLURM_PROCID": 0, "PMI_SIZE": 3}
        found, remarks = ranks_of(self.told(maker, {"PMI_RANK": 2, **outer}, {"PMI_RANK": 0, **outer}))
        assert found == [(0, "r1", "PMI_RANK"), (2, "r0", "PMI_RANK")]
        assert remarks == ["the job has 3 ranks, 2 are merged"]

    def test_without_that_it_is_the_order_given(self, maker: RecordingMaker) -> None:
        assert ranks_of(self.told(maker, {}, {})) == ([(0, "r0", "order"), (1, "r1", "order")], [])

    def test_the_user_may_say_it(self, maker: RecordingMaker) -> None:
        found, _ = ranks_of(self.told(maker, {"PMI_RANK": 0}, {}), (("r0", 5), ("r1", 4)))
        assert found == [(4, "r1", "--rank"), (5, "r0", "--rank")]

    @pytest.mark.parametrize("second", [{}, {"PMI_RANK": 0}])
    def test_recordings_that_contradict_each_other_are_refused(
        self, maker: RecordingMaker, second: dict[str, int]
    ) -> None:
        folders = self.told(maker, {"PMI_RANK": 0}, second)
        with pytest.raises(UserError, match="do not agree on their ranks: r0 has PMI_RANK=0"):
            ranks_of(folders)
        assert ranks_of(folders, in_order=True)[0] == [(0, "r0", "order"), (1, "r1", "order")]

    @pytest.mark.parametrize(
        ("ranks", "said"),
        [
            ((("r0", 1),), "not for r1"),
            ((("r0", 1), ("r1", 1)), "r0 and r1 are both rank 1"),
            ((("r0", 1), ("r9", 2)), "--rank r9: no recording"),
            ((("r0", 1 << 40), ("r1", 2)), "is not a rank number"),
        ],
    )
    def test_numbers_by_hand_must_fit(self, maker: RecordingMaker, ranks: Any, said: str) -> None:
        with pytest.raises(UserError, match=said):
            ranks_of(self.told(maker, {}, {}), ranks)

    def test_names_are_the_parts_in_which_paths_differ(self) -> None:
        assert names_of(["/a/x", "/a/y"]) == ["x", "y"]
        assert names_of(["/a/n1/rec", "/a/n2/rec"]) == ["n1", "n2"]
        assert names_of(["/a/n1/rec", "/b/n1/rec"]) == ["/a/n1/rec", "/b/n1/rec"]


class TestRefused:
    """What cannot be merged leaves nothing behind."""

    def test_the_same_recording_twice(self, maker: RecordingMaker) -> None:
        folder = maker.make()
        with pytest.raises(UserError, match="the same recording was given twice"):
            merged([folder, folder])

    def test_one_alone(self, maker: RecordingMaker) -> None:
        with pytest.raises(UserError, match="nothing to merge"):
            merged([maker.make()])

    @pytest.mark.parametrize("kind", ["make_experiment", "make_load", "make_probes", "make_jobs"])
    def test_recordings_of_another_sort(self, maker: RecordingMaker, kind: str) -> None:
        with pytest.raises(UserError, match="cannot be merged"):
            merged([maker.make(), getattr(maker, kind)()])

    def test_a_merge_again(self, maker: RecordingMaker) -> None:
        folders = two_ranks(maker)
        done = merged(folders).recording.folder
        with pytest.raises(UserError, match="is a merged recording itself"):
            merge(
                [Recording.open(done), Recording.open(folders[0])], Library(), maker.folder / "more", Wishes()
            )

    def test_a_folder_that_exists(self, maker: RecordingMaker) -> None:
        folders = two_ranks(maker)
        (maker.folder / "job").mkdir()
        (maker.folder / "job" / "mine").touch()
        with pytest.raises(UserError, match="already exists"):
            merged(folders)
        assert os.listdir(maker.folder / "job") == ["mine"]

    def test_a_damaged_part(self, maker: RecordingMaker) -> None:
        folders = two_ranks(maker)
        part = Recording.open(folders[1]).parts("calls")[0]
        part.write_bytes(part.read_bytes()[:-1] + b"x")
        with pytest.raises(UserError, match="does not match the hash"):
            merged(folders)
        assert not (maker.folder / "job").exists()

    def test_a_table_with_a_key_twice(self, maker: RecordingMaker) -> None:
        row = {"path": "/a", "kind": "file", "path_id": 0}
        folder = maker.write({"paths": [row, row], "processes": []}, "broken")
        with pytest.raises(UserError, match="1 rows have the `path_id` of another row"):
            merged([folder, maker.make()])

    def test_a_number_below_zero(self, maker: RecordingMaker) -> None:
        folder = maker.write(
            {"paths": [{"path": "/a", "kind": "file", "path_id": -1}], "processes": []}, "broken"
        )
        with pytest.raises(UserError, match="-1 in `path_id` is not a row number"):
            merged([folder, maker.make()])

    @pytest.mark.parametrize("value", ["9" * 5000, "1" * 10, "-1"])
    def test_a_rank_that_is_no_number_of_one(self, maker: RecordingMaker, value: str) -> None:
        row = {"section": "job", "name": "PMI_RANK", "value": value, "source": "recorder"}
        folders = [maker.make(name=name, environment=[row], command=name) for name in ("a", "b")]
        assert [rank for rank, _, _ in ranks_of(folders)[0]] == [0, 1]

    def test_a_column_of_another_type(self, maker: RecordingMaker) -> None:
        folder = maker.make(name="odd")
        part = Recording.open(folder).parts("calls")[0]
        duckdb.execute(f"COPY (SELECT {{'a': 1}} AS ts_ns, [1] AS tid) TO '{part}'")
        manifest = json.loads((folder / "recording.json").read_text())
        entry = manifest["tables"]["calls"]
        entry["rows"] = entry["parts"][0]["rows"] = 1
        entry["parts"][0] |= {
            "bytes": part.stat().st_size,
            "sha256": hashlib.sha256(part.read_bytes()).hexdigest(),
        }
        write_manifest(folder, manifest)
        with pytest.raises(UserError):
            merged([folder, maker.make()])

    def test_more_numbers_than_fit(self, maker: RecordingMaker) -> None:
        folders = [
            maker.write(
                {"paths": [{"path": f"/{n}", "kind": "file", "path_id": (1 << 31) - 1}], "processes": []},
                f"r{n}",
            )
            for n in (0, 1)
        ]
        with pytest.raises(UserError, match="numbers of paths are more than"):
            merged(folders)

    def test_an_interrupt_leaves_nothing(self, maker: RecordingMaker) -> None:
        recordings = [Recording.open(folder) for folder in two_ranks(maker)]

        def interrupt(table: str) -> None:
            if table == "processes":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            merge(recordings, Library(), maker.folder / "job", Wishes(), interrupt)
        assert not (maker.folder / "job").exists()

    def test_a_full_disk_leaves_nothing(self, maker: RecordingMaker, tmp_path: Path) -> None:
        recordings = [Recording.open(folder) for folder in two_ranks(maker)]
        with small_disk(tmp_path / "small", 5 * 4096) as disk:
            with pytest.raises(OSError, match="No space left"):
                merge(recordings, Library(), disk / "job", Wishes())
            assert os.listdir(disk) == []


def test_a_merge_of_recordings_from_elsewhere_keeps_their_limits(maker: RecordingMaker) -> None:
    own = [maker.make(name=f"own{n}", command=str(n)) for n in (0, 1)]
    for folder in own:
        write_manifest(folder, json.loads((folder / "recording.json").read_text()), is_own=True)
    assert made_here(merged(own).recording)
    foreign = maker.make(name="foreign", host="n9")
    recordings = [Recording.open(each) for each in (own[0], foreign)]
    assert not made_here(merge(recordings, Library(), maker.folder / "mixed", Wishes()).recording)


def test_each_number_that_names_a_row_says_of_which_table(library: Library) -> None:
    spaces = {table.name for table in library.tables()} | {"cpus", "host"}
    about = {"experiment", "load", "probe", "jobs", "job", "dump"}
    for table in library.tables():
        for column in table.columns:
            assert column.id_of is None or column.id_of in spaces, (table.name, column.name)
            names = column.name.endswith("_id") and column.name != "user_id"
            if names and table.stored and table.about not in about:
                assert column.id_of, (table.name, column.name)
