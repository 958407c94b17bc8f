"""What an agent pushes as OTLP: a receiver that misbehaves now and then gets each job's sums, as the lake has them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from agents import NATIVE, Agent, rows, run_job
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from waiting import wait_for

Answer = tuple[int, dict[str, str], dict[str, object]]
FINE: Answer = (200, {}, {})


class Receiver:
    """Takes OTLP over HTTP; `answers` come first, then it takes all."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.taken: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.asked = 0
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                status, headers, answer = receiver.take(self.path, dict(self.headers), body)
                self.send_response(status)
                text = json.dumps(answer).encode()
                own = {"content-type": "application/json", "content-length": str(len(text))}
                for name, value in {**own, **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    @property
    def url(self) -> str:
        """The receiver's address."""
        return f"http://127.0.0.1:{self.server.server_port}"

    def take(self, path: str, headers: dict[str, str], body: bytes) -> Answer:
        """One request."""
        self.asked += 1
        if path != "/v1/metrics":
            return 404, {}, {}
        answer = self.answers.pop(0) if self.answers else FINE
        if answer[0] == 200:
            self.headers.append({name.lower(): value for name, value in headers.items()})
            # OpenTelemetry's own types: an unknown field, or a value of another type, is an error.
            json_format.Parse(body, ExportMetricsServiceRequest())
            self.taken.append(json.loads(body))
        return answer

    def sums(self, name: str, **attributes: str) -> dict[str, int]:
        """Sum of all points of a metric, by job; seconds are given in nanoseconds."""
        found: dict[str, int] = defaultdict(int)
        for job, metric, point in self.points():
            if metric["name"] == name and attributes.items() <= named(point["attributes"]).items():
                value = int(point["asInt"]) if "asInt" in point else round(point["asDouble"] * 1e9)
                found[job] += value
        return dict(found)

    def points(self) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
        """All points with their job and metric."""
        for request in list(self.taken):
            for resource in request["resourceMetrics"]:
                job = named(resource["resource"]["attributes"]).get("sysdock.job.id", "")
                for scope in resource["scopeMetrics"]:
                    for metric in scope["metrics"]:
                        for point in metric["sum"]["dataPoints"]:
                            yield job, metric, point

    def end(self) -> None:
        """Ends it."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def named(attributes: list[dict[str, Any]]) -> dict[str, str]:
    """Attributes by name."""
    return {one["key"]: one["value"]["stringValue"] for one in attributes}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """One that ends with the test."""
    started = Receiver()
    yield started
    started.end()


COLUMNS = {
    "written_bytes": ("sysdock.files.written", {}),
    "creates": ("sysdock.files.calls", {"class": "create"}),
    "removes": ("sysdock.files.calls", {"class": "remove"}),
    "opens": ("sysdock.files.calls", {"class": "open"}),
    "errors": ("sysdock.files.errors", {}),
    "io_time_ns": ("sysdock.files.call_time", {}),
    "io_wait_ns": ("sysdock.files.wait", {}),
    "cpu_ns": ("sysdock.tasks.cpu", {}),
    "minor_faults": ("sysdock.tasks.page_faults", {"kind": "minor"}),
}


def in_lake(lake: Path, column: str) -> dict[str, int]:
    """Sums of a column by job, of those that have any."""
    sql = f"SELECT job_id, sum({column}) FROM job_samples WHERE job_id LIKE 'otlp-%' GROUP BY 1 HAVING sum({column}) > 0"
    return {str(job): int(str(value)) for job, value in rows(lake, sql)}


def run_jobs(folder: Path) -> None:
    """Jobs that write, remove and fail."""
    for number in range(1, 4):
        script = (
            f"dd if=/dev/zero of=a bs=1000 count={number * 10} 2>/dev/null; cat none 2>/dev/null; rm a; true"
        )
        run_job(f"otlp-{number}", script, folder)


def of_jobs(sums: dict[str, int]) -> dict[str, int]:
    """Without what else the machine did meanwhile."""
    return {job: value for job, value in sums.items() if job.startswith("otlp-")}


@pytest.mark.root
class TestSums:
    def test_a_receiver_has_what_the_lake_has(
        self, tmp_path: Path, agent: Callable[..., Agent], receiver: Receiver
    ) -> None:
        """Also where it wants to be asked later, in each of the ways that the specification has."""
        receiver.answers = [(status, {"retry-after": "0"}, {}) for status in (429, 502, 503, 504)]
        lake = tmp_path / "lake"
        started = agent("--lake", lake, "--otlp", receiver.url, "--cluster=k", "--node=n1")
        wait_for(lambda: not receiver.answers)
        run_jobs(tmp_path)
        started.answer("otlp-3", "--over")
        assert started.end() == 0
        assert not list((started.spool / "otlp").glob("batch-*"))
        assert of_jobs(receiver.sums("sysdock.files.written")) == {
            "otlp-1": 10_000,
            "otlp-2": 20_000,
            "otlp-3": 30_000,
        }
        for column, (name, attributes) in COLUMNS.items():
            assert of_jobs(receiver.sums(name, **attributes)) == in_lake(lake, column), column
        assert "the OTLP receiver: it answers 429; it requests a wait of 0 s" in started.said()
        self.look_at_points(receiver)

    def look_at_points(self, receiver: Receiver) -> None:
        """Each is a monotonic sum of one interval, in its unit, of a named job."""
        units = {"sysdock.files.written": "By", "sysdock.files.calls": "1", "sysdock.tasks.cpu": "s"}
        for job, metric, point in receiver.points():
            assert metric["sum"]["aggregationTemporality"] == 1
            assert metric["sum"]["isMonotonic"] is True
            assert metric["unit"] == units.get(metric["name"], metric["unit"])
            begin, end = int(point["startTimeUnixNano"]), int(point["timeUnixNano"])
            assert begin < end < begin + 60_000_000_000, (job, metric["name"])
        resources = [one["resource"] for request in receiver.taken for one in request["resourceMetrics"]]
        of_job = next(
            one
            for one in (named(each["attributes"]) for each in resources)
            if one.get("sysdock.job.id") == "otlp-1"
        )
        assert of_job == {
            "service.name": "sysdock-agent",
            "host.name": "n1",
            "sysdock.cluster": "k",
            "sysdock.job.id": "otlp-1",
            "sysdock.job.name": "name of otlp-1",
            "sysdock.job.user": "root",
        }
        assert {one["content-type"] for one in receiver.headers} == {"application/json"}

    def test_a_receiver_alone_is_enough(
        self, tmp_path: Path, agent: Callable[..., Agent], receiver: Receiver
    ) -> None:
        token = tmp_path / "otlp-token"
        token.write_text("of-the-store\n")
        token.chmod(0o600)
        started = agent("--otlp", receiver.url, "--otlp-token-file", token)
        run_jobs(tmp_path)
        started.answer("otlp-3", "--over")
        assert started.end() == 0
        assert started.waiting() == []
        assert of_jobs(receiver.sums("sysdock.files.written"))["otlp-3"] == 30_000
        assert {one["authorization"] for one in receiver.headers} == {"Bearer of-the-store"}

    def test_nothing_is_lost_or_doubled_where_an_agent_is_killed(
        self, tmp_path: Path, agent: Callable[..., Agent], receiver: Receiver
    ) -> None:
        """Batches wait on disk while the receiver is busy, and the next agent sends them."""
        busy: list[Answer] = [(503, {"retry-after": "1"}, {})] * 1000
        receiver.answers = list(busy)
        lake = tmp_path / "lake"
        first = agent("--lake", lake, "--otlp", receiver.url)
        run_jobs(tmp_path)
        first.answer("otlp-3", "--over")
        wait_for(lambda: len(list((first.spool / "otlp").glob("batch-*"))) >= 3)
        first.end(signal.SIGKILL)
        receiver.answers = []
        second = agent("--lake", lake, "--otlp", receiver.url)
        expected = {"otlp-1": 10_000, "otlp-2": 20_000, "otlp-3": 30_000}
        wait_for(lambda: of_jobs(receiver.sums("sysdock.files.written")) == expected)
        assert second.end() == 0
        assert of_jobs(receiver.sums("sysdock.files.written")) == expected
        assert in_lake(lake, "written_bytes") == expected


@pytest.mark.root
class TestWhatIsNotTaken:
    @pytest.mark.parametrize(
        ("answer", "fact"),
        [
            ((400, {}, {"message": "bad"}), "it answers 400"),
            (
                (200, {}, {"partialSuccess": {"rejectedDataPoints": "7", "errorMessage": "old"}}),
                "7 points refused: old",
            ),
        ],
    )
    def test_refused_points_are_counted_and_not_sent_again(
        self, tmp_path: Path, agent: Callable[..., Agent], receiver: Receiver, answer: Answer, fact: str
    ) -> None:
        receiver.answers = [answer]
        started = agent("--lake", tmp_path / "lake", "--otlp", receiver.url)
        run_jobs(tmp_path)
        wait_for(lambda: "refused data that is not sent again" in started.said())
        assert fact in started.said()
        refused = json.loads((started.spool / "otlp" / "otlp.json").read_text())["refused"]
        assert refused == 7 if answer[0] == 200 else refused > 0
        started.answer("otlp-3", "--over")
        asked = receiver.asked
        wait_for(lambda: receiver.asked > asked)
        assert started.end() == 0
        assert not list((started.spool / "otlp").glob("batch-*")), "what comes later is taken"

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            ((200, {"content-type": "text/html"}, {}), "content_type"),
            ((200, {}, {"login": "required"}), "form"),
            ((302, {"location": "/login"}, {}), "redirect"),
        ],
    )
    def test_what_no_receiver_answers_removes_nothing(
        self, tmp_path: Path, agent: Callable[..., Agent], receiver: Receiver, answer: Answer, reason: str
    ) -> None:
        receiver.answers = [answer] * 1000
        started = agent("--lake", tmp_path / "lake", "--otlp", receiver.url)
        run_jobs(tmp_path)
        started.answer("otlp-3", "--over")

        def of_receiver() -> dict[str, Any]:
            return next(one for one in started.status()["destinations"] if one["name"] == "otlp")

        wait_for(lambda: of_receiver()["uncounted_answers"].get(reason, 0) > 0)
        assert of_receiver()["waiting_batches"] > 0
        assert of_receiver()["refused_points"] == 0
        # The receiver itself answers again.
        receiver.taken.clear()
        receiver.answers = []
        assert started.end() == 0
        assert not list((started.spool / "otlp").glob("batch-*"))
        assert of_jobs(receiver.sums("sysdock.files.written"))["otlp-3"] == 30_000

    def test_the_oldest_go_where_nobody_takes_them(self, tmp_path: Path, agent: Callable[..., Agent]) -> None:
        words = ["--lake", tmp_path / "lake", "--otlp=http://127.0.0.1:1", "--spool-limit=0"]
        started = agent(*words)
        wait_for(lambda: json.loads((started.spool / "state.json").read_text()).get("second_dropped", 0) >= 2)
        assert started.process.poll() is None
        assert "batches wait in the spool: the OTLP receiver" in started.said()

    @pytest.mark.parametrize(
        ("words", "fact"),
        [
            (["--otlp=localhost:4318"], "localhost:4318: not a valid destination"),
            (["--otlp-token-file=none"], "--otlp <URL>"),
            (["--otlp=http://127.0.0.1:1", "--otlp-token-file=none"], "none: No such file"),
        ],
    )
    def test_mistakes_have_messages(self, tmp_path: Path, words: list[str], fact: str) -> None:
        command = [NATIVE, "agent", "run", "--no-pin", "--spool", tmp_path / "s", "--lake", tmp_path / "l"]
        done = subprocess.run(
            [*command, *words], capture_output=True, text=True, check=False, timeout=600, env=dict(os.environ)
        )
        assert done.returncode == 2
        assert fact in done.stderr
