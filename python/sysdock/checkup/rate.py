"""Step 2, rate: how fast a recording moved its data, against what the site's file systems can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sysdock.checkup import FINDING, OK, UNKNOWN
from sysdock.checkup.statement import Name, Part
from sysdock.checkup.volume import MOVED

if TYPE_CHECKING:
    from sysdock.analysis import Session

# A rate of less data or time is chance.
LEAST_BYTES = 1 << 20
LEAST_NS = 10_000_000
SLOW = 0.5
FROM_CACHE = 1.2
# Time in which at least one call was under way: calls of several threads overlap.
_RATES = """
WITH moved AS ({moved}), placed AS (
    SELECT {place} AS place, m.read_bytes > 0 AS is_read, m.read_bytes + m.written_bytes AS bytes, m.ts_ns,
        m.ts_ns + m.dur_ns AS end_ns
    FROM moved AS m JOIN paths AS p ON p.path_id = m.path_id
    WHERE p.kind = 'file' AND m.read_bytes + m.written_bytes > 0 AND m.dur_ns IS NOT NULL
), ordered AS (
    SELECT *, max(end_ns) OVER (PARTITION BY place, is_read ORDER BY ts_ns, end_ns
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ns
    FROM placed WHERE place >= 0
)
SELECT place, is_read, CAST(sum(bytes) AS BIGINT),
    CAST(sum(greatest(0, end_ns - greatest(ts_ns, coalesce(before_ns, ts_ns)))) AS BIGINT)
FROM ordered GROUP BY place, is_read ORDER BY place, is_read DESC
"""


def judge_rates(session: Session, rates: Mapping[str, Mapping[str, float]]) -> list[Part]:
    """Rates by folder for which the site has values."""
    if not rates:
        said = (
            "There is no rate of this site to compare with.",
            "比較できるこのサイトの転送速度がありません。",
        )
        do = (
            "Give --site site.toml with the rates that the file systems reached when they were checked; "
            "`sysdock threshold --rate` writes them.",
            "ファイルシステムの検査時の転送速度を含む --site site.toml を与えてください。"
            "`sysdock threshold --rate` で書けます。",
        )
        return [Part("rate", UNKNOWN, said, do)]
    if not session.recording.has_durations or not session.recording.has_clock:
        said = ("The recording has no durations.", "記録に所要時間がありません。")
        return [Part("rate", UNKNOWN, said, ("Trace with `strace -T`.", "`strace -T` で記録してください。"))]
    folders = sorted(rates, key=lambda folder: (-len(folder), folder))
    bound, cases = {}, []
    for number, folder in enumerate(folders):
        bound[f"folder{number}"] = folder.rstrip("/") + "/"
        cases.append(f"WHEN starts_with(p.path, $folder{number}) THEN {number}")
    place = f"CASE {' '.join(cases)} ELSE -1 END"
    found = {
        (folders[number], "read" if is_read else "write"): (moved, time)
        for number, is_read, moved, time in session.fetch(_RATES.format(moved=MOVED, place=place), bound)
    }
    return [
        _rate(folder, direction, rate, *found.get((folder, direction), (0, 0)))
        for folder, values in sorted(rates.items())
        for direction, rate in values.items()
    ]


_DIRECTIONS = {"read": ("Reading from", "読み込み"), "write": ("Writing to", "書き込み")}


def _rate(folder: str, direction: str, expected: float, moved: int, time_ns: int) -> Part:
    words = _DIRECTIONS[direction]
    rate = moved / time_ns * 1e9 if time_ns else None
    values = {
        "folder": Name("path", folder),
        "direction": direction,
        "words": words[0],
        "words_ja": words[1],
        "bytes": moved,
        "time_ns": time_ns,
        "time": time_ns / 1e9,
        "rate": rate,
        "expected": expected,
        "share": f"{rate / expected:.0%}" if rate is not None else None,
    }
    if moved < LEAST_BYTES or time_ns < LEAST_NS:
        said = (
            "{words} {folder}: {bytes:B} in {time:s} are too little to judge a rate.",
            "{folder} の{words_ja}: {time:s} に {bytes:B} では少なすぎて転送速度を判断できません。",
        )
        return Part("rate", UNKNOWN, said, None, values)
    said = (
        "{words} {folder}: {bytes:B} in {time:s}, {rate:B/s}; the site reached {expected:B/s} ({share}).",
        "{folder} の{words_ja}: {time:s} に {bytes:B}、{rate:B/s}。サイトの値は {expected:B/s} ({share})。",
    )
    if rate is not None and rate > FROM_CACHE * expected:
        do = (
            "Faster than the file system: memory answered (the page cache), not the disk. Do not quote it.",
            "ファイルシステムより速いので、ディスクではなくメモリ (ページキャッシュ) の速さです。"
            "性能値として使わないでください。",
        )
        return Part("rate", UNKNOWN, said, do, values)
    if rate is not None and rate < SLOW * expected:
        do = (
            "Slower than the file system can be. A tracer slows small requests: see step 3 for their size, "
            "and then the load at that time.",
            "ファイルシステムの能力より遅くなっています。記録自体が小さな要求を遅くするので、"
            "まずステップ 3 で要求の大きさを、次にその時の負荷を見てください。",
        )
        return Part("rate", FINDING, said, do, values)
    return Part("rate", OK, said, None, values)
