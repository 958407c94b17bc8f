"""What an agent serves at /metrics: read by the parser of Prometheus' own client library, compared with the lake, and attacked."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agents import NATIVE, Agent, rows, run_job
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from waiting import wait_for

KIND = "application/openmetrics-text; version=1.0.0; charset=utf-8"
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def port_of(agent: Agent) -> int:
    """Where it serves metrics."""
    found = re.search(r"metrics at http://127\.0\.0\.1:(\d+)/metrics", agent.said())
    assert found is not None, agent.said()
    return int(found[1])


def ask(
    port: int, method: str = "GET", path: str = "/metrics", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def scrape(port: int) -> Series:
    """All series; the parser refuses what is not OpenMetrics."""
    status, headers, body = ask(port)
    assert status == 200
    assert headers["content-type"] == KIND
    series: Series = {}
    for family in text_string_to_metric_families(body.decode()):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in series, f"{key} is there twice"
            series[key] = sample.value
    return series


def total(series: Series, name: str, **labels: str) -> float:
    """The sum of all series of a name that have these labels."""
    wanted = set(labels.items())
    return sum(value for (of, has), value in series.items() if of == name and wanted <= has)


@contextlib.contextmanager
def mounted(*points: Path) -> Iterator[None]:
    """Small file systems in memory."""
    with contextlib.ExitStack() as stack:
        for point in points:
            point.mkdir(parents=True)
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", point], check=True)
            stack.callback(subprocess.run, ["umount", point], check=True)
        yield


@pytest.mark.root
class TestWhatIsServed:
    def test_sums_are_those_of_the_lake_and_name_no_job(
        self, tmp_path: Path, agent: Callable[..., Agent]
    ) -> None:
        lake = tmp_path / "lake"
        started = agent("--lake", lake, "--metrics=127.0.0.1:0", "--cluster=k", "--node=n1")
        point = tmp_path / 'a "quoted" \\ one\nof two lines'
        with mounted(point):
            for job in ("metrics-1", "metrics-2"):
                script = f"dd if=/dev/zero of={job} bs=1000 count=70 2>/dev/null; rm {job}"
                run_job(job, f"setpriv --reuid=nobody sh -c '{script}'", point, PRIVATE="secret-word")
            started.answer("metrics-2", "--over")
            port = port_of(started)
            name = "sysdock_files_written_bytes_total"
            wait_for(lambda: total(scrape(port), name, mount_point=str(point)) == 140_000)
            wait_for(lambda: total(scrape(port), "sysdock_agent_last_sent_seconds", destination="lake"))
            series = scrape(port)
            text = ask(port)[2].decode()
            started.end()
        labels = {"node": "n1", "mount_point": str(point), "file_system": "tmpfs"}
        assert total(series, "sysdock_files_calls_total", **labels, **{"class": "remove"}) == 2
        assert total(series, "sysdock_files_calls_total", **labels, **{"class": "write"}) == 140
        sql = "SELECT target, sum(written_bytes), sum(opens), sum(io_time_ns) FROM job_samples WHERE target LIKE '%quoted%' GROUP BY 1"
        [(target, written, opens, time_ns)] = rows(lake, sql)
        assert (target, written) == (str(point), 140_000)
        assert total(series, "sysdock_files_calls_total", **labels, **{"class": "open"}) == opens
        seconds = total(series, "sysdock_files_call_time_seconds_total", **labels)
        assert round(seconds * 1e9) == time_ns
        assert total(series, "sysdock_tasks_cpu_seconds_total") > 0
        assert total(series, "sysdock_agent_last_sent_seconds", destination="lake") > time.time() - 3600
        assert total(series, "sysdock_agent_info", cluster="k") == 1
        hidden = ["metrics-1", "metrics-2", "name of", "secret-word", "dd", "nobody"]
        assert [word for word in hidden if re.search(rf"\b{re.escape(word)}\b", text)] == []

    def test_a_hard_limit_that_says_what_it_cut(self, tmp_path: Path, agent: Callable[..., Agent]) -> None:
        started = agent("--lake", tmp_path / "lake", "--metrics=127.0.0.1:0", "--metrics-series=200")
        points = [tmp_path / f"mount-{number}" for number in range(12)]
        with mounted(*points):
            for point in points:
                run_job("cut-1", "dd if=/dev/zero of=x bs=1000 count=5 2>/dev/null", point)
            started.answer("cut-1")
            wait_for(lambda: "series have no room" in started.said())
            series = scrape(port_of(started))
            started.end()
        assert len(series) <= 200
        assert total(series, "sysdock_agent_series_limit") == 200
        of_points = [
            total(series, "sysdock_files_written_bytes_total", mount_point=str(point)) for point in points
        ]
        assert set(of_points) <= {0, 5000}
        others = total(series, "sysdock_files_written_bytes_total", mount_point="(other)")
        assert others >= 5000 * of_points.count(0) > 0
        assert "--metrics-series sets the limit" in started.said()

    def test_names_without_an_end_share_a_series(self, tmp_path: Path, agent: Callable[..., Agent]) -> None:
        started = agent("--lake", tmp_path / "lake", "--metrics=127.0.0.1:0")
        points = [tmp_path / "job.4242", tmp_path / "job.4243", tmp_path / ("x" * 200)]
        with mounted(*points):
            for point in points:
                run_job("4242", "dd if=/dev/zero of=x bs=1000 count=5 2>/dev/null", point)
            started.answer("4242")
            series = scrape(port_of(started))
            started.end()
        shared = total(series, "sysdock_files_written_bytes_total", mount_point=str(tmp_path / "*"))
        assert shared == 10_000
        assert max(len(value) for _, labels in series for _, value in labels) <= 128


@pytest.mark.root
class TestAttacks:
    def test_strangers_learn_nothing_and_harm_nobody(
        self, tmp_path: Path, agent: Callable[..., Agent]
    ) -> None:
        started = agent("--lake", tmp_path / "lake", "--metrics=127.0.0.1:0")
        port = port_of(started)
        wait_for(lambda: total(scrape(port), "sysdock_agent_info") == 1)
        for path in ("/", "/metrics/", "/../etc/passwd", "/v1/batches", "/metrics?job=1" + "x" * 2000):
            status, _, body = ask(port, path=path)
            assert (status, b"passwd" in body) == (200 if path.startswith("/metrics?") else 404, False)
        for method in ("POST", "PUT", "DELETE", "TRACE", "OPTIONS", "PATCH"):
            status, headers, _ = ask(port, method)
            assert (status, headers.get("allow")) == (405, "GET, HEAD")
        assert ask(port, "HEAD")[::2] == (200, b"")
        for request in hostile_requests():
            # Refused or ended, and never answered with 200.
            assert not sent(port, request).startswith(b"HTTP/1.1 200")
        assert total(scrape(port), "sysdock_agent_info") == 1, "others are served"
        assert started.process.poll() is None

    def test_connections_that_stay_open_are_ended(self, tmp_path: Path, agent: Callable[..., Agent]) -> None:
        started = agent("--lake", tmp_path / "lake", "--metrics=127.0.0.1:0")
        port = port_of(started)
        with contextlib.ExitStack() as stack:
            silent = [
                stack.enter_context(socket.create_connection(("127.0.0.1", port), 30)) for _ in range(64)
            ]
            for each in silent[-16:]:
                with contextlib.suppress(OSError):
                    each.sendall(b"GET /metrics HTTP/1.1\r\nhost: x\r\n")
            # The oldest give way, and a client that asks is answered meanwhile.
            wait_for(lambda: total(scrape(port), "sysdock_agent_info") == 1)
            # The others are closed when they have taken too long.
            ended = [end_of(each) for each in silent]
            assert ended.count(b"") >= 48
            run_job("meanwhile-1", "echo x > y", tmp_path)
            assert "meanwhile-1" in started.answer("meanwhile-1").stdout, "counting goes on"
        wait_for(lambda: total(scrape(port), "sysdock_agent_refused_connections_total") >= 40)

    def test_a_client_that_does_not_read_is_left(self, tmp_path: Path, agent: Callable[..., Agent]) -> None:
        started = agent("--lake", tmp_path / "lake", "--metrics=127.0.0.1:0")
        port = port_of(started)
        with contextlib.ExitStack() as stack:
            for _ in range(8):
                slow = stack.enter_context(socket.create_connection(("127.0.0.1", port), 30))
                slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
                slow.sendall(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
            # The page is empty until the first sample.
            wait_for(lambda: total(scrape(port), "sysdock_agent_info") == 1)
            assert started.end() == 0, "it does not wait for them"

    def test_a_token_where_it_is_wanted(self, tmp_path: Path, agent: Callable[..., Agent]) -> None:
        tokens = tmp_path / "tokens"
        tokens.write_text("of-prometheus\n")
        tokens.chmod(0o600)
        words = ["--lake", tmp_path / "lake", "--metrics=127.0.0.1:0", f"--metrics-token-file={tokens}"]
        port = port_of(agent(*words))
        assert ask(port)[0] == 401
        assert ask(port, authorization="Bearer forged")[0] == 401
        wait_for(lambda: b"# EOF" in ask(port, authorization="Bearer of-prometheus")[2])

    @pytest.mark.parametrize(
        ("words", "fact"),
        [
            (["--metrics=0.0.0.0:0"], "anyone on the network could read"),
            (["--metrics=here"], "invalid socket address"),
            (["--metrics=127.0.0.1:0", "--metrics-series=10"], "10 is not in 200..=100000"),
            (["--metrics=127.0.0.1:0", "--metrics-token-file=none"], "none: No such file"),
            (["--metrics-token-file=none"], "--metrics <ADDRESS>"),
        ],
    )
    def test_mistakes_have_messages(self, tmp_path: Path, words: list[str], fact: str) -> None:
        command = [NATIVE, "agent", "run", "--no-pin", "--spool", tmp_path / "s", "--lake", tmp_path / "l"]
        done = subprocess.run([*command, *words], capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 2
        assert fact in done.stderr

    def test_an_address_that_is_taken_is_said(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = f"127.0.0.1:{server.getsockname()[1]}"
            command = [
                NATIVE,
                "agent",
                "run",
                "--no-pin",
                "--spool",
                tmp_path / "s",
                "--lake",
                tmp_path / "l",
            ]
            done = subprocess.run(
                [*command, f"--metrics={address}"], capture_output=True, text=True, check=False, timeout=600
            )
        assert done.returncode == 2
        assert f"{address}: Address already in use" in done.stderr


def end_of(connection: socket.socket) -> bytes:
    """What comes before the other side closes it; nothing where it does so at once."""
    try:
        return connection.recv(1000)
    except ConnectionResetError:
        return b""


def hostile_requests() -> list[bytes]:
    """Requests that no client sends."""
    long = b"x" * 100_000
    return [
        b"GET /metrics HTTP/1.1\r\n" + b"".join(b"h%d: v\r\n" % number for number in range(500)) + b"\r\n",
        b"GET /metrics HTTP/1.1\r\nhost: " + long + b"\r\n\r\n",
        b"GET /" + long + b" HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00" * 5000,
        b"GET /metrics HTTP/9.9\r\n\r\n",
        b"FETCH  /metrics\r\n\r\n",
        b"POST /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n" + long,
        b"POST /metrics HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n" + long,
    ]


def sent(port: int, request: bytes) -> bytes:
    """What comes back for these bytes, until the connection is closed."""
    answer = b""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=600) as connection,
        contextlib.suppress(OSError),
    ):
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        while more := connection.recv(65536):
            answer += more
    return answer
