"""Who runs which tests when several run at a time: files as a whole, those that take long first, or in parts."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling

# Files of experiments that compare times: they run one after another, so that none disturbs another one.
_IN_TURN = (
    "experiment/test_experiment_runs.py",
    "experiment/test_documents.py",
    "experiment/test_bench_experiment.py",
    "experiment/test_explain_runs.py",
    "experiment/test_duet.py",
    "experiment/test_own_cpu.py",
    "experiment/test_own_servers.py",
    "experiment/test_warm_up.py",
    "experiment/test_causes.py",
)

# What takes more than half a minute, a file or those in turn, the longest first, by a run of 2026-11-29 (--durations=0) alongside other
# work.
_LONGEST = (
    "pairs/test_pairs.py",
    *_IN_TURN,
    "experiment/test_shipped_experiments.py",
    "docs/test_add_family.py",
    "disk/test_ext_damage.py",
    "recording/test_write_faults.py",
    "dump/test_dump.py",
    "disk/test_vanishing_devices.py",
    "report/test_report_browser.py",
    "dump/test_panics.py",
    "disk/test_disk_verbs.py",
    "native/test_generated.py",
    "recording/test_power_cuts.py",
    "dump/test_damage.py",
    "docs/test_wheel.py",
    "cli/test_verbs.py",
    "disk/test_btrfs_devices.py",
    "recording/test_hostile_recordings.py",
    "native/test_attacks.py",
    "probe/test_series.py",
    "cli/test_width.py",
    "report/test_disk_series.py",
    "load/test_nodes.py",
    "disk/test_ext_variants.py",
    "disk/test_ext_mounted.py",
    "dump/test_debug_info.py",
    "dump/test_dump_flight.py",
    "cli/test_recording_verbs.py",
    "dump/test_kdump.py",
    "native/test_extremes.py",
)

# Files of tests that share nothing: several may run at a time.
_APART = (
    "experiment/test_shipped_experiments.py",
    "recording/test_write_faults.py",
    "recording/test_power_cuts.py",
    "recording/test_hostile_recordings.py",
    "cli/test_verbs.py",
    "disk/test_disk_verbs.py",
    "disk/test_vanishing_devices.py",
)
# Files whose tests share no more than what is made for their parameter.
_BY_PARAMETER = ("pairs/test_pairs.py", "disk/test_ext_damage.py")


def turn(place: str) -> int:
    """When a file is begun, by its place in the folder of all tests: no long one may be left for the end."""
    return _LONGEST.index(place) if place in _LONGEST else len(_LONGEST)


class FilesOrTests(LoadFileScheduling):
    """Tests of one file run one after another if they share a recording."""

    def _split_scope(self, nodeid: str) -> str:
        place, _, name = nodeid.partition("::")
        _, bracket, parameters = name.partition("[")
        if place.endswith(_IN_TURN):
            return "experiments"
        if bracket and place.endswith(_BY_PARAMETER):
            return f"{place}[{parameters}"
        return nodeid if place.endswith(_APART) else place
