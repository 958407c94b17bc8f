"""Moments as users state them."""

from __future__ import annotations

import datetime
import re
import time

from sysdock.errors import UserError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def moment_ns(text: str, option: str = "--at") -> int:
    """Unix time [ns] of an ISO time stamp, of seconds since 1970, or of `now`."""
    if text == "now":
        return time.time_ns()
    if re.fullmatch(r"\d{9,11}(\.\d+)?", text):
        return int(float(text) * 1e9)
    try:
        stamp = datetime.datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text))
    except ValueError:
        raise UserError(f"`{text}` is not a time", "write 2026-11-20T08:30:00, or `now`", option) from None
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return (stamp.astimezone() - epoch) // datetime.timedelta(microseconds=1) * 1000


def span_ns(text: str, option: str = "--last") -> int:
    """Length of a time such as 90s, 10m, 2h or 7d [ns]."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    if not found or float(found[1]) == 0:
        raise UserError(f"`{text}` is not a length of time", "write 90s, 10m, 2h or 7d", option)
    return int(float(found[1]) * _UNITS[found[2] or "s"] * 1e9)
