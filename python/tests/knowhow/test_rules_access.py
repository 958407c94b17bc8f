"""Rules on how a program goes about its files, on the patterns they are for and on those they must leave alone."""

from __future__ import annotations

import pytest
from rule_calls import NO_DURATIONS, Calls, lasting, many, one, opens, transfers, untimed
from sysdock.analysis.finding import fold

MS = 1_000_000


def at(path: str, places: list[tuple[int, int]], **more: object) -> Calls:
    """Reads of a file: (offset, bytes) each."""
    return [call | {"offset_bytes": o} for o, n in places for call in transfers(path, [n], **more)]


class TestRereads:
    def test_a_file_read_again_and_again_is_found(self, judge) -> None:
        finding = one(judge("io/rereads", at("/t", [(0, 4096), (4096, 1904)] * 25)))
        assert (finding.status, finding.subject, finding.value) == ("finding", "/t", 25)
        # 24 of 25 passes bring nothing new.
        assert (finding.cost_ns, finding.gain_ns, finding.certainty) == (50_000, 48_000, "high")
        assert (
            "146.5 KiB were read from 5.86 KiB of data: each byte 25 times on average, in 50 reads"
            in finding.reason
        )
        assert finding.explained_by == ()

    def test_bytes_that_reads_have_in_common_count_once(self, judge) -> None:
        finding = one(judge("io/rereads", at("/t", [(0, 8192), (4096, 8192), (4096, 100)] * 25)))
        bytes_read, distinct = 25 * (2 * 8192 + 100), 12_288
        assert finding.value == round(bytes_read / distinct, 2)
        assert finding.gain_ns == round(75_000 * (1 - distinct / bytes_read))

    def test_a_file_read_once_is_fine(self, judge) -> None:
        places = [(4096 * n, 4096) for n in range(200)]
        assert one(judge("io/rereads", at("/t", [*places, (819_200, 0)]))).status == "ok"

    @pytest.mark.parametrize(("known", "status"), [(25, "finding"), (24, "ok")])
    def test_each_byte_must_be_read_twice(self, judge, known: int, status: str) -> None:
        places = [(100 * n, 100) for n in range(50 - known)]
        assert one(judge("io/rereads", at("/t", places + places[:known]))).status == status

    @pytest.mark.parametrize(("reads", "status"), [(50, "finding"), (49, "ok")])
    def test_fewer_than_fifty_reads_are_fine(self, judge, reads: int, status: str) -> None:
        assert one(judge("io/rereads", at("/t", [(0, 100)] * reads))).status == status

    @pytest.mark.parametrize(("elapsed", "status"), [(5 * MS, "finding"), (5 * MS + 10_000, "ok")])
    def test_what_was_known_takes_a_hundredth_of_the_time(self, judge, elapsed: int, status: str) -> None:
        # 100 us of reading, half of it again.
        twice = at("/u", [(100 * n, 100) for n in range(50)] * 2)
        assert one(judge("io/rereads", lasting(twice, elapsed))).status == status

    def test_what_many_processes_read_once_each_is_said_so(self, judge) -> None:
        calls = [call for pid in range(1, 61) for call in at("/t", [(0, 4096)], pid=pid, tid=pid)]
        finding = one(judge("io/rereads", calls))
        assert (finding.value, finding.certainty) == (60, "medium")
        assert finding.reason.startswith("60 processes read the same 4.00 KiB, 240.0 KiB in total")
        assert finding.explained_by == ("processes/process_creation",)

    def test_without_durations_there_is_no_price(self, judge) -> None:
        finding = one(judge("io/rereads", untimed(at("/t", [(0, 100)] * 50))))
        assert (finding.status, finding.cost_ns, finding.gain_ns) == ("finding", None, None)
        assert finding.certainty == "low"

    def test_without_positions_nothing_can_be_judged(self, judge) -> None:
        assert one(judge("io/rereads", transfers("/t", [100] * 60))).status == "unknown"


