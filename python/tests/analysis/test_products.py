"""A finding about a product that is known has one paragraph for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from make_recording import STARTED_NS, RecordingMaker
from sysdock.analysis.check import check
from sysdock.analysis.facts import product_advice
from sysdock.analysis.products import with_products
from sysdock.errors import UserError
from sysdock.library import Library
from sysdock.library.products import parse_product
from sysdock.report import as_text
from sysdock.report.findings import findings_section
from sysdock.screen.answer import answer_lines, diagnosis_lines
from sysdock.sentences import say

MS = 1_000_000
PRODUCT = """name = "Logger"
programs = ["logd", "log-*"]
files = ["*.events"]

[[advice]]
rules = ["io/small_requests.write", "io/seeks"]
en = "Set `buffer`\\nhigher."
ja = "`buffer` を\\n増やします。"
"""


def writes(path: str, comm: str, count: int = 1000) -> list[dict[str, object]]:
    """Small writes of a program."""
    sizes = {"requested_bytes": 8, "transferred_bytes": 8, "dur_ns": MS // 2}
    return [
        {"call": "write", "path": path, "comm": comm, "t": n / 1000, "offset_bytes": 8 * n, **sizes}
        for n in range(count)
    ]


def run_by(maker: RecordingMaker, path: str, comm: str) -> Path:
    """A recording of a program that writes a file in small pieces."""
    times = {"start_ts_ns": STARTED_NS, "end_ts_ns": STARTED_NS + 1000 * MS}
    life = {"pid": 100, "tid": 100, "comm_id": 0, "depth": 0, "tree_order": 0, "execs": 0, "calls": 1}
    return maker.make(writes(path, comm), f"{comm}{path.replace('/', '-')}", processes=[{**life, **times}])


def small_writes(session, path: str):
    """The finding of io/small_requests on a file."""
    return next(f for f in session.findings() if f.rule == "io/small_requests" and f.file == path)


@pytest.mark.parametrize(
    ("path", "comm", "product"),
    [
        ("/srv/x.db-journal", "app", "SQLite"),
        ("/srv/x.db", "sqlite3", "SQLite"),
        ("/srv/out", "python3.11", "Python"),
        # A language gives way to the library, by whose file it is known.
        ("/srv/x.db-journal", "python3", "SQLite"),
        ("/srv/run.h5", "python3", "HDF5/NetCDF"),
        # A program is known better than what it writes: this one keeps a log of its own.
        ("/srv/x.sqlite", "nginx", "nginx"),
        ("/srv/out", "postgresql-dump", None),
        ("/srv/out", "app", None),
    ],
)
def test_products_are_known_by_programs_and_files(
    maker: RecordingMaker, open_session, path: str, comm: str, product: str | None
) -> None:
    finding = small_writes(open_session(run_by(maker, path, comm)), path)
    assert (finding.product, finding.product_advice is None) == (product, product is None)


def test_it_is_shown_wherever_the_finding_is(maker: RecordingMaker, open_session) -> None:
    folder = run_by(maker, "/srv/x.db-journal", "app")
    session = open_session(folder)
    finding = small_writes(session, "/srv/x.db-journal")
    [advice] = product_advice([finding, finding])
    english, japanese = say(advice, "en"), say(advice, "ja")
    assert english.startswith("SQLite: A rollback journal gets each page in three pieces")
    assert japanese.startswith("SQLite: ロールバックジャーナルには")
    assert english in as_text(session, "md")
    assert japanese in as_text(session, "md", "ja")
    assert '"product": "SQLite"' in as_text(session, "json")
    page = findings_section(session, session.findings())
    assert page.count(english) == page.count(japanese) == 1
    for lines in (diagnosis_lines([finding], folder, "en"), answer_lines(session, None, "en")):
        assert sum("SQLite: A rollback journal" in line for line in lines) == 1
    in_japanese = "\n".join(diagnosis_lines([finding.in_language("ja")], folder, "ja"))
    assert "SQLite: ロールバックジャーナルには" in in_japanese


def test_a_new_product_is_a_new_file(pack, maker: RecordingMaker, open_session) -> None:
    folder = pack.root / "products"
    folder.mkdir()
    (folder / "logger.toml").write_text(PRODUCT, "utf-8")
    session = open_session(run_by(maker, "/a.events", "app"))
    [finding] = with_products(pack.library, [small_writes(session, "/a.events")])
    assert finding.product == "Logger"
    assert finding.in_language("en").product_advice == "Set buffer higher."
    assert finding.in_language("ja").product_advice == "buffer を増やします。"
    product = parse_product(folder / "logger.toml")
    assert product.is_run_by(["log-rotate"])
    assert not product.is_run_by(["logrotate"])
    # Only the variant that is named has the paragraph.
    assert product.advises("io/small_requests", "read") is None
    assert product.advises("io/seeks", None) == product.advises("io/seeks", "any")


def test_a_pack_without_products_has_those_of_sysdock(pack, library: Library) -> None:
    assert [each.name for each in pack.library.products()] == [each.name for each in library.products()]


def problems(folder: Path) -> str:
    """What `sysdock check` says of the file in a folder of products."""
    lines: list[str] = []
    check([folder], report=lambda line, important: lines.append(line) if important else None)
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("", "", ""),
        ("io/seeks", "io/seek", "there is no rule `io/seek`"),
        ("io/small_requests.write", "io/small_requests.wrote", "has the variant `wrote`"),
        ("io/small_requests.write", "io/seeks", "advice 1 names `io/seeks` again"),
        ('ja = "`buffer` を\\n増やします。"', 'ja = " "', "`ja` is not text"),
        ("files =", "file =", "the product has the unknown key `file`"),
        (
            'programs = ["logd", "log-*"]\nfiles = ["*.events"]',
            "",
            "it names nothing by which it is recognized",
        ),
        ("[[advice]]", "[advice]", "`advice` is not a list of tables"),
        ('name = "Logger"', "name = 5", "`name` is not text"),
    ],
)
def test_check_says_what_is_wrong_with_a_product(pack, library, old: str, new: str, said: str) -> None:
    (pack.root / "rules").rmdir()
    (pack.root / "rules").symlink_to(library.root / "rules")
    folder = pack.root / "products"
    folder.mkdir()
    (folder / "logger.toml").write_text(PRODUCT.replace(old, new, 1), "utf-8")
    assert said in problems(folder) if said else problems(folder) == ""


def test_all_products_are_right(library: Library) -> None:
    assert problems(library.root / "products") == ""
    assert len(library.products()) >= 12
    with pytest.raises(UserError, match="not TOML"):
        parse_product(library.root / "rules" / "io" / "seeks.md")
