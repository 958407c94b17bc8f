"""The folder of a load's recording: the one that was named, or one that is gone afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sysdock.own_folder import refuse_existing
from sysdock.scratch import scratch_folder


@contextmanager
def kept(output: Path | None) -> Iterator[Path]:
    """A folder for a new recording. UserError where `output` is there already."""
    if output is not None:
        refuse_existing(output)
        yield output
        return
    with scratch_folder() as folder:
        yield Path(folder) / "rec"