class TestSeeks:
    def test_a_seek_for_each_read_is_found(self, judge) -> None:
        calls = many(300, "lseek", "seek", "/t", dur_ns=500) + transfers("/t", [100] * 200)
        finding = one(judge("io/seeks", calls))
        assert (finding.status, finding.subject, finding.value) == ("finding", "/t", 1.5)
        assert (finding.cost_ns, finding.gain_ns, finding.certainty) == (150_000, 150_000, "high")
        assert finding.reason == "300 seeks (`lseek`) for 200 reads and writes of this file."

    @pytest.mark.parametrize(
        ("seeks", "reads", "status"),
        [(200, 400, "finding"), (200, 401, "ok"), (199, 199, "ok"), (1, 5000, "ok")],
    )
    def test_limits(self, judge, seeks: int, reads: int, status: str) -> None:
        calls = many(seeks, "lseek", "seek", "/t") + transfers("/t", [100] * reads)
        assert one(judge("io/seeks", calls)).status == status

    def test_seeks_that_fail_move_nothing(self, judge) -> None:
        failed = many(150, "lseek", "seek", "/t", errno="ESPIPE")
        assert one(judge("io/seeks", failed + many(150, "lseek", "seek", "/t"))).status == "ok"

    def test_one_seek_in_each_of_many_files_is_fine(self, judge) -> None:
        calls = [call for n in range(300) for call in many(1, "lseek", "seek", f"/f{n}")]
        assert one(judge("io/seeks", calls)).status == "ok"

    @pytest.mark.parametrize(("elapsed", "status"), [(20 * MS, "finding"), (20 * MS + 1000, "ok")])
    def test_they_take_a_hundredth_of_the_time(self, judge, elapsed: int, status: str) -> None:
        calls = lasting(many(200, "lseek", "seek", "/t"), elapsed)
        assert one(judge("io/seeks", calls)).status == status

    def test_without_durations_there_is_no_price(self, judge) -> None:
        finding = one(judge("io/seeks", untimed(many(200, "lseek", "seek", "/t"))))
        assert (finding.status, finding.cost_ns, finding.certainty) == ("finding", None, "low")

    def test_seeks_in_files_without_a_name_cannot_be_judged(self, judge) -> None:
        finding = one(judge("io/seeks", many(200, "lseek", "seek") + transfers("/t", [9])))
        assert finding.status == "unknown"
        assert "200 seeks" in finding.reason
        assert one(judge("io/seeks", many(199, "lseek", "seek") + transfers("/t", [9]))).status == "ok"

    @pytest.mark.parametrize(("read_ns", "folded"), [(1000, True), (100, False)])
    def test_reading_again_explains_seeking_back(self, judge, read_ns: int, folded: bool) -> None:
        calls = many(200, "lseek", "seek", "/t") + at("/t", [(0, 4096)] * 200, dur_ns=read_ns)
        found = fold(judge("io/seeks", calls) + judge("io/rereads", calls))
        seek = next(finding for finding in found if finding.rule == "io/seeks")
        assert seek.part_of == (("io/rereads", "/t") if folded else None)


def lookups(folder: str, count: int, **more: object) -> Calls:
    """Opens of /folder/n0, /folder/n1, ... that find nothing."""
    names = (f"{folder}/n{n}" for n in range(count))
    return [c for name in names for c in many(1, "openat", "open", name, **({"errno": "ENOENT"} | more))]


