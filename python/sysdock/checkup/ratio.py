"""Step 1: the ratio of user CPU time to real time.

The ratio is user / (cores - assistant cores) / real. A job that computes is near 0.9, one that waits for I/O
usually below 0.1. The report prints ratios truncated to three digits, and so does `truncated`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sysdock.checkup import LOOK_CLOSER, OK, UNKNOWN
from sysdock.checkup.statement import Name, Part
from sysdock.errors import UserError

DEFAULT_THRESHOLD = 0.1
_DIGITS = 3


@dataclass(frozen=True)
class JobTimes:
    """User, system and real time of a job in seconds. `cores` None: not stated, so one is assumed.

    `source` says what they were read from, `remark` what that cannot tell.
    """

    user: Fraction
    real: Fraction
    system: Fraction | None = None
    cores: int | None = None
    assistant_cores: int = 0
    name: str | None = None
    source: tuple[str, str] = ("", "")
    remark: Part | None = None

    def on(self, cores: int | None, assistant_cores: int | None) -> JobTimes:
        """The same with the numbers of cores that the user stated; they count more than the source's."""
        return replace(
            self,
            cores=self.cores if cores is None else cores,
            assistant_cores=self.assistant_cores if assistant_cores is None else assistant_cores,
        )

    @property
    def ratio(self) -> Fraction | None:
        """The ratio; None where the real time is zero. UserError: no core is left that computes."""
        computing = (self.cores or 1) - self.assistant_cores
        if computing < 1:
            fact = f"{self.assistant_cores} assistant cores of {self.cores or 1} cores leave none to compute"
            raise UserError(fact, "give all cores of the job with --cores", "--assistant-cores")
        return self.user / computing / self.real if self.real else None


def truncated(value: Fraction, digits: int = _DIGITS) -> str:
    """The first significant digits of a number that is not negative, the rest cut off, not rounded."""
    if value <= 0:
        return "0"
    exponent = 0
    while value < Fraction(10) ** exponent:
        exponent -= 1
    while value >= Fraction(10) ** (exponent + 1):
        exponent += 1
    places = digits - 1 - exponent
    if places <= 0:
        return str(int(value))
    figures = str(int(value * 10**places)).rjust(places + 1, "0")
    return f"{figures[:-places]}.{figures[-places:]}"


def judge_ratio(job: JobTimes | None, threshold: float, threshold_from: tuple[str, str]) -> Part:
    """What the ratio says; `threshold_from` says where the threshold comes from."""
    if job is None:
        return Part(
            "ratio",
            UNKNOWN,
            ("No times of the job were given.", "ジョブの時間が与えられていません。"),
            (
                "Run it as `sysdock checkup -- CMD`, or give --time LOG (output of `time -v`), "
                "--acct FILE --job NAME, --table FILE --job ID, or --user T --real T.",
                "`sysdock checkup -- CMD` で実行するか、--time LOG (`time -v` の出力)、"
                "--acct FILE --job NAME、"
                "--table FILE --job ID、--user T --real T のいずれかを与えてください。",
            ),
        )
    ratio = job.ratio
    values: dict[str, Any] = {
        "user_s": job.user,
        "system_s": job.system,
        "real_s": job.real,
        "cores": job.cores,
        "assistant_cores": job.assistant_cores,
        "computing": (job.cores or 1) - job.assistant_cores,
        "ratio": ratio,
        "threshold": threshold,
        "job": Name("command", job.name) if job.name else None,
        "source": job.source[0],
        "source_ja": job.source[1],
        "threshold_from": threshold_from[0],
        "threshold_from_ja": threshold_from[1],
    }
    if ratio is None:
        said = (
            "The real time is zero: too short to be measured ({source}).",
            "実時間が 0 です。短すぎて測れません ({source_ja})。",
        )
        again = ("Measure a longer run.", "もっと長い実行を測ってください。")
        return Part("ratio", UNKNOWN, said, again, values)
    said = (
        "User time {user_s:s} / {computing} core(s) / real time {real_s:s} = {ratio:ratio} ({source}); "
        "the threshold is {threshold} ({threshold_from}).",
        "ユーザー時間 {user_s:s} / {computing} コア / 実時間 {real_s:s} = {ratio:ratio} ({source_ja})。"
        "しきい値は {threshold} です ({threshold_from_ja})。",
    )
    verdict, do = OK, ("The job computes most of the time.", "時間の多くは計算に使われています。")
    if ratio > 1 and job.cores is None:
        verdict = UNKNOWN
        do = (
            "A ratio above 1 shows that more than one core was used: give their number with --cores.",
            "1 を超える比は複数のコアが使われたことを示します。--cores でコア数を与えてください。",
        )
    elif ratio < Fraction(threshold):
        verdict = LOOK_CLOSER
        do = (
            "The job waits most of the time. Go on with steps 2 and 3 to see whether it waits for I/O.",
            "時間の多くは待ちです。ステップ 2 と 3 に進み、入出力を待っているのかを確かめてください。",
        )
    if job.system is not None and job.system > job.user and job.system * 2 > job.real:
        do = (f"{do[0]} {_SYSTEM[0]}", do[1] + _SYSTEM[1])
    if job.remark:
        values["remark"] = job.remark
        said = (said[0] + " {remark}", said[1] + "{remark}")
    return Part("ratio", verdict, said, do, values)


_SYSTEM = (
    "The kernel worked longer for it than its own code ({system_s:s} system time): "
    "look at the calls in step 3.",
    "自身のコードよりカーネルの方が長く働きました (システム時間 {system_s:s})。"
    "ステップ 3 で呼び出しを見てください。",
)
