"""Step 1: the ratio of user CPU time to real time, which the rule `checkup/io_ratio` judges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sysdock.checkup import UNKNOWN
from sysdock.checkup.answers import Question, answers
from sysdock.checkup.statement import Part
from sysdock.errors import UserError
from sysdock.sentences import Words, fact, languages, say

if TYPE_CHECKING:
    from sysdock.analysis import Session
    from sysdock.checkup.site import Site

TABLE = "job_times"
AS_GIVEN = fact("checkup/as_given")
_NS = 1_000_000_000
_LONGEST_NS = 1 << 62
_QUESTION = Question(
    "ratio",
    "checkup/io_ratio",
    columns={"value": "ratio", "limit_value": "threshold", "subject": "job"},
    names={"subject": "command"},
)


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
    source: Words = AS_GIVEN
    remark: Part | None = None

    def on(self, cores: int | None, assistant_cores: int | None) -> JobTimes:
        """The times with the numbers of cores that the user stated, which override those of the source."""
        return replace(
            self,
            cores=self.cores if cores is None else cores,
            assistant_cores=self.assistant_cores if assistant_cores is None else assistant_cores,
        )

    def row(self) -> dict[str, Any]:
        """The row of `job_times`. UserError: no core is left that computes, or a time is no time of a job."""
        if (self.cores or 1) <= self.assistant_cores:
            found = f"{self.assistant_cores} assistant cores of {self.cores or 1} cores leave none to compute"
            raise UserError(found, "give all cores of the job with --cores", "--assistant-cores")
        return {
            "job": self.name,
            "source": say(self.source, languages()[0]),
            "user_ns": _ns(self.user),
            "system_ns": None if self.system is None else _ns(self.system),
            "elapsed_ns": _ns(self.real),
            "cores": self.cores,
            "assistant_cores": self.assistant_cores,
        }


def _ns(time_s: Fraction) -> int:
    ns = round(time_s * _NS)
    if ns > _LONGEST_NS:
        raise UserError("a time of more than 146 years", "give the times of one job")
    return ns


def ratio_part(session: Session, job: JobTimes, site: Site) -> Part:
    """The answer of the rule for the job with the times in `session`."""
    limits: dict[str, Any] = {"threshold_from": say(site.origin, languages()[0])}
    if site.threshold is not None:
        limits["threshold"] = site.threshold
    words = {"source": job.source, "threshold_from": site.origin}
    [part] = answers(session, _QUESTION, limits, words)
    return part.followed_by(job.remark) if job.remark else part


def no_times() -> Part:
    """The ratio where no times were given."""
    return Part(
        "ratio",
        UNKNOWN,
        fact("checkup/no_times_job_given"),
        fact("checkup/run_as_sysdock_checkup"),
    )