class TestFailedSearches:
    def test_a_search_through_folders_is_found(self, judge) -> None:
        found = lookups("/c", 300, errno=None, result=3)
        calls = lookups("/a", 350) + lookups("/b", 200) + found
        finding = one(judge("io/failed_lookups", calls))
        assert (finding.status, finding.subject, finding.value) == ("finding", "/a", 500)
        assert (finding.cost_ns, finding.gain_ns, finding.certainty) == (500_000, 500_000, "high")
        assert finding.reason.startswith("500 lookups of 300 names in 2 directories failed, 300 of")
        assert finding.reason.endswith("300 of the names were found elsewhere.")
        assert finding.evidence == "io/errors --file '/a/*'"
        assert finding.explained_by == ("processes/process_creation",)

    @pytest.mark.parametrize(("names", "status"), [(250, "finding"), (249, "ok")])
    def test_fewer_than_five_hundred_are_fine(self, judge, names: int, status: str) -> None:
        finding = one(judge("io/failed_lookups", lookups("/a", names) + lookups("/b", names)))
        assert finding.status == status

    def test_one_path_asked_for_again_is_no_search(self, judge) -> None:
        calls = many(900, "access", "stat", "/run/stop", errno="ENOENT")
        assert one(judge("io/failed_lookups", calls)).status == "ok"
        assert one(judge("io/failing_calls", calls)).status == "finding"

    def test_names_that_are_sought_in_one_place_are_no_search(self, judge) -> None:
        assert one(judge("io/failed_lookups", lookups("/a", 900))).status == "ok"

    def test_other_errors_and_other_calls_are_no_search(self, judge) -> None:
        calls = lookups("/a", 300, errno="EACCES") + lookups("/b", 300, errno="EACCES")
        gone = [
            {**call, "call": "unlink", "class": "name"} for call in lookups("/a", 600) + lookups("/b", 600)
        ]
        assert one(judge("io/failed_lookups", calls + gone)).status == "ok"

    @pytest.mark.parametrize(("elapsed", "status"), [(25 * MS, "finding"), (25 * MS + 1000, "ok")])
    def test_they_take_a_fiftieth_of_the_time(self, judge, elapsed: int, status: str) -> None:
        calls = lasting(lookups("/a", 250) + lookups("/b", 250), elapsed)
        assert one(judge("io/failed_lookups", calls)).status == status

    def test_without_durations_there_is_no_price(self, judge) -> None:
        finding = one(judge("io/failed_lookups", untimed(lookups("/a", 250) + lookups("/b", 250))))
        assert (finding.status, finding.cost_ns, finding.certainty) == ("finding", None, "low")


def pieces(count: int, path: str = "/d/out", **more: object) -> Calls:
    """Open, stat, write and close, that often: 8 us of metadata and 2 us of data each."""
    stat = many(1, "fstat", "stat", path, **more)
    each = [*many(1, "openat", "open", path, dur_ns=4000, result=3, **more), *stat]
    each += transfers(path, [4096], "write", dur_ns=2000, **more)
    return (each + many(1, "close", "close", path, dur_ns=3000, **more)) * count


class TestMetadataCost:
    def test_an_open_and_a_close_around_each_write_are_found(self, judge) -> None:
        finding = one(judge("io/metadata_cost", pieces(700)))
        assert (finding.status, finding.subject, finding.value) == ("finding", "/d/out", 4)
        # One file may need twenty of these calls.
        assert (finding.cost_ns, finding.gain_ns) == (700 * 8000, round(700 * 8000 * (1 - 20 / 2100)))
        assert finding.certainty == "medium"
        text = "2,100 metadata calls on 1 file or directory took 5.60 ms, most of it in "
        assert finding.reason.startswith(text)

    def test_files_that_have_few_calls_each_are_a_note(self, judge) -> None:
        calls = [c for n in range(700) for c in pieces(1, f"/d/{n}")]
        finding = one(judge("io/metadata_cost", calls))
        assert (finding.status, finding.cost_ns, finding.gain_ns) == ("finding", 700 * 8000, 0)

    def test_much_metadata_with_more_data_is_fine(self, judge) -> None:
        calls = pieces(700) + transfers("/d/out", [1 << 20] * 10, dur_ns=MS)
        assert one(judge("io/metadata_cost", calls)).status == "ok"

    @pytest.mark.parametrize(
        ("stats", "writes", "status"), [(2000, 50, "finding"), (1999, 50, "ok"), (2000, 1, "finding")]
    )
    def test_limits(self, judge, stats: int, writes: int, status: str) -> None:
        calls = many(stats, "stat", "stat", "/d/a") + transfers("/d/a", [100] * writes, "write")
        assert one(judge("io/metadata_cost", calls)).status == status

    @pytest.mark.parametrize(("elapsed", "status"), [(56 * MS, "finding"), (56 * MS + 1000, "ok")])
    def test_it_takes_a_tenth_of_the_time(self, judge, elapsed: int, status: str) -> None:
        assert one(judge("io/metadata_cost", lasting(pieces(700), elapsed))).status == status

    def test_files_of_the_kernel_do_not_count(self, judge) -> None:
        calls = pieces(700, "/proc/1/stat", kind="virtual") + transfers("/d/a", [100] * 60)
        assert one(judge("io/metadata_cost", calls)).status == "ok"

    def test_without_durations_nothing_can_be_judged(self, judge) -> None:
        assert one(judge("io/metadata_cost", untimed(pieces(700)), clock=NO_DURATIONS)).status == "unknown"

    def test_opening_again_explains_it(self, judge) -> None:
        calls = pieces(700)
        found = fold(judge("io/metadata_cost", calls) + judge("io/repeated_open", calls))
        assert [(f.rule, f.part_of) for f in found] == [
            ("io/repeated_open", None),
            ("io/metadata_cost", ("io/repeated_open", "/d/out")),
        ]


