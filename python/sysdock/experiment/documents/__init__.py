"""The three documents of an experiment: environment definition, procedure, results."""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sysdock import to_disk
from sysdock.analysis import Session
from sysdock.experiment.documents.blocks import markdown, page
from sysdock.experiment.documents.environment import environment_definition
from sysdock.experiment.documents.procedure import procedure
from sysdock.experiment.documents.results import results
from sysdock.experiment.documents.source import Source
from sysdock.experiment.environment import Row
from sysdock.library import Experiment
from sysdock.sentences import is_source, languages

FOLDER = "documents"


def write_documents(
    experiment: Experiment,
    session: Session,
    options: Mapping[str, Any],
    folder: Path,
    other: Sequence[Row] | None = None,
) -> list[Path]:
    """Writes each as NAME.md (English), NAME.ja.md and NAME.html (both). OSError: it cannot be written.

    `other`: the environment of another recording, with which this one is compared.
    """
    # In a recording, who may read that may read the documents.
    is_open = not (folder.parent / "recording.json").is_file() or folder.parent.stat().st_mode & stat.S_IROTH
    to_disk.make_folder(folder, 0o755 if is_open else 0o700)
    written = []
    made = {
        "environment": lambda source: environment_definition(source, other),
        "procedure": procedure,
        "results": results,
    }
    for name, make in made.items():
        blocks = {lang: make(Source(experiment, session, options, lang)) for lang in languages()}
        texts = {
            f"{'' if is_source(lang) else f'.{lang}'}.md": markdown(found) for lang, found in blocks.items()
        }
        texts[".html"] = page(blocks)
        for ending, text in texts.items():
            to_disk.write(folder / f"{name}{ending}", text.encode(), 0o644 if is_open else 0o600)
            written.append(folder / f"{name}{ending}")
    return written
