"""The lines that make a probe run again and again: a timer of systemd, or cron."""

from __future__ import annotations

from pathlib import Path

from sysdock.probe.series import default_root
from sysdock.probe.target import Target

_TEN_MINUTES_NS = 600_000_000_000
_MINUTE_NS = 60_000_000_000
_HOUR = 60


def lines(series: Path, target: Target, every: str, every_ns: int) -> list[str]:
    """The next steps, for a shell and for a file of cron."""
    is_usual = series == default_root() / target.name and series.is_relative_to("/var/lib/sysdock")
    shown_lines = [
        f"Measures   {target.folder}: {target.fs_type} on {target.source}, mounted at {target.mount_point}",
        f"Options    {target.options}",
        f"Series     {series}",
        "",
    ]
    if is_usual:
        unit = f"sysdock-probe@{target.name}.timer"
        if every_ns != _TEN_MINUTES_NS:
            shown_lines += [
                f"Time       systemctl edit '{unit}', with the lines",
                "             [Timer]",
                "             OnUnitActiveSec=",
                f"             OnUnitActiveSec={every}",
            ]
        shown_lines.append(f"systemd    systemctl enable --now '{unit}'")
    user = "root" if is_usual else ""
    command = "sysdock probe once --series " + _quoted(str(series))
    shown_lines.append("cron       " + " ".join(filter(None, [_cron(every_ns), user, command])))
    return shown_lines


def _cron(every_ns: int) -> str:
    """When, in five fields: the nearest that cron can say."""
    minutes = max(1, round(every_ns / _MINUTE_NS))
    if minutes < _HOUR:
        return f"*/{minutes} * * * *"
    hours = max(1, round(minutes / _HOUR))
    return f"7 */{hours} * * *" if hours < 24 else "7 3 * * *"


def _quoted(text: str) -> str:
    """For a shell that cron calls: a percent sign begins a new line there."""
    import shlex

    return shlex.quote(text).replace("%", r"\%")