def listing(folder: str = "/d", **more: object) -> Calls:
    """A folder is listed."""
    return many(1, "getdents64", "dir", folder, kind="directory", **more)


def asked(count: int, **more: object) -> Calls:
    """Stats of /d/0, /d/1, ..."""
    return [c for n in range(count) for c in many(1, "newfstatat", "stat", f"/d/{n}", **more)]


class TestDirectoryStat:
    def test_questions_about_each_entry_are_found(self, judge) -> None:
        finding = one(judge("io/directory_stat", listing() + asked(500) * 2))
        assert (finding.status, finding.subject, finding.value) == ("finding", "/d", 500)
        assert (finding.cost_ns, finding.gain_ns, finding.certainty) == (MS, MS, "medium")
        assert finding.reason.startswith(
            "1,000 calls requested the attributes of 500 entries in 1 listed directory"
        )

    def test_folders_are_summed_under_the_fullest(self, judge) -> None:
        other = [{**call, "path": call["path"].replace("/d", "/e")} for call in listing() + asked(100)]
        finding = one(judge("io/directory_stat", other + listing() + asked(400)))
        assert (finding.subject, finding.value, finding.cost_ns) == ("/d", 500, 500_000)
        assert "500 entries in 2 listed" in finding.reason

    def test_questions_of_other_processes_do_not_count(self, judge) -> None:
        calls = listing() + asked(500) + asked(500, pid=7, tid=7) + asked(500, pid=8, tid=8)
        finding = one(judge("io/directory_stat", calls))
        assert (finding.value, finding.cost_ns) == (500, 500_000)
        assert finding.reason.startswith("500 calls requested the attributes of 500 entries")

    def test_fewer_than_five_hundred_are_fine(self, judge) -> None:
        assert one(judge("io/directory_stat", listing() + asked(499))).status == "ok"

    def test_entries_that_are_opened_are_fine(self, judge) -> None:
        used = [call for n in range(600) for call in opens(f"/d/{n}", 1)]
        assert one(judge("io/directory_stat", listing() + asked(600) + used)).status == "ok"

    def test_questions_for_access_lists_are_no_use_of_an_entry(self, judge) -> None:
        lists = [{**call, "call": "lgetxattr", "class": "attr", "errno": "ENODATA"} for call in asked(500)]
        finding = one(judge("io/directory_stat", listing() + asked(500) + lists))
        assert (finding.status, finding.cost_ns) == ("finding", 500_000)
        assert one(judge("io/directory_stat", listing() + lists)).status == "ok"

    def test_a_folder_that_was_not_listed_by_it_is_fine(self, judge) -> None:
        assert one(judge("io/directory_stat", asked(600))).status == "ok"
        assert one(judge("io/directory_stat", listing(pid=7, tid=7) + asked(600))).status == "ok"
        entered = many(1, "chdir", "dir", "/d", kind="directory")
        assert one(judge("io/directory_stat", entered + asked(600))).status == "ok"

    @pytest.mark.parametrize(("elapsed", "status"), [(10 * MS, "finding"), (10 * MS + 1000, "ok")])
    def test_they_take_a_twentieth_of_the_time(self, judge, elapsed: int, status: str) -> None:
        calls = lasting(listing() + asked(500), elapsed)
        assert one(judge("io/directory_stat", calls)).status == status

    def test_without_durations_there_is_no_price(self, judge) -> None:
        finding = one(judge("io/directory_stat", untimed(listing() + asked(500))))
        assert (finding.status, finding.cost_ns, finding.certainty) == ("finding", None, "low")


