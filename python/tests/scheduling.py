"""Who runs which tests when several run at a time: files as a whole, those that take long first, or in parts."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling

_PAIRS = "pairs/test_pairs.py"
# What takes more than a minute, the longest first.
_LONGEST = (
    _PAIRS,
    "experiment/test_shipped_experiments.py",
    "recording/test_write_faults.py",
    "cli/test_verbs.py",
    "disk/test_disk_verbs.py",
    "report/test_report_browser.py",
    "disk/test_ext_damage.py",
    "recording/test_power_cuts.py",
    "recording/test_hostile_recordings.py",
    "native/test_attacks.py",
    "report/test_disk_series.py",
    "probe/test_series.py",
    "cli/test_recording_verbs.py",
    "load/test_nodes.py",
    "native/test_extremes.py",
    "native/test_generated.py",
)

# Files of tests that share nothing, or no more than the recording of their parameter: several may run at a time.
_APART = (
    _PAIRS,
    "experiment/test_shipped_experiments.py",
    "recording/test_write_faults.py",
    "recording/test_power_cuts.py",
    "recording/test_hostile_recordings.py",
    "cli/test_verbs.py",
    "disk/test_disk_verbs.py",
)


def turn(place: str) -> int:
    """When a file is begun, by its place in the folder of all tests: no long one may be left for the end."""
    return _LONGEST.index(place) if place in _LONGEST else len(_LONGEST)


class FilesOrTests(LoadFileScheduling):
    """Tests of one file run one after another if they share a recording."""

    def _split_scope(self, nodeid: str) -> str:
        place, _, name = nodeid.partition("::")
        if not place.endswith(_APART):
            return place
        _, bracket, parameters = name.partition("[")
        return f"{place}[{parameters}" if bracket and place.endswith(_PAIRS) else nodeid
