"""What a dashboard for Grafana asks of Prometheus."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DASHBOARD = (
    Path(__file__).resolve().parents[3] / "python/wheel-data/data/share/sysdock/grafana/sysdock-nodes.json"
)


@dataclass(frozen=True)
class Question:
    """An expression of a panel."""

    panel: str
    expression: str

    def metrics(self) -> set[str]:
        """The metrics that it names."""
        return set(re.findall(r"\bsysdock_\w+", self.expression))

    def filled(self) -> str:
        """As Grafana sends it, for all nodes and rates over ten seconds."""
        filled = self.expression.replace("$__rate_interval", "10s").replace("$node", ".*")
        assert "$" not in filled, filled
        return filled


def load() -> dict[str, Any]:
    """The dashboard."""
    loaded: dict[str, Any] = json.loads(DASHBOARD.read_text("utf-8"))
    return loaded


def questions() -> list[Question]:
    """All expressions of all panels."""
    return [
        Question(panel["title"], target["expr"])
        for panel in load()["panels"]
        for target in panel.get("targets", [])
    ]


@contextlib.contextmanager
def cable(name: str) -> Iterator[Callable[[], int]]:
    """Two network interfaces that are one cable, NAME-a and NAME-b; call what comes to send a frame. Needs root."""
    ends = (f"{name}-a", f"{name}-b")
    subprocess.run(["ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1]], check=True)
    try:
        for end in ends:
            subprocess.run(["ip", "link", "set", end, "up"], check=True)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.bind((ends[0], 0))
            # To all, of the protocol that is free for experiments (IEEE 802).
            frame = b"\xff" * 6 + b"\x02\0\0\0\0\1" + b"\x88\xb5" + bytes(46)
            yield lambda: sender.send(frame)
    finally:
        subprocess.run(["ip", "link", "del", ends[0]], check=True)