class TestOutliers:
    def test_one_long_open_among_short_ones_is_found(self, judge) -> None:
        calls = opens("/t", 246, dur_ns=30_000)
        calls += many(1, "openat", "open", "/t", t=2.5, dur_ns=13_936 * MS, result=3)
        finding = one(judge("io/outliers", calls))
        assert (finding.status, finding.subject) == ("finding", "openat /t")
        assert finding.value == round(13_936 * MS / 30_000)
        assert (finding.cost_ns, finding.gain_ns) == (13_936 * MS, 13_936 * MS - 30_000)
        assert (finding.from_s, finding.until_s, finding.certainty) == (2.5, 16.436, "medium")
        assert "the mean of 246 other calls of the same kind (30.00 µs); 0 other slow" in finding.reason
        assert finding.explained_by == ()

    @pytest.mark.parametrize(
        ("usual", "longest", "status"),
        [
            (MS, 100 * MS, "finding"),
            (MS, 100 * MS - 1, "ok"),
            (2 * MS, 200 * MS, "finding"),
            (2 * MS, 199 * MS, "ok"),
        ],
    )
    def test_a_tenth_of_a_second_and_a_hundred_times_the_usual(
        self, judge, usual: int, longest: int, status: str
    ) -> None:
        calls = many(30, "fsync", "sync", "/t", dur_ns=usual) + many(1, "fsync", "sync", "/t", dur_ns=longest)
        assert one(judge("io/outliers", calls)).status == status

    @pytest.mark.parametrize(("others", "status"), [(19, "finding"), (18, "ok")])
    def test_of_fewer_than_twenty_calls_none_is_usual(self, judge, others: int, status: str) -> None:
        calls = many(others, "stat", "stat", "/t") + many(1, "stat", "stat", "/t", dur_ns=500 * MS)
        assert one(judge("io/outliers", calls)).status == status

    @pytest.mark.parametrize(("size", "status"), [(4096, "finding"), (4_096_000, "ok")])
    def test_a_larger_request_may_take_longer(self, judge, size: int, status: str) -> None:
        calls = transfers("/t", [4096] * 30, dur_ns=MS) + transfers("/t", [size], dur_ns=500 * MS)
        assert one(judge("io/outliers", calls)).status == status

    @pytest.mark.parametrize(("elapsed", "status"), [(50_000 * MS, "finding"), (50_001 * MS, "ok")])
    def test_it_takes_a_hundredth_of_the_time(self, judge, elapsed: int, status: str) -> None:
        calls = many(30, "stat", "stat", "/t") + many(1, "stat", "stat", "/t", dur_ns=500 * MS)
        assert one(judge("io/outliers", lasting(calls, elapsed))).status == status

    def test_slow_calls_of_other_threads_at_the_same_time_are_counted(self, judge) -> None:
        calls = many(30, "stat", "stat", "/t") + many(1, "stat", "stat", "/t", t=1, dur_ns=500 * MS)
        # One overlaps, one is over by then, one is not slow, one waits.
        calls += transfers("/u", [9], "write", t=1.4, dur_ns=200 * MS, pid=2, tid=2)
        calls += transfers("/u", [9], "write", t=0.5, dur_ns=400 * MS, pid=2, tid=2)
        calls += transfers("/u", [9], "write", t=1.2, dur_ns=9 * MS, pid=3, tid=3)
        calls += many(1, "poll", "wait", t=1.2, dur_ns=200 * MS, pid=3, tid=3)
        assert "1 other slow call at the same time" in one(judge("io/outliers", calls)).reason

    def test_waiting_for_another_program_is_no_outlier(self, judge) -> None:
        pipe = {"path": "pipe:[1]", "kind": "pipe"}
        calls = [c | pipe for c in transfers("", [9] * 30) + transfers("", [9], dur_ns=900 * MS)]
        assert one(judge("io/outliers", calls)).status == "ok"

    def test_without_durations_nothing_can_be_judged(self, judge) -> None:
        calls = untimed(many(30, "stat", "stat", "/t"))
        assert one(judge("io/outliers", calls, clock=NO_DURATIONS)).status == "unknown"

    @pytest.mark.parametrize(("call", "folded"), [("close", True), ("write", False)])
    def test_a_close_that_flushes_is_explained(self, judge, call: str, folded: bool) -> None:
        calls = [c for n in range(30) for c in many(1, "close", "close", f"/f{n}")]
        calls += transfers("/t", [9] * 30, "write") + many(1, "close", "close", "/t", dur_ns=900 * MS)
        if call == "write":
            calls += transfers("/t", [9], "write", dur_ns=300 * MS)
        found = fold(judge("io/outliers", calls) + judge("io/flush_on_close", calls))
        point = next(finding for finding in found if finding.subject == f"{call} /t")
        assert point.part_of == (("io/flush_on_close", "/t") if folded else None)


