"""The members of a merge: recordings of the ranks of a parallel job, with rank and name.

The number of a rank is what MPI or the batch system set for its processes, where the recorder noted that
(rows of the section `job` in `environment`), what the user says, or the order in which the recordings were
given. It is never guessed: recordings that contradict each other are refused.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.recording.lake import Lake
from sysdock.recording.manifest import Recording
from sysdock.recording.views import Views

# Variables that the recorder notes (crates/native/src/environment.rs): the innermost first.
_RANK = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_SIZE = ("OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
# Families whose tables are of one recording only: what they number means nothing in another one.
_ALONE = ("experiment", "load", "probe", "jobs", "job")
_MOST_RANKS = 1 << 20
_NUMBER = re.compile(r"[0-9]{1,9}")
_SAY_RANKS = "say which is which: --rank NAME=NUMBER for each, or --in-order for the order given"


@dataclass(frozen=True)
class Member:
    """A recording that is merged. `rank` is None for one without processes; `rank_from` as in `ranks`."""

    recording: Recording
    name: str
    identity: str
    rank: int | None
    rank_from: str

    @property
    def host(self) -> str | None:
        """The host on which it ran; None if it is unknown."""
        return self.recording.manifest.get("host")


def members_of(
    recordings: Sequence[Recording], library: Library, ranks: Sequence[tuple[str, int]], *, in_order: bool
) -> tuple[list[Member], list[str]]:
    """The recordings by rank, those of no rank last, and remarks on what is missing.

    ranks: numbers by name, as the user gave them. UserError: they are no ranks of one job, or no one can say
    which is which.
    """
    _refuse(recordings)
    names = names_of([str(recording.folder) for recording in recordings])
    identities = [_identity(recording) for recording in recordings]
    _refuse_twice(identities, names)
    stated = {
        name: own
        for name, own, recording in zip(names, _stated(recordings, library), recordings, strict=True)
        if "processes" in recording.tables
    }
    by_hand = {_only(name, recordings, names): number for name, number in ranks}
    numbers, source = _numbers(stated, by_hand, in_order=in_order)
    found = [
        Member(*each, rank=numbers.get(each[1]), rank_from=source if each[1] in numbers else "none")
        for each in zip(recordings, names, identities, strict=True)
    ]
    found.sort(key=lambda member: _MOST_RANKS if member.rank is None else member.rank)
    return found, _missing(stated, len(numbers))


def matching(name: str, recordings: Sequence[Recording], names: Sequence[str]) -> list[int]:
    """Places of the recordings that `name` means: their name, or a folder or dotted part of their path."""

    def parts(recording: Recording) -> set[str]:
        return {part for folder in recording.folder.parts for part in (folder, *folder.split("."))}

    return [
        place
        for place, (recording, own) in enumerate(zip(recordings, names, strict=True))
        if name in (own, str(recording.folder)) or name in parts(recording)
    ]


def names_of(paths: Sequence[str]) -> list[str]:
    """The parts of paths in which they differ: last components, or those above them, or all of it."""
    parts: tuple[Callable[[Path], str], ...] = (lambda path: path.name, lambda path: path.parent.name)
    for part in parts:
        names = [part(Path(path)) for path in paths]
        if "" not in names and len(set(names)) == len(paths):
            return names
    return list(paths)


def _refuse(recordings: Sequence[Recording]) -> None:
    if len(recordings) < 2:
        fact = "only one recording: there is nothing to merge"
        raise UserError(fact, "name the recordings of all ranks", str(recordings[0].folder))
    for recording in recordings:
        place = str(recording.folder)
        if isinstance(recording, Lake):
            raise UserError("a lake, not a recording", "analyses read a lake as it is", place)
        if "ranks" in recording.tables:
            hint = "merge the recordings of all ranks at once; they are unchanged"
            raise UserError("is a merged recording itself", hint, place)
        if alone := recording.families & set(_ALONE):
            fact = f"is about `{min(alone)}`, which cannot be merged"
            hint = "recordings of commands, logs of system calls and scans of disks can"
            raise UserError(fact, hint, place)


def _identity(recording: Recording) -> str:
    return hashlib.sha256((recording.folder / "recording.json").read_bytes()).hexdigest()


def _refuse_twice(identities: Sequence[str], names: Sequence[str]) -> None:
    for identity, count in Counter(identities).items():
        if count > 1:
            same = [name for name, own in zip(names, identities, strict=True) if own == identity]
            raise UserError("the same recording was given twice", "name each rank once", " and ".join(same))


def _stated(recordings: Sequence[Recording], library: Library) -> list[dict[str, int]]:
    """The place in a job that the environment of each recording states, by variable."""
    views = Views(recordings[0], library)
    stated: list[dict[str, int]] = []
    try:
        for place, recording in enumerate(recordings):
            rows: list[tuple[str, str | None]] = []
            if "environment" in recording.tables:
                views.add_stored(recording, f"_{place}", ["environment"])
                sql = f"SELECT name, value FROM environment_{place} WHERE section = 'job'"
                rows = views.connection.execute(sql).fetchall()
            stated.append({name: int(value) for name, value in rows if value and _NUMBER.fullmatch(value)})
    finally:
        views.close()
    return stated


def _only(name: str, recordings: Sequence[Recording], names: Sequence[str]) -> str:
    """The one recording that a user means by `name`."""
    places = matching(name, recordings, names)
    if len(places) != 1:
        fact = f"--rank {name}: {f'{len(places)} recordings' if places else 'no recording'} of that name"
        raise UserError(fact, f"the recordings are: {', '.join(names)}")
    return names[places[0]]


def _numbers(
    stated: Mapping[str, Mapping[str, int]], by_hand: Mapping[str, int], *, in_order: bool
) -> tuple[dict[str, int], str]:
    """The rank of each recording by its name, and where the numbers are from."""
    if by_hand:
        if missing := [name for name in stated if name not in by_hand]:
            fact = f"--rank is given for some recordings, and not for {', '.join(missing)}"
            raise UserError(fact, "give it for each, or for none")
        return _distinct(by_hand, "--rank"), "--rank"
    if not in_order:
        for variable in _RANK:
            values = {name: own[variable] for name, own in stated.items() if variable in own}
            if len(values) == len(stated) and len(set(values.values())) == len(stated) > 0:
                return _distinct(values, variable), variable
        if any(variable in own for own in stated.values() for variable in _RANK):
            raise UserError(f"the recordings do not agree on their ranks: {_in_words(stated)}", _SAY_RANKS)
    return {name: place for place, name in enumerate(stated)}, "order"


def _distinct(numbers: Mapping[str, int], source: str) -> dict[str, int]:
    if twice := [number for number, count in Counter(numbers.values()).items() if count > 1]:
        names = " and ".join(name for name, number in numbers.items() if number == twice[0])
        raise UserError(f"{names} are both rank {twice[0]}", _SAY_RANKS, source)
    if most := [name for name, number in numbers.items() if not 0 <= number < _MOST_RANKS]:
        raise UserError(f"{numbers[most[0]]} is not a rank number", "ranks are counted from 0", most[0])
    return dict(numbers)


def _in_words(stated: Mapping[str, Mapping[str, int]]) -> str:
    """The variables of the first three recordings, in words."""
    words = [
        f"{name} has {next((f'{key}={own[key]}' for key in _RANK if key in own), 'none')}"
        for name, own in stated.items()
    ]
    return ", ".join(words[:3]) + (", ..." if len(words) > 3 else "")


def _missing(stated: Mapping[str, Mapping[str, int]], merged: int) -> list[str]:
    """A remark where the job had more ranks than are merged, by the first variable that all have."""
    for variable in _SIZE:
        sizes = {own[variable] for own in stated.values() if variable in own}
        if len(sizes) == 1 and all(variable in own for own in stated.values()):
            [size] = sizes
            return [f"the job has {size:,} ranks, {merged:,} are merged"] if size > merged else []
    return []
