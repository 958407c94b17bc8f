"""How much of its input a capture understood, in the capture's own unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sysdock.sections.section import Capture, Fact, Words
from sysdock.text import percent

if TYPE_CHECKING:
    from sysdock.analysis import Session

_UNITS_JA = {
    "lines": "行",
    "events": "イベント",
    "files": "ファイル",
    "blocks": "ブロック",
    "samples": "サンプル",
    "recordings": "記録",
    "results": "測定結果",
    "tasks": "タスク",
    "instructions": "命令",
    "runs": "実行",
    "probes": "測定",
}


def unit_words(unit: str) -> Words:
    """A unit in English and Japanese; one that is not known as it is."""
    return unit, _UNITS_JA.get(unit, unit)


def understood(_session: Session, capture: Capture) -> list[Fact]:
    """Units understood, and lost."""
    seen, total, lost = capture["understood"], capture["total"], capture["lost"]
    share = percent(seen, total)
    unit, unit_ja = unit_words(capture["unit"])
    lost_words = (f"{lost:,} {unit}", f"{lost:,} {unit_ja}") if lost else ("nothing", "なし")
    coverage = f"{seen:,} of {total:,} understood ({share})", f"{total:,} のうち {seen:,} を解釈 ({share})"
    return [Fact((unit, unit_ja), coverage), Fact(("lost", "失われたもの"), lost_words)]