def written(path: str, close_ns: int, write_ns: int = 100_000) -> Calls:
    """Ten writes of 4 KiB and a close."""
    return transfers(path, [4096] * 10, "write", dur_ns=write_ns) + many(
        1, "close", "close", path, dur_ns=close_ns
    )


class TestFlushOnClose:
    def test_slow_closes_of_written_files_are_found(self, judge) -> None:
        finding = one(judge("io/flush_on_close", written("/a", 2 * MS) + written("/b", 4 * MS)))
        # 6 ms of closing and 2 of writing; 80 KiB in 8 ms.
        assert (finding.status, finding.subject, finding.value) == ("finding", "/b", 75)
        assert (finding.cost_ns, finding.gain_ns, finding.certainty) == (6 * MS, 6 * MS, "low")
        text = (
            "Closing 2 written files took 6.00 ms (longest 4.00 ms), 75 % of the time of writing and closing"
        )
        assert finding.reason.startswith(text)
        assert "80.00 KiB were written at 9.77 MiB/s" in finding.reason

    def test_quick_closes_beside_a_slow_one_are_left_out(self, judge) -> None:
        quick = [call for n in range(50) for call in written(f"/q{n}", 5000)]
        finding = one(judge("io/flush_on_close", quick + written("/b", 4 * MS)))
        assert (finding.value, finding.cost_ns) == (80, 4 * MS)

    @pytest.mark.parametrize(
        ("close_ns", "write_ns", "status"),
        [
            (MS, 1000, "finding"),
            (MS - 1, 1000, "ok"),
            (3 * MS, 700_000, "finding"),
            (3 * MS, 701_000, "ok"),
        ],
    )
    def test_limits(self, judge, close_ns: int, write_ns: int, status: str) -> None:
        assert one(judge("io/flush_on_close", written("/a", close_ns, write_ns))).status == status

    @pytest.mark.parametrize(("elapsed", "status"), [(40 * MS, "finding"), (40 * MS + 1000, "ok")])
    def test_they_take_a_twentieth_of_the_time(self, judge, elapsed: int, status: str) -> None:
        assert one(judge("io/flush_on_close", lasting(written("/a", 2 * MS), elapsed))).status == status

    def test_a_file_that_was_only_read_has_nothing_to_flush(self, judge) -> None:
        calls = transfers("/a", [4096] * 10) + many(1, "close", "close", "/a", dur_ns=9 * MS)
        assert one(judge("io/flush_on_close", calls)).status == "ok"

    def test_without_durations_nothing_can_be_judged(self, judge) -> None:
        calls = untimed(written("/a", 0))
        assert one(judge("io/flush_on_close", calls, clock=NO_DURATIONS)).status == "unknown"


