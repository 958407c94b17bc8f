"""Input of the user for steps 1 and 2, in addition to a recording."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sysdock.checkup.ratio import JobTimes
from sysdock.checkup.site import Site

if TYPE_CHECKING:
    from sysdock.checkup.plain_run import PlainRun


@dataclass(frozen=True)
class Given:
    """Times of the job, values of the site, and files with counters and samples."""

    site: Site = field(default_factory=Site)
    job: JobTimes | None = None
    run: PlainRun | None = None
    files: tuple[Path, ...] = ()
    nfsstat: tuple[Path, Path] | None = None
    llite: tuple[Path, Path] | None = None
    proc_io: Path | None = None
    sar: tuple[Path, ...] = ()
