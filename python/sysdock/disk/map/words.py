"""What the classes of a map are called and mean, in English and Japanese."""

from __future__ import annotations

from typing import Any

from sysdock.text import human_bytes

CLASSES = {
    "free": (("free", "空き"), ("", "")),
    "unfragmented": (
        ("of a file in one piece", "断片化していないファイル"),
        ("nothing to gain here", "改善の余地はありません"),
    ),
    "contiguous": (
        ("of a file in several pieces", "断片化したファイルの連続部分"),
        ("read in order, until the next break", "次の断片まで連続して読めます"),
    ),
    "break": (
        ("break: a further piece begins", "断片の先頭"),
        ("the first block of each; one more request, or a seek", "ここで要求かシークが 1 つ増えます"),
    ),
    "metadata": (
        ("the file system's own", "メタデータ"),
        (
            "inode tables, bitmaps, journal, trees, copies, parity",
            "inode 表、ビットマップ、ジャーナル、木、コピー、パリティ",
        ),
    ),
    "unwritten": (
        ("allocated, not yet written", "割り当て済みで未書き込み"),
        ("reads as zeros", "読むとゼロになります"),
    ),
    "compressed": (
        ("compressed", "圧縮"),
        ("short pieces by design, no breaks", "短い断片は圧縮の仕様によるもので、断片化ではありません"),
    ),
    "unknown": (
        ("not known", "不明"),
        ("in no table: unread files, or not scanned", "表にありません (読めないファイルか走査の対象外)"),
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


def scale(shown: dict[str, Any], lang: str) -> str:
    """What a cell is, and which part of the device is shown."""
    cell = human_bytes(shown["length"] / 4 ** shown["order"])
    if shown["length"] == shown["size_bytes"]:
        return f"1 マス {cell}" if lang == "ja" else f"a cell is {cell}"
    start, end = shown["from"], shown["from"] + shown["length"]
    if lang == "ja":
        return f"1 マス {cell}、バイト {start:,} から {end:,} まで"
    return f"a cell is {cell}; bytes {start:,} to {end:,}"


def remarks(shown: dict[str, Any], lang: str) -> list[str]:
    """What the picture cannot show by itself."""
    japanese = lang == "ja"
    lines = []
    if len(shown["devices"]) > 1:
        lines += ["デバイスを順に並べています:" if japanese else "devices in order:"]
        for device in shown["devices"]:
            name, place = device_name(device), human_bytes(device["from"])
            lines.append(f"デバイス {name}: {place} から" if japanese else f"device {name} from {place} on")
    if again := shown["claimed_again_bytes"]:
        words = "複数のファイルが共有 (一度だけ描画)" if japanese else "shared by several files, drawn once:"
        lines.append(f"{words} {human_bytes(again)}")
    if wrong := shown["wrong_rows"]:
        words = "表の誤った行 (描画しません)" if japanese else "rows that cannot be right, not drawn:"
        lines.append(f"{words} {wrong:,}")
    if beyond := shown["beyond_bytes"]:
        words = (
            "デバイスの終わりより後ろ (描画しません)"
            if japanese
            else "beyond the end of the device, not drawn:"
        )
        lines.append(f"{words} {human_bytes(beyond)}")
    return lines
