"""What sysdock is built of stands in docs/explain/dependencies.md, and is free to be used so."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/explain/dependencies.md").read_text()


def direct() -> set[str]:
    """Names of what is asked for in the manifests of both halves."""
    crates = {
        name
        for manifest in ROOT.glob("crates/*/Cargo.toml")
        for section in ("dependencies", "dev-dependencies", "build-dependencies")
        for name in tomllib.loads(manifest.read_text()).get(section, {})
        if not name.startswith("sysdock-")
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    packages = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    return crates | {re.match(r"[\w-]+", package)[0] for package in packages}


@pytest.mark.parametrize("name", sorted(direct()))
def test_it_is_explained(name: str) -> None:
    assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", PAGE)


def test_every_crate_offers_a_licence_of_the_list() -> None:
    if not shutil.which("cargo"):
        pytest.skip("no cargo")
    allowed = set(re.split(r",\s+", PAGE.rstrip().split("\n\n")[-1]))
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--offline"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    others = {
        package["name"]: package["license"]
        for package in json.loads(found)["packages"]
        if not offers(package["license"] or "", allowed)
    }
    assert others == {}


def offers(expression: str, allowed: set[str]) -> bool:
    """Whether a licence expression of SPDX can be met with licences of the list; `/` is an older form of OR."""
    wanted = re.sub(r"\s*/\s*", " OR ", expression)
    wanted = re.sub(r"[\w.-]+ WITH [\w.-]+", "-", wanted)
    words = re.sub(r"[\w.-]+", lambda word: known(word[0], allowed), wanted)
    return bool(eval(words)) if words.strip() else False


def known(word: str, allowed: set[str]) -> str:
    """A word of a licence expression as one of Python."""
    return word.lower() if word in ("AND", "OR") else str(word in allowed)


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("MIT", True),
        ("LGPL-2.1-only OR BSD-2-Clause", True),
        ("MIT/Apache-2.0", True),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("Apache-2.0 WITH LLVM-exception OR MIT", True),
        ("GPL-3.0-only", False),
        ("MIT AND GPL-3.0-only", False),
        ("", False),
    ],
)
def test_a_licence_expression_is_read(expression: str, result: bool) -> None:
    allowed = {"MIT", "Apache-2.0", "BSD-2-Clause", "Unicode-3.0"}
    assert offers(expression, allowed) is result
