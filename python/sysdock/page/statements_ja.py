"""What recorders state in English about a clock or an ending, for Japanese readers.

recording.json is in one language, so that tools of others can read it. A text that is not known here (of a
newer recorder, or of another one) stays as it is.
"""

from __future__ import annotations

import re

_ENDINGS = {
    "running": "記録中に中断",
    "end of input": "入力の終わりに到達",
    "interrupted": "中断された",
    "write error": "書き込みエラー",
    "input error": "入力のエラー",
}
# crates: strace/src/clock.rs, strace/src/truss/times.rs, bpf/src/conversion/clock.rs, dump/src/clock.rs,
# native; recording/merging.py. Several notes are joined by semicolons.
NOTES = {
    "the date was given by the user": "日付はユーザーが指定したもの",
    "the log has times of day only": "ログには時刻だけがあり日付がない",
    "the date was inferred from the log's modification time, the zone is this machine's": (
        "日付はログの更新日時から推定、タイムゾーンはこのマシンのもの"
    ),
    "the log has time differences only": "ログには時間差だけがある",
    "times count from its first line": "時刻は最初の行から数える",
    "the log has no clock": "ログに時刻がない",
    "times only count lines": "時刻は行番号にすぎない",
    r"times run back (\d+) times, by up to (\d+) s: the clock was set, or calls are in the order of their "
    r"return \(-z\)": r"時刻が \1 回、最大 \2 秒戻る (時計が変更されたか、呼び出しが終了順に並んでいる (-z))",
    "the log does not give its start time": "ログに開始日時がない",
    "times count from the start": "時刻は開始時点から数える",
    "stamps are of the return of a call, in steps of 0.1 ms": "時刻は呼び出しの終了時点、0.1 ms 単位",
    "durations are system CPU time as truss -E measures it, not elapsed time": (
        "所要時間は経過時間ではなく、truss -E が測ったシステム CPU 時間"
    ),
    "which of -d, -D and -E the time columns are was not certain: --truss-columns states it": (
        "時刻の列が -d、-D、-E のどれか確定できない (--truss-columns で指定)"
    ),
    "no clock note was found: times count from the start of the machine": (
        "時計の情報がない。時刻はマシンの起動から数える"
    ),
    "CLOCK_MONOTONIC, with its offset to CLOCK_REALTIME at the start": (
        "CLOCK_MONOTONIC に、開始時の CLOCK_REALTIME との差を加えたもの"
    ),
    r"CLOCK_MONOTONIC, with its offset to CLOCK_REALTIME between (\d+) comparisons, "
    r"which differ by (\d+) us": (
        r"CLOCK_MONOTONIC に、\1 回の比較から求めた CLOCK_REALTIME との差を加えたもの (差の幅は \2 us)"
    ),
    r"(\d+) comparisons agree within (\d+) us": r"\1 回の比較が \2 us 以内で一致",
    "the wall clock of the kernel when it stopped": "カーネル停止時の実時間時計",
    "times of the log and of the scheduler count the same cycles as the wall clock": (
        "ログとスケジューラーの時刻は実時間時計と同じサイクルを数える"
    ),
    "times of the log and of the scheduler follow the wall clock from tick to tick": (
        "ログとスケジューラーの時刻はティックごとに実時間時計に合わせられる"
    ),
    "times of the log and of the scheduler are off by what their clock has drifted since it was compared": (
        "ログとスケジューラーの時刻には、時計を比較した時点からのずれがある"
    ),
    "a profile contains sums only: neither times nor order": (
        "プロファイルにあるのは合計だけで、時刻も順序もわからない"
    ),
    "instructions have no time of their own: they are numbered": ("命令には時刻がなく、番号だけが付いている"),
    r"(\d+) recordings, compared by: (.*)": r"\1 個の記録、比較の方法: \2",
    "see `ranks`": "詳細は `ranks`",
}


def ending_ja(ended_by: str) -> str:
    """How a recording ended."""
    return _ENDINGS.get(ended_by, ended_by)


def clock_note_ja(note: str) -> str:
    """What its clock is worth."""
    return "。".join(_one_note(part) for part in note.split("; "))


def _one_note(note: str) -> str:
    for english, japanese in NOTES.items():
        pattern = english if "(\\d+)" in english else re.escape(english)
        if found := re.fullmatch(pattern, note):
            return found.expand(japanese) if found.groups() else japanese
    return note
