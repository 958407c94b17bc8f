"""Common parts of kinds of settings: changing and proving a setting, and the differences that an undo
finds.
"""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from sysdock.errors import UserError
from sysdock.experiment.state.journal import Entry, Journal


@dataclass(frozen=True)
class Difference:
    """Something that is not as it should be: `wanted` is what was asked or what was there before."""

    kind: str
    target: str
    wanted: str
    found: str

    def __str__(self) -> str:
        return f"{self.kind} {self.target}: should be {self.wanted!r} and is {self.found!r}"


# Undoes one line of a journal, which may be of an earlier boot, and proves it: what differs afterwards.
Undo = Callable[[Journal, Entry], list[Difference]]


class Kind(ABC):
    """A kind of settings, by what stands before the colon of `sysctl:vm.dirty_bytes`."""

    name: str

    @abstractmethod
    def problem(self, target: str) -> str | None:
        """Errors in the form of a target, on any machine; None if there are none."""

    @abstractmethod
    def apply(self, journal: Journal, target: str, value: str) -> None:
        """Notes what undoes it, sets it, and reads it back; a UserError where that is not possible."""

    @abstractmethod
    def differs(self, target: str, value: str) -> Difference | None:
        """Reads it: None where it is what was asked."""


def normal(text: str) -> str:
    """Values that mean the same are the same: any white space is one, and a bracketed choice is the chosen
    word.
    """
    words = text.split()
    chosen = [word[1:-1] for word in words if word.startswith("[") and word.endswith("]")]
    return chosen[0] if len(chosen) == 1 and len(words) >= 1 else " ".join(words)


def cannot(what: str, place: str, error: OSError) -> UserError:
    """Why the kernel did not take a change."""
    if error.errno in (errno.EACCES, errno.EPERM) and os.geteuid() != 0:
        return UserError(f"changing {what} needs root", "run the experiment as root", place)
    if error.errno == errno.EROFS:
        hint = "in a container, it has to be set outside, or the container needs more rights"
        return UserError(f"{what} is read-only here", hint, place)
    if error.errno == errno.ENOSPC and place.startswith("/sys/fs/cgroup"):
        return UserError(f"{what} is refused: the group lacks what its parent has", None, place)
    if error.errno in (errno.EINVAL, errno.ERANGE):
        return UserError(f"the kernel refuses this value of {what}", "give one that it accepts", place)
    return UserError(f"{what} cannot be set: {(error.strerror or str(error)).lower()}", None, place)