def syncs(count: int, path: str | None = "/j", call: str = "fsync") -> Calls:
    """Syncs of 2 ms each."""
    return many(count, call, "sync", path, dur_ns=2 * MS)


class TestSyncPerWrite:
    def test_a_sync_for_each_write_is_found(self, judge) -> None:
        finding = one(judge("io/sync_per_write", transfers("/j", [40] * 60, "write") + syncs(60)))
        assert (finding.status, finding.subject, finding.value) == ("finding", "/j", 1)
        # One of 60 waits has to stay.
        assert (finding.cost_ns, finding.gain_ns, finding.certainty) == (120 * MS, 118 * MS, "high")
        assert finding.reason == "60 syncs for 60 writes of 40 B on average, 2.00 ms each."

    @pytest.mark.parametrize(
        ("waits", "writes", "status"), [(30, 150, "finding"), (30, 151, "ok"), (29, 29, "ok"), (1, 900, "ok")]
    )
    def test_limits(self, judge, waits: int, writes: int, status: str) -> None:
        calls = transfers("/j", [40] * writes, "write") + syncs(waits)
        assert one(judge("io/sync_per_write", calls)).status == status

    @pytest.mark.parametrize(
        ("size", "dur_ns", "status"),
        [(4096, MS, "finding"), (4096, MS - 1, "ok"), ((1 << 20) - 1, MS, "finding"), (1 << 20, MS, "ok")],
    )
    def test_small_writes_that_take_long_wait_too(self, judge, size: int, dur_ns: int, status: str) -> None:
        finding = one(judge("io/sync_per_write", transfers("/j", [size] * 30, "write", dur_ns=dur_ns)))
        assert finding.status == status
        if status == "finding":
            assert (finding.cost_ns, finding.gain_ns, finding.certainty) == (30 * MS, 29 * MS, "medium")

    @pytest.mark.parametrize(("elapsed", "status"), [(3000 * MS, "finding"), (3001 * MS, "ok")])
    def test_they_take_a_fiftieth_of_the_time(self, judge, elapsed: int, status: str) -> None:
        assert one(judge("io/sync_per_write", lasting(syncs(30), elapsed))).status == status

    def test_one_sync_for_each_of_many_files_is_fine(self, judge) -> None:
        calls = [call for n in range(60) for call in transfers(f"/f{n}", [40], "write") + syncs(1, f"/f{n}")]
        assert one(judge("io/sync_per_write", calls)).status == "ok"

    def test_syncs_without_writes_are_said_so(self, judge) -> None:
        finding = one(judge("io/sync_per_write", syncs(40, call="fdatasync")))
        assert (finding.status, finding.value, finding.cost_ns) == ("finding", None, 80 * MS)
        assert finding.reason == "40 syncs, 2.00 ms each; what was written between them is not in the log."

    def test_without_durations_there_is_no_price(self, judge) -> None:
        calls = untimed(transfers("/j", [40] * 30, "write") + syncs(30))
        finding = one(judge("io/sync_per_write", calls))
        assert (finding.status, finding.cost_ns, finding.certainty) == ("finding", None, "low")
        assert finding.reason == "30 syncs for 30 writes; the log does not show how long they took."

    def test_syncs_of_files_without_a_name_cannot_be_judged(self, judge) -> None:
        assert one(judge("io/sync_per_write", syncs(30, None))).status == "unknown"
        assert one(judge("io/sync_per_write", syncs(29, None))).status == "ok"
        # These have no file.
        assert one(judge("io/sync_per_write", syncs(30, None, "msync"))).status == "ok"

    def test_it_explains_the_small_writes(self, judge) -> None:
        calls = transfers("/j", [40] * 200, "write", dur_ns=20_000) + syncs(200)
        found = fold(judge("io/small_requests", calls) + judge("io/sync_per_write", calls))
        assert [(f.rule, f.part_of) for f in found] == [
            ("io/sync_per_write", None),
            ("io/small_requests", ("io/sync_per_write", "/j")),
        ]
