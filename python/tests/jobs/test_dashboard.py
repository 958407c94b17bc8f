"""The dashboard for Grafana asks for what an agent serves, and its panels are where Grafana can put them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import dashboards
import pytest
from agents import Agent, run_job
from test_open_metrics import port_of, scrape
from waiting import wait_for


@pytest.mark.root
def test_every_metric_of_a_panel_is_served(tmp_path: Path, agent: Callable[..., Agent]) -> None:
    wanted = set().union(*(question.metrics() for question in dashboards.questions()))
    wanted |= set(re.findall(r"\bsysdock_\w+", dashboards.load()["templating"]["list"][1]["query"]))
    assert len(wanted) > 15
    if not os.listdir("/sys/block"):
        wanted = {name for name in wanted if not name.startswith("sysdock_device_")}
    port = port_of(agent("--lake", tmp_path / "lake", "--metrics=127.0.0.1:0"))
    with dashboards.cable("panel") as send:

        def missing() -> set[str]:
            # A device or an interface has a series once something was counted of it.
            run_job("panel-1", "dd if=/dev/zero of=x bs=1M count=1 conv=fsync 2>/dev/null", tmp_path)
            send()
            return wanted - {name for name, _ in scrape(port)}

        wait_for(lambda: not missing())


def test_labels_of_expressions_are_those_of_the_documentation() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs/howto/feed-a-monitoring-system.md").read_text()
    known = set(re.findall(r"`(\w+)`", page)) | {"node"}
    used = set()
    for question in dashboards.questions():
        for labels in re.findall(r"by \(([^)]*)\)", question.expression):
            used |= set(re.split(r",\s*", labels))
        used |= set(re.findall(r"(\w+)[=!]~?\"", question.expression))
    assert {"mount_point", "node", "class"} <= used <= known


def test_panels_have_a_place_a_text_and_a_source_of_their_own() -> None:
    board = dashboards.load()
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
        if panel["type"] != "row":
            assert len(panel["description"]) > 20
            assert panel["datasource"]["uid"] == "${source}"
            assert all(target["legendFormat"] for target in panel["targets"])
    assert board["templating"]["list"][0]["type"] == "datasource"
