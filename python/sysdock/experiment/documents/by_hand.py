"""Shell commands for the settings of an experiment without sysdock."""

from __future__ import annotations

import shlex

from sysdock.library.experiments import AS_IT_IS


def by_hand(setting: str, value: str) -> str:
    """The shell command for a setting; `-` if nothing has to be done.

    Placeholders stand in it as they stand in the experiment.
    """
    kind, _, target = setting.partition(":")
    if value == AS_IT_IS:
        return "-"
    quoted = shlex.quote(value)
    match kind:
        case "sysctl":
            return f"sysctl -w {target}={quoted}"
        case "sysfs":
            return f"echo {quoted} > {target}"
        case "cpu":
            return f"echo {1 if value == 'online' else 0} > /sys/devices/system/cpu/cpu{target}/online"
        case "cache":
            return f"sync; echo {quoted} > /proc/sys/vm/drop_caches"
        case "mount.options":
            place = target if target.startswith("/") else f"{{{target}}}"
            return f"umount {place}; mount -o {quoted} DEVICE {place}"
        case "cgroup":
            return f"echo {quoted} > /sys/fs/cgroup/{target}"
        case _:
            return f"write the value to {target}"
