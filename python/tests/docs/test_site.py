"""What the web site of the documentation is made of; `make site` makes it, and checks its links."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def site() -> ModuleType:
    """The tool as a module."""
    loader = importlib.machinery.SourceFileLoader("site_tool", str(ROOT / "tools" / "site"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_contents_have_every_guide(site: ModuleType) -> None:
    groups = site.contents(ROOT / "docs" / "README.md")
    pages = [page for group in groups[1:] for entry in next(iter(group.values())) for page in entry.values()]
    assert [page for page in pages if not (ROOT / page).is_file()] == []
    assert len(pages) == len(set(pages))
    own = {str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md")}
    # The case book has contents of its own, and the index is the contents.
    cases = {str(page.relative_to(ROOT)) for page in ROOT.glob("docs/casebook/[0-9]*.md")}
    assert own - cases - {"docs/README.md", "docs/README.ja.md"} <= set(pages)


def test_pages_come_with_what_they_link_to(site: ModuleType, tmp_path: Path) -> None:
    count = site.copy_pages(tmp_path)
    assert count == sum(path.is_file() for path in tmp_path.rglob("*"))
    for name in ("README.md", "docs/images/report.png", "knowhow/rules/io/small_requests.md"):
        assert (tmp_path / name).read_bytes() == (ROOT / name).read_bytes()
    assert (tmp_path / "testdata" / "pairs" / "case05_kyoto_printf" / "faulty.sh").is_file()
