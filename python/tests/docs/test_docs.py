"""The documentation is about this program: links lead somewhere, names exist, nothing is left undescribed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from sysdock.cli import VERBS
from sysdock.library import Library

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
PAGES = [
    *sorted(DOCS.rglob("*.md")),
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "knowhow").rglob("*.md")),
    *sorted((ROOT / "testdata").glob("*.md")),
]
GENERATED = ["analyses", "charts", "commands", "experiments", "rules", "tables"]
# Folders at the top that are part of the project, not made by a build.
TOP = ("crates", "python", "knowhow", "web", "testdata", "docs", "tools")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    """A page without its code blocks."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^ {4,}\S.*$", "", text, flags=re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        found.add(words.replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        place, _, anchor = target.partition("#")
        file = (page.parent / place).resolve() if place else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_paths_in_back_ticks_exist(page: Path) -> None:
    missing = []
    for _, code in re.findall(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", prose(page)):
        path = code.strip().partition(" ")[0]
        placeholder = re.search(r"[<>$*{}\[\]]|DIR|NAME", path)
        if path.startswith(tuple(f"{folder}/" for folder in TOP)) and not placeholder:
            missing += [path] if not (ROOT / path).exists() else []
    assert missing == []


def test_pages_that_people_write_are_wrapped() -> None:
    done = subprocess.run([ROOT / "tools" / "wrap", "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), "tools/wrap wraps them"


@pytest.mark.parametrize("index", ["docs/README.md", "docs/README.ja.md"])
def test_the_index_names_every_page(index: str) -> None:
    # The case book and the generated reference list their own pages.
    linked = {
        (page.parent / target).resolve()
        for page in (ROOT / index, DOCS / "casebook" / "README.md", REFERENCE / "README.md")
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8"))
    }
    pages = {page.resolve() for page in DOCS.rglob("*.md")} - {(ROOT / index).resolve()}
    assert [name_of(page) for page in sorted(pages) if page not in linked] == []


@pytest.mark.parametrize("folder", [ROOT, DOCS])
def test_both_languages_have_the_same_links(folder: Path) -> None:
    """Where there is a page in Japanese, the index in Japanese may link to it instead."""
    first, second = (
        {
            target.replace(".ja.md", ".md")
            for target in re.findall(r"\]\(([^)]*)\)", (folder / name).read_text("utf-8"))
        }
        for name in ("README.md", "README.ja.md")
    )
    assert first == second


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages that tools/gen makes of the sources as they are now."""
    folder = tmp_path_factory.mktemp("reference")
    command = [sys.executable, ROOT / "tools" / "gen", "--pages", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_generated_pages_can_be_read_alone(generated: Path) -> None:
    assert sorted(page.stem for page in generated.iterdir()) == GENERATED
    for page in generated.iterdir():
        text = page.read_text("utf-8")
        assert text.startswith("<!-- Made by tools/gen."), page
        linked = {target for target in re.findall(r"\]\(([^)#\s]+)", prose(page)) if ":" not in target}
        assert [target for target in linked if not (generated / target).is_file()] == [], page


def test_generated_pages_are_not_in_git() -> None:
    listed = subprocess.run(
        ["git", "ls-files", REFERENCE], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert [name for name in GENERATED if f"docs/reference/{name}.md" in listed.stdout.split()] == []


def test_every_verb_is_described(generated: Path) -> None:
    text = (generated / "commands.md").read_text("utf-8")
    assert [verb for verb in VERBS if f"\n## sysdock {verb}\n" not in text] == []


def test_every_table_and_column_is_described(library: Library, generated: Path) -> None:
    text = (generated / "tables.md").read_text("utf-8")
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    assert sorted(sections) == [table.name for table in library.tables()]
    for table in library.tables():
        lacking = [
            column.name for column in table.all_columns if f"| `{column.name}` |" not in sections[table.name]
        ]
        assert lacking == [], table.name


def test_every_analysis_rule_and_chart_is_described(library: Library, generated: Path) -> None:
    for kind, names in {
        "analyses": [analysis.id for analysis in library.analyses()],
        "rules": [rule.id for rule in library.rules()],
        "charts": [chart.name for chart in library.charts()],
    }.items():
        headings = re.findall(r"^## (\S+)$", (generated / f"{kind}.md").read_text("utf-8"), re.MULTILINE)
        assert headings == names
    guide = (DOCS / "howto" / "add-a-chart.md").read_text("utf-8")
    assert [chart.name for chart in library.charts() if f"\n| `{chart.name}` | " not in guide] == []


def test_every_import_issue_is_described() -> None:
    """The words stand in `Issue::word` of crates/calls/src/issues.rs, those of disk scans in crates/disk/src, of crash
    dumps in crates/dump/src/tables.rs, that of logs of load in crates/native/src/import_load.rs."""
    code = (ROOT / "crates" / "calls" / "src" / "issues.rs").read_text("utf-8")
    words = re.findall(r'Issue::\w+ => "(\w+)"', code)
    assert len(words) >= 9
    for of_disks in ("fs/ext/issues.rs", "fs/btrfs/map.rs", "small_tables.rs", "usage.rs"):
        code_of_disks = (ROOT / "crates" / "disk" / "src" / of_disks).read_text("utf-8")
        words += re.findall(r'const \w+: &str = "(\w+)";', code_of_disks)
    of_dumps = (ROOT / "crates" / "dump" / "src" / "tables.rs").read_text("utf-8")
    words += re.findall(r'const \w+: &str = "(\w+)";', of_dumps)
    of_load = (ROOT / "crates" / "native" / "src" / "import_load.rs").read_text("utf-8")
    words += re.findall(r'const BROKEN_\w+: &str = "(\w+)";', of_load)
    page = (REFERENCE / "import-issues.md").read_text("utf-8")
    assert sorted(re.findall(r"^## (\w+)$", page, re.MULTILINE)) == sorted(words)
    understood = re.search(r"fn understood[^!]*?(!?)matches!\((.*?)\)", code, re.DOTALL)
    assert understood
    listed = set(re.findall(r"Issue::(\w+)", understood[2]))
    for variant, word in re.findall(r'Issue::(\w+) => "(\w+)"', code):
        answer = "yes" if (variant in listed) != bool(understood[1]) else "no"
        assert f"| [{word}](#{word}) | {answer} |" in page


def test_every_key_of_recording_json_is_described() -> None:
    code = (ROOT / "crates" / "table" / "src" / "manifest.rs").read_text("utf-8")
    bodies = re.findall(r"pub struct (?:Manifest|Capture) \{(.*?)\n\}", code, re.DOTALL)
    assert len(bodies) == 2
    page = (REFERENCE / "recording.md").read_text("utf-8")
    described = {
        key.strip() for row in re.findall(r"^\| ([a-z_, ]+) \|", page, re.MULTILINE) for key in row.split(",")
    }
    assert set(re.findall(r"pub (\w+):", "".join(bodies))) <= described
    endings = re.search(r"pub enum Ending \{(.*?)\n\}", code, re.DOTALL)
    assert endings
    for word in re.findall(r'rename = "([^"]+)"', endings[1]):
        assert f"\n| {word} | " in page


def test_no_file_names_the_machine_it_was_written_on() -> None:
    # Put together here, or this file would be found.
    words = ["/wo" + "rk/", "/root" + "/.", "model" + "_tools", "sand" + "boxing"]
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    found = []
    for name in filter(None, listed.stdout.split("\0")):
        file = ROOT / name
        if file.is_file() and not file.is_symlink():
            text = file.read_bytes().decode("utf-8", "replace")
            found += [f"{name}: {word}" for word in words if word in text]
    assert found == []


NUMBERS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]


def test_counts_that_pages_state_are_true() -> None:
    """Measurements are of their day; all other pages speak of today."""
    counted = {
        "rules": len(list((ROOT / "knowhow" / "rules").rglob("*.sql"))),
        "analyses": len(list((ROOT / "knowhow" / "analyses").rglob("*.sql"))),
        "charts": len(list((ROOT / "knowhow" / "charts").glob("*.json"))),
        "experiments": len(list((ROOT / "knowhow" / "experiments").rglob("*.toml"))),
        "crates": len(list((ROOT / "crates").glob("*/Cargo.toml"))),
        "ルール": len(list((ROOT / "knowhow" / "rules").rglob("*.sql"))),
    }
    wrong = []
    pages = [ROOT / name for name in ("README.md", "README.ja.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
    pages += [page for page in (ROOT / "docs").rglob("*.md") if page.name != "measurements.md"]
    for page in pages:
        text = page.read_text("utf-8")
        stated = re.findall(r"\b(\d+|[a-z]+) (rules|analyses|charts|experiments|crates)\b", text)
        stated += re.findall(r"(\d+) 個の(ルール)", text)
        for number, what in stated:
            value = int(number) if number.isdigit() else NUMBERS.index(number) if number in NUMBERS else None
            if value is not None and value != counted[what]:
                wrong.append(f"{page.relative_to(ROOT)}: {number} {what}, there are {counted[what]}")
    assert wrong == []


def test_the_map_of_the_architecture_has_every_crate_and_package() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    folders = [path.parent for path in (ROOT / "crates").glob("*/Cargo.toml")]
    package = ROOT / "python" / "sysdock"
    folders += [path.parent for path in package.glob("*/__init__.py")]
    missing = [
        folder.relative_to(ROOT).as_posix()
        for folder in folders
        if f"| `{folder.relative_to(ROOT).as_posix()}` |" not in text
    ]
    assert missing == []
