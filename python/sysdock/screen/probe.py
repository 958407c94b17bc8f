"""Output of `probe status`: text, rows of JSON, and OpenMetrics."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sysdock.probe.slowdown import Answer, Judgement
from sysdock.sentences import Words, fact, say
from sysdock.text import pad, printable, width

KEYS = ("item", "status", "since", "change", "low", "high", "confidence")


@dataclass(frozen=True)
class Subject:
    """The measured file system: mount point, type and device, and the folder of the series."""

    mount_point: str
    fs_type: str
    source: str
    series: str

    @property
    def text(self) -> str:
        """`/srv (ext4 on /dev/sdb1)`."""
        return printable(f"{self.mount_point} ({self.fs_type} on {self.source})")


_VERDICTS = {
    "usual": fact("probe/as_fast_as_usual"),
    "faster": fact("probe/faster_than_usual"),
    "slower": fact("probe/slower_than_usual"),
    "machine": fact("probe/machine_itself_slower_than"),
    "failing": fact("probe/cannot_measured"),
    "unknown": fact("probe/not_known_yet"),
}
_STATUS = {
    "usual": fact("probe/status_usual"),
    "slower": fact("probe/status_slower"),
    "faster": fact("probe/status_faster"),
    "failing": fact("probe/status_failing"),
    "unknown": fact("probe/status_unknown"),
}
_HEADS = (
    fact("probe/item"),
    fact("probe/status"),
    fact("probe/rate"),
    fact("probe/interval"),
    fact("probe/since"),
    fact("probe/sure"),
)


def lines(answer: Answer, subject: Subject, lang: str, now_ns: int) -> list[str]:
    """The answer for a terminal: one sentence, then a line for each item."""
    out = [f"{subject.text}: {say(_verdict(answer, now_ns), lang)}"]
    if answer.reason and answer.status in ("unknown", "failing"):
        out.append(printable(say(answer.reason, lang)))
    rows = [_row(item, lang) for item in answer.items]
    if rows:
        out += ["", *_table([tuple(say(head, lang) for head in _HEADS), *rows])]
    notes = dict.fromkeys(printable(say(item.note, lang)) for item in answer.items if item.note)
    if answer.status in ("slower", "machine", "faster", "usual"):
        out += ["", *notes] if notes else []
    return out


def status_names(lang: str) -> dict[str, str]:
    """Names of verdicts and statuses, and the corresponding status of a rule."""
    like = {"usual": "ok", "faster": "ok", "slower": "finding", "failing": "note", "unknown": "unknown"}
    verdicts = {say(_VERDICTS[name], lang): status for name, status in like.items()}
    return {**verdicts, **{say(_STATUS[name], lang): status for name, status in like.items()}}


def _verdict(answer: Answer, now_ns: int) -> Words:
    text = _VERDICTS[answer.status]
    wanted = {"machine": "slower"}.get(answer.status, answer.status)
    since = [item.since_ns for item in answer.items if item.status == wanted and item.since_ns is not None]
    if not since:
        return text
    first = min(since)
    return fact("probe/since_when", verdict=text, since=_local(first), ago=max(now_ns - first, 0))


def _row(item: Judgement, lang: str) -> tuple[str, ...]:
    interval = ""
    if item.low is not None and item.high is not None:
        interval = say(fact("probe/from_to", low=_percent(item.low), high=_percent(item.high)), lang)
    return (
        printable(item.item),
        say(_STATUS[item.status], lang),
        "" if item.change is None else _percent(item.change),
        interval,
        "" if item.since_ns is None else _local(item.since_ns),
        "" if item.confidence is None else _sure(item.confidence),
    )


def _sure(confidence: float) -> str:
    """Never 100 %."""
    return f"{min(confidence, 0.9999) * 100:.4g} %"


def _percent(ratio: float) -> str:
    return f"{ratio * 100:+.0f} %"


def _local(time_ns: int) -> str:
    return datetime.datetime.fromtimestamp(time_ns / 1e9).strftime("%Y-%m-%d %H:%M")


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(pad, row, widths)).rstrip() for row in rows]


def stamp(time_ns: int) -> str:
    """A moment in JSON: UTC, by the second."""
    moment = datetime.datetime.fromtimestamp(time_ns // 1_000_000_000, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def rows(answer: Answer) -> list[tuple[object, ...]]:
    """Rows under `KEYS`."""
    return [
        (
            item.item,
            item.status,
            None if item.since_ns is None else stamp(item.since_ns),
            *(None if value is None else round(value, 4) for value in (item.change, item.low, item.high)),
            None if item.confidence is None else round(item.confidence, 6),
        )
        for item in answer.items
    ]


def openmetrics(answer: Answer, subject: Subject) -> str:
    """The answer as OpenMetrics text, for a collector that reads files."""
    mount = _quoted(subject.mount_point)
    out = [
        *_family("sysdock_probe_status", "0 usual, 1 slower, 2 cannot be measured, 3 not known yet."),
        f'sysdock_probe_status{{mount="{mount}"}} {answer.exit_status}',
        *_family("sysdock_probe_machine_slower", "1: the machine itself is slower, by the control item."),
        f'sysdock_probe_machine_slower{{mount="{mount}"}} {int(answer.status == "machine")}',
        *_family("sysdock_probe_probes", "Probes that the answer rests on."),
        f'sysdock_probe_probes{{mount="{mount}"}} {answer.probes}',
    ]
    if answer.last_ns is not None:
        out += _family("sysdock_probe_last_timestamp_seconds", "When the newest probe began.", "seconds")
        out.append(f'sysdock_probe_last_timestamp_seconds{{mount="{mount}"}} {answer.last_ns / 1e9:.3f}')
    of_items: Iterable[tuple[str, str, list[tuple[str, float | None]]]] = (
        (
            "sysdock_probe_item_slower",
            "1: the item is slower than usual.",
            [(item.item, float(item.status == "slower")) for item in answer.items],
        ),
        (
            "sysdock_probe_item_change_ratio",
            "Change of the rate against the usual one; -0.3: 30 % slower.",
            [(item.item, item.change) for item in answer.items],
        ),
        (
            "sysdock_probe_item_confidence_ratio",
            "How sure it is that the rate changed.",
            [(item.item, item.confidence) for item in answer.items],
        ),
    )
    for name, text, values in of_items:
        known = [(item, value) for item, value in values if value is not None]
        if known:
            out += _family(name, text, "ratio" if name.endswith("_ratio") else "")
            out += [
                f'{name}{{mount="{mount}",item="{_quoted(item)}"}} {round(value, 6):g}'
                for item, value in known
            ]
    return "\n".join([*out, "# EOF"]) + "\n"


def _family(name: str, text: str, unit: str = "") -> list[str]:
    return [f"# TYPE {name} gauge", *([f"# UNIT {name} {unit}"] if unit else []), f"# HELP {name} {text}"]


def _quoted(text: str) -> str:
    return printable(text).replace("\\", r"\\").replace('"', r"\"")
