"""Names and descriptions of the classes of a map, and the remarks below it."""

from __future__ import annotations

from typing import Any

from sysdock.sentences import Words, fact
from sysdock.text import human_bytes

# Name and description of each class.
CLASSES: dict[str, tuple[Words, Words]] = {
    "free": (fact("disk_map/free"), ""),
    "unfragmented": (
        fact("disk_map/file_one_piece"),
        fact("disk_map/nothing_gain_here"),
    ),
    "contiguous": (
        fact("disk_map/file_several_pieces"),
        fact("disk_map/read_order_until_next"),
    ),
    "break": (
        fact("disk_map/break_further_piece_begins"),
        fact("disk_map/first_block_each_one"),
    ),
    "metadata": (
        fact("disk_map/file_system_s_own"),
        fact("disk_map/inode_tables_bitmaps_journal"),
    ),
    "unwritten": (
        fact("disk_map/allocated_not_yet_written"),
        fact("disk_map/reads_as_zeros"),
    ),
    "compressed": (
        fact("disk_map/compressed"),
        fact("disk_map/short_pieces_design_no"),
    ),
    "unknown": (
        fact("disk_map/not_known"),
        fact("disk_map/no_table_unread_files"),
    ),
}


def percent_of(part: int, whole: int) -> str:
    """A share that is never rounded to nothing."""
    share = 100 * part / whole if whole else 0.0
    return "< 0.1 %" if 0 < share < 0.1 else f"{share:.1f} %"


def device_name(device: dict[str, Any]) -> str:
    """Number and path of one of several devices."""
    return f"{device['device']} ({device['path']})" if device["path"] else str(device["device"])


def title(shown: dict[str, Any]) -> str:
    """Which file system."""
    return f"{shown['source']} ({shown['fs_type']}, {human_bytes(shown['size_bytes'])})"


def scale(shown: dict[str, Any]) -> Words:
    """The size of a cell, and the part of the device that is shown."""
    cell = shown["length"] / 4 ** shown["order"]
    if shown["length"] == shown["size_bytes"]:
        return fact("disk_map/cell", cell=cell)
    start, end = shown["from"], shown["from"] + shown["length"]
    return fact("disk_map/cell_of_part", cell=cell, start=start, end=end)


def remarks(shown: dict[str, Any]) -> list[Words]:
    """Facts that the picture cannot show by itself."""
    lines: list[Words] = []
    if len(shown["devices"]) > 1:
        lines.append(fact("disk_map/devices_in_order"))
        lines += [
            fact("disk_map/device_from", device=device_name(device), start=device["from"])
            for device in shown["devices"]
        ]
    counted = (
        ("claimed_again_bytes", "shared"),
        ("wrong_rows", "wrong_rows"),
        ("beyond_bytes", "beyond_end"),
    )
    return lines + [fact(f"disk_map/{name}", amount=shown[key]) for key, name in counted if shown[key]]
