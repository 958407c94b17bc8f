"""A browser without a window, in which tests look at pages."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

# The first draws the same with some two thirds of the CPU time, as it has no parts for a window.
CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# Chromium refuses its sandbox to root, which containers and CI often run as.
ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking"]


@contextmanager
def launcher() -> Iterator[Callable[..., Any]]:
    """Starts Chromium with the arguments it is called with; tests are skipped where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium-headless-shell")
    with sync_api.sync_playwright() as playwright:
        yield lambda *arguments: playwright.chromium.launch(
            executable_path=path, args=[*ARGUMENTS, *arguments]
        )
