"""The four-step method: does I/O hold a job back, and whom to ask about it.

The method is that of the SS-ken file-system working group (2015): 1 the ratio of user CPU time to real
time, 2 volume, rate and load, 3 the system calls, 4 what to hand to the administrator.
docs/howto/check-up-a-job.md describes it for users.
"""

OK, LOOK_CLOSER, UNKNOWN = "ok", "look closer", "unknown"
VERDICTS = (OK, UNKNOWN, LOOK_CLOSER)


def worst(verdicts: list[str]) -> str:
    """The verdict of a whole: absence of data is never ok, and what was found outweighs it."""
    return max(verdicts, key=VERDICTS.index, default=UNKNOWN)
