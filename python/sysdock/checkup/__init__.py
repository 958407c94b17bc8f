"""The four-step method: does I/O hold a job back, and whom to ask about it.

The method is that of the SS-ken file-system working group (2015): 1 the ratio of user CPU time to real
time, 2 volume, rate and load, 3 the system calls, 4 what to hand to the administrator.
docs/howto/check-up-a-job.md describes it for users.
"""

# Statuses of a rule, and their names for readers of the check-up.
OK, UNKNOWN, FINDING = "ok", "unknown", "finding"
VERDICTS = {OK: "ok", UNKNOWN: "unknown", FINDING: "look closer"}
_WORST_LAST = tuple(VERDICTS)


def worst(statuses: list[str]) -> str:
    """The status of a whole: absence of data is never ok, and what was found outweighs it."""
    return max(statuses, key=_WORST_LAST.index, default=UNKNOWN)
