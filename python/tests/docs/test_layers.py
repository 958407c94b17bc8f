"""The arrows of ARCHITECTURE.md are what crates depend on and Python packages import."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "python" / "sysdock"
Arrows = dict[str, set[str]]


def stated(heading: str) -> Arrows:
    """The arrows of the block below a heading: `a -> b, c` on each line."""
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    block = re.search(rf"^{heading}.*\n\n((?:    .*\n)+)", text, re.MULTILINE)
    assert block, f"ARCHITECTURE.md has no arrows behind {heading!r}"
    arrows: Arrows = {}
    for line in block[1].splitlines():
        name, _, targets = line.strip().partition("->")
        arrows[name.strip()] = {target.strip() for target in targets.split(",") if target.strip()}
    return arrows


def crates() -> Arrows:
    """What each crate depends on, of the others."""
    arrows: Arrows = {}
    for manifest in sorted((ROOT / "crates").glob("*/Cargo.toml")):
        depends = tomllib.loads(manifest.read_text("utf-8")).get("dependencies", {})
        names = {name.removeprefix("sysdock-") for name in depends if name.startswith("sysdock-")}
        arrows[manifest.parent.name] = names
    return arrows


def imported(tree: ast.AST) -> Iterator[str]:
    """Modules of sysdock that code imports, also within functions and for types only."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "sysdock":
            yield from (f"sysdock.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sysdock."):
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("sysdock."))
        yield from imported(node)


def packages() -> Arrows:
    """What each folder of the package imports, of the others; single modules belong to none of them."""
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    arrows: Arrows = {name: set() for name in folders}
    for name in folders:
        for module in (PACKAGE / name).rglob("*.py"):
            targets = {found.split(".")[1] for found in imported(ast.parse(module.read_text("utf-8")))}
            arrows[name] |= (targets & folders) - {name}
    return arrows


def differences(real: Arrows, said: Arrows) -> list[str]:
    names = sorted(real.keys() | said.keys())
    return [
        f"{name}: imports {', '.join(sorted(real.get(name, set())))}; stated {', '.join(sorted(said.get(name, set())))}"
        for name in names
        if real.get(name) != said.get(name)
    ]


def circles(arrows: Arrows) -> list[list[str]]:
    """Paths that come back to where they began."""
    found = []

    def walk(name: str, path: list[str]) -> None:
        if name in path:
            found.append([*path[path.index(name) :], name])
            return
        for target in sorted(arrows.get(name, ())):
            walk(target, [*path, name])

    for name in sorted(arrows):
        walk(name, [])
    return found


@pytest.mark.parametrize(
    ("heading", "real"), [("Arrows between crates", crates), ("Arrows between packages", packages)]
)
def test_arrows_are_as_stated_and_make_no_circle(heading: str, real: Callable[[], Arrows]) -> None:
    said = stated(heading)
    assert differences(real(), said) == []
    assert circles(said) == []


def test_no_module_above_recording_opens_a_parquet_file() -> None:
    readers = ("read_parquet", "import pyarrow")
    found = [
        f"{module.relative_to(PACKAGE)}: {reader}"
        for module in PACKAGE.rglob("*.py")
        if module.relative_to(PACKAGE).parts[0] != "recording"
        for reader in readers
        if reader in module.read_text("utf-8")
    ]
    assert found == []
