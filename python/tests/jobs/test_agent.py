"""The agent and the collector: real programs whose bytes are known, and what comes of them in the lake."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from agents import NATIVE, Agent, rows, run_job
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from sysdock.recording.lake import Lake
from waiting import wait_for

ROOT = Path(__file__).resolve().parents[3]
SECOND = 1_000_000_000


class Collector:
    """A collector on a port of the system's choice."""

    def __init__(self, folder: Path, *words: str, port: int = 0) -> None:
        tokens = folder / "tokens"
        if not tokens.exists():
            tokens.write_text("token-of-c c\ntoken-of-all\n")
            tokens.chmod(0o600)
            (folder / "token").write_text("token-of-c\n")
            (folder / "token").chmod(0o600)
        self.lake, self.log = folder / "lake", folder / "collector.log"
        self.log.unlink(missing_ok=True)
        options = [f"--listen=127.0.0.1:{port}", f"--lake={self.lake}", f"--token-file={tokens}", *words]
        with open(self.log, "wb") as out:
            limit = [] if any("--land-limit" in word for word in words) else ["--land-limit=1s"]
            command = [NATIVE, "collect", "--land-every=200ms", *limit, *options]
            self.process = subprocess.Popen(command, stderr=out, stdin=subprocess.DEVNULL)
        wait_for(lambda: "listening on" in self.log.read_text() or self.process.poll() is not None)
        self.port = int(self.log.read_text().split("listening on ")[1].split()[0].rsplit(":", 1)[1])

    @property
    def url(self) -> str:
        """The collector's address."""
        return f"http://127.0.0.1:{self.port}"

    def post(self, body: bytes, token: str = "token-of-c", **headers: str) -> tuple[int, str]:
        """Status and text of the answer to a request with batches.

        As an agent does, it is sent again where a busy machine could not land it in time.
        """
        for _ in range(20):
            status, text = self.post_once(body, token, **headers)
            if status != 503:
                break
        return status, text

    def post_once(self, body: bytes, token: str, **headers: str) -> tuple[int, str]:
        """The same, whatever the answer."""
        request = urllib.request.Request(
            f"{self.url}/v1/batches", body, {"authorization": f"Bearer {token}", **headers}
        )
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def end(self) -> int:
        """Ends it, and waits."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(600)


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Callable[..., Collector]]:
    """Starts collectors, and ends those that run."""
    started: list[Collector] = []

    def start(*words: str, port: int = 0) -> Collector:
        started.append(Collector(tmp_path, *words, port=port))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()


def head(length: int) -> bytes:
    """What stands before a body of this length."""
    lines = [
        "POST /v1/batches HTTP/1.1",
        "host: x",
        "authorization: Bearer token-of-c",
        f"content-length: {length}",
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def batch(sequence: int = 1, node: str = "n", **more: object) -> bytes:
    """A batch with one row, as an agent sends it."""
    now = time.time_ns()
    row = {
        "ts_ns": now,
        "interval_ns": 10 * SECOND,
        "cluster": "c",
        "node": node,
        "agent": "0123456789abcdef",
        "sequence": sequence,
        "job_id": "1",
        "counter_group": "files",
        "target": "/",
        "written_bytes": 5,
    }
    first = {
        "format": 1,
        "cluster": "c",
        "node": node,
        "agent": "0123456789abcdef",
        "sequence": sequence,
        "ts_ns": now,
    }
    return json.dumps({**first, "job_samples": [row], **more}).encode() + b"\n"


class TestIntoALake:
    def test_bytes_and_calls_of_a_job_are_exact(self, tmp_path: Path, agent: Callable[..., Agent]) -> None:
        lake = tmp_path / "lake"
        started = agent("--lake", lake)
        script = "dd if=/dev/zero of=a bs=1000 count=70 2>/dev/null; mkdir d; mv a d/b; rm d/b; rmdir d"
        run_job("exact-1", script, tmp_path)
        sql = "SELECT written_bytes, creates, makes, renames, removes, name, is_whole FROM job_totals WHERE job_id = 'exact-1'"
        wait_for(
            lambda: rows(lake, "SELECT 1") and "job_totals" in Lake.open(lake).tables and rows(lake, sql)
        )
        assert rows(lake, sql) == [(70_000, 1, 1, 1, 2, "name of exact-1", True)]
        samples = "SELECT sum(written_bytes), sum(creates) FROM job_samples WHERE job_id = 'exact-1'"
        assert rows(lake, samples) == [(70_000, 1)]
        [(path,)] = rows(
            lake, "SELECT file_path FROM job_files WHERE job_id = 'exact-1' AND written_bytes = 70000"
        )
        assert path == str(tmp_path / "a")
        assert started.end() == 0
        assert started.waiting() == []
        [(missing, lost)] = rows(
            lake, "SELECT max(sequence) - count(DISTINCT sequence), max(lost) FROM agent_batches"
        )
        assert (missing, lost) == (0, 0)

    def test_an_epilogue_gets_the_totals_of_its_job(
        self, tmp_path: Path, agent: Callable[..., Agent]
    ) -> None:
        started = agent("--lake", tmp_path / "lake")
        run_job("print-1", "dd if=/dev/zero of=a bs=1000 count=50 2>/dev/null", tmp_path)
        text = started.answer("print-1").stdout
        assert "sysdock: job print-1 name of print-1 (" in text
        assert "48.8 KiB" in text
        assert str(tmp_path / "a") in text
        total = json.loads(started.answer("print-1", "--over", "--format=json").stdout)["total"]
        assert (total["written_bytes"], total["creates"]) == (50_000, 1)
        # It can be asked again, and is said once in the lake.
        again = json.loads(started.answer("print-1", "--over", "--format=json").stdout)["total"]
        assert again["written_bytes"] == 50_000
        unknown = started.answer("never-run")
        assert unknown.returncode == 2
        assert "job never-run: not known on this node" in unknown.stderr
        started.end()
        sql = "SELECT count(*), sum(written_bytes) FROM job_totals WHERE job_id = 'print-1'"
        assert rows(tmp_path / "lake", sql) == [(1, 50_000)]

    def test_names_are_hidden_where_the_site_wants_it(
        self, tmp_path: Path, agent: Callable[..., Agent]
    ) -> None:
        settings = tmp_path / "agent.toml"
        settings.write_text("cluster = 'k'\nhide = ['users', 'jobs', 'paths']\nsecret = 'of this site'\n")
        lake = tmp_path / "lake"
        started = agent("--lake", lake, "--settings", settings)
        run_job("hidden-1", "echo secret > secret-file", tmp_path)
        started.answer("hidden-1", "--over")
        started.end()
        content = b"".join(path.read_bytes() for path in lake.rglob("*.parquet"))
        found = rows(
            lake, "SELECT DISTINCT cluster, \"user\", name FROM job_totals WHERE job_id = 'hidden-1'"
        )
        assert [(cluster, len(user), len(name)) for cluster, user, name in found] == [("k", 16, 16)]
        paths = rows(lake, "SELECT file_path FROM job_files WHERE file_path <> ''")
        assert {len(path) for (path,) in paths} == {16}
        assert b"secret-file" not in content

    def test_a_variable_of_the_site_names_jobs(self, tmp_path: Path, agent: Callable[..., Agent]) -> None:
        settings = tmp_path / "agent.toml"
        settings.write_text("[[variables]]\nid = 'PJM_JOBID'\nname = 'PJM_JOBNAME'\n")
        started = agent("--lake", tmp_path / "lake", "--settings", settings)
        run_job("", "echo x > y", tmp_path, PJM_JOBID="site-1", PJM_JOBNAME="weather")
        total = json.loads(started.answer("site-1", "--format=json").stdout)["total"]
        assert (total["name"], total["written_bytes"]) == ("weather", 2)

    def test_a_job_that_runs_already_is_found(self, tmp_path: Path, agent: Callable[..., Agent]) -> None:
        environment = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": "early-1"}
        script = "read go; dd if=/dev/zero of=a bs=1000 count=30 2>/dev/null; read go"
        with subprocess.Popen(
            ["sh", "-c", script], env=environment, cwd=tmp_path, stdin=subprocess.PIPE
        ) as job:
            started = agent("--lake", tmp_path / "lake")
            assert job.stdin is not None
            job.stdin.write(b"go\n")
            job.stdin.flush()
            written = (tmp_path / "a").stat
            wait_for(lambda: (tmp_path / "a").exists() and written().st_size == 30_000)
            job.stdin.close()
            job.wait(600)
        total = json.loads(started.answer("early-1", "--format=json").stdout)["total"]
        assert (total["written_bytes"], total["is_whole"]) == (30_000, False)


class TestMistakes:
    def test_each_has_a_message(self, tmp_path: Path, agent: Callable[..., Agent]) -> None:
        bad = tmp_path / "bad.toml"
        bad.write_text("claster = 'x'\n")
        cases = {
            (): "no destination for the rows",
            ("--push", "http://127.0.0.1:1"): "--push needs --token-file",
            ("--lake", tmp_path / "l", "--settings", bad): "unknown field `claster`",
            ("--lake", tmp_path / "l", "--settings", tmp_path / "none.toml"): "none.toml: No such file",
        }
        for words, fact in cases.items():
            command = [NATIVE, "agent", "run", "--no-pin", "--spool", tmp_path / "s", *words]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
            assert done.returncode == 2
            assert fact in done.stderr

    def test_one_agent_for_a_spool(self, tmp_path: Path, agent: Callable[..., Agent]) -> None:
        agent("--lake", tmp_path / "lake")
        command = [
            NATIVE,
            "agent",
            "run",
            "--no-pin",
            "--spool",
            tmp_path / "spool",
            "--lake",
            tmp_path / "lake",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 2
        assert "another agent runs with this spool" in done.stderr

    def test_nobody_answers_without_an_agent(self, tmp_path: Path) -> None:
        command = [NATIVE, "agent", "print", "--job=1", "--spool", tmp_path]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 2
        assert "no agent runs with this spool" in done.stderr

    def test_tokens_need_a_private_file_and_https(self, tmp_path: Path) -> None:
        tokens = tmp_path / "tokens"
        tokens.write_text("x\n")
        for mode, listen, fact in (
            (0o644, "127.0.0.1:0", "others may read"),
            (0o600, "0.0.0.0:0", "unencrypted"),
        ):
            tokens.chmod(mode)
            command = [
                NATIVE,
                "collect",
                f"--lake={tmp_path}/l",
                f"--token-file={tokens}",
                f"--listen={listen}",
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
            assert done.returncode == 2
            assert fact in done.stderr


class TestCollector:
    def test_what_was_sent_before_lands_once(self, collector: Callable[..., Collector]) -> None:
        first = collector()
        assert first.post(batch(1) + batch(2), **{"x-sysdock-sent-before": "0"})[0] == 200
        for _ in range(3):
            # The header says that they may have landed; without it that is assumed.
            assert first.post(batch(1) + batch(3))[0] == 200
        wait_for(lambda: rows(first.lake, "SELECT count(*) FROM job_samples") == [(3,)])
        # Each of the requests left a file, and one after another becomes old enough.
        wait_for(lambda: not list((first.lake / "_pending").glob("*.json")))
        assert first.end() == 0
        assert rows(first.lake, "SELECT count(*), sum(written_bytes) FROM job_samples") == [(3, 15)]

    @pytest.mark.parametrize(
        ("body", "token", "refusal"),
        [
            (batch(), "forged", None),
            (batch(), "", None),
            (b"\x00\xff\n", "token-of-c", {"code": "malformed"}),
            (b'{"format": 1}\n', "token-of-c", {"code": "malformed"}),
            (batch(node="x" * 4096), "token-of-c", {"code": "name", "of": "node"}),
            (batch(node="../../up"), "token-of-c", {"code": "name", "of": "node"}),
            (batch(format=99), "token-of-c", {"code": "newer", "format": 99, "latest": 1}),
            (batch(ts_ns=time.time_ns() + 3 * 86400 * SECOND), "token-of-c", {"code": "time"}),
            (batch(ts_ns=0), "token-of-c", {"code": "time", "ns": 0}),
            (batch(cluster="another"), "token-of-c", {"code": "cluster", "name": "another"}),
            (batch(job_samples=[{"ts_ns": "late"}]), "token-of-c", {"code": "malformed"}),
        ],
    )
    def test_what_cannot_be_is_refused(
        self, collector: Callable[..., Collector], body: bytes, token: str, refusal: dict[str, Any] | None
    ) -> None:
        one = collector()
        # Correct parts of the same batch are stored.
        more = batch(7) if refusal else b""
        status, text = one.post(body + more, token, **{"x-sysdock-sent-before": "0"})
        assert status == (200 if refusal else 401)
        if refusal:
            [(line, why)] = json.loads(text)["refused"]
            assert (line, {**json.loads(why), **refusal}) == (0, json.loads(why))
        assert one.end() == 0
        expected = [(1,)] if refusal else []
        if expected:
            assert rows(one.lake, "SELECT count(*) FROM job_samples") == expected
        assert len(list(one.lake.rglob("*.parquet"))) == len(expected)

    def test_bodies_that_lie_are_refused(self, collector: Callable[..., Collector]) -> None:
        one = collector()
        assert one.post(b"not packed", **{"content-encoding": "zstd"})[0] == 400
        with socket.create_connection(("127.0.0.1", one.port), timeout=600) as half:
            half.sendall(head(1000) + batch()[:100])
            half.shutdown(socket.SHUT_WR)
            with contextlib.suppress(OSError):
                half.recv(1000)
        with socket.create_connection(("127.0.0.1", one.port), timeout=600) as endless:
            endless.sendall(head(99_999_999_999))
            assert b"413" in endless.recv(1000).split(b"\r\n")[0]
        with socket.create_connection(("127.0.0.1", one.port), timeout=600) as unstated:
            without = head(0).replace(b"content-length: 0", b"transfer-encoding: chunked")
            unstated.sendall(without + b"5\r\nhello\r\n")
            assert b"411" in unstated.recv(1000).split(b"\r\n")[0]
        assert one.post(batch())[0] == 200, "others are served"
        assert one.end() == 0

    def test_metrics_name_nobody(self, collector: Callable[..., Collector]) -> None:
        one = collector()
        one.post(batch(node="node-of-somebody"), **{"x-sysdock-sent-before": "0"})
        with urllib.request.urlopen(f"{one.url}/metrics", timeout=600) as answer:
            text = answer.read().decode()
        # The parser refuses what is not OpenMetrics.
        found = {family.name: family.samples[0].value for family in text_string_to_metric_families(text)}
        assert found["sysdock_collector_batches"] == 1
        assert "node-of-somebody" not in text

    def test_an_answer_is_signed_for_its_request(self, collector: Callable[..., Collector]) -> None:
        one = collector()
        lines = batch(1) + batch(2, node="../up") + batch(3)
        connection = http.client.HTTPConnection("127.0.0.1", one.port, timeout=600)
        headers = {"authorization": "Bearer token-of-c", "x-sysdock-nonce": "of-this-request"}
        connection.request("POST", "/v1/batches", lines, {**headers, "x-sysdock-sent-before": "0"})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        signed = b"sysdock answer 1\n/v1/batches\nof-this-request\n200\n" + body
        assert answer.headers["x-sysdock-signature"] == hmac.digest(b"token-of-c", signed, "sha256").hex()
        assert answer.headers["content-type"] == "application/vnd.sysdock.answer+json"
        said = json.loads(body)
        assert (said["version"], said["batches"]) == (1, 3)
        assert said["content"] == hashlib.sha256(lines).hexdigest()
        id_ = {"cluster": "c", "agent": "0123456789abcdef"}
        assert said["landed"] == [{**id_, "sequence": 1}, {**id_, "sequence": 3}]
        assert [(one["line"], json.loads(one["why"])["code"]) for one in said["refused"]] == [(1, "name")]

    def test_a_name_without_a_folder_stops_nobody(self, collector: Callable[..., Collector]) -> None:
        one = collector()
        for length in (248, 255):
            for was_sent in "01":
                long = batch(length, cluster="x" * length)
                good = batch(10 * length + int(was_sent))
                status, text = one.post(long + good, "token-of-all", **{"x-sysdock-sent-before": was_sent})
                assert status == 200
                assert [line for line, _ in json.loads(text)["refused"]] == [0]
        longest = batch(2, cluster="x" * 247)
        assert one.post(longest, "token-of-all", **{"x-sysdock-sent-before": "0"})[0] == 200
        odd = batch(3, cluster="a:b [50%]")
        assert one.post(odd, "token-of-all", **{"x-sysdock-sent-before": "0"})[0] == 200
        wait_for(lambda: not list(one.lake.glob("_pending/*.json")))
        assert one.end() == 0
        found = rows(one.lake, "SELECT cluster, count(*) FROM job_samples GROUP BY 1 ORDER BY 1")
        assert found == [("a:b [50%]", 1), ("c", 4), ("x" * 247, 1)]

    def test_clusters_keep_apart_what_is_pending(self, collector: Callable[..., Collector]) -> None:
        one = collector()
        for cluster in ("c", "d", "c"):
            assert one.post(batch(1, cluster=cluster), "token-of-all")[0] == 200
        wait_for(lambda: not list(one.lake.glob("_pending/*.json")))
        assert one.end() == 0
        found = rows(one.lake, "SELECT cluster, count(*) FROM job_samples GROUP BY 1 ORDER BY 1")
        assert found == [("c", 1), ("d", 1)]

    def test_thousands_of_batches_are_one_file(self, collector: Callable[..., Collector]) -> None:
        one = collector("--land-limit=600s")
        lines = b"".join(batch(sequence) for sequence in range(1, 3001))
        assert one.post(lines)[0] == 200
        assert len(list(one.lake.glob("_pending/*.json"))) == 1
        many = b"{}\n" * 10_000
        assert one.post(many)[0] == 413
        assert one.end() == 0

    def test_a_collector_that_is_away_is_waited_for(
        self, tmp_path: Path, agent: Callable[..., Agent], collector: Callable[..., Collector]
    ) -> None:
        one = collector()
        started = agent("--push", one.url, "--token-file", tmp_path / "token", "--cluster", "c")
        wait_for(lambda: rows(one.lake, "SELECT 1"))
        one.end()
        run_job("away-1", "dd if=/dev/zero of=a bs=1000 count=20 2>/dev/null", tmp_path)
        wait_for(lambda: len(started.waiting()) >= 3 and "batches wait in the spool" in started.said())
        again = collector(port=one.port)
        wait_for(lambda: not started.waiting())
        started.end()
        # What may have been sent before waits until no other collector can be writing it.
        wait_for(lambda: not list(one.lake.glob("_pending/*.json")))
        again.end()
        sql = "SELECT sum(written_bytes) FROM job_samples WHERE job_id = 'away-1'"
        assert rows(one.lake, sql) == [(20_000,)]
        [(missing,)] = rows(one.lake, "SELECT max(sequence) - count(DISTINCT sequence) FROM agent_batches")
        assert missing == 0


def certificate(folder: Path, name: str, host: str = "localhost", days: int = 2) -> tuple[Path, Path]:
    """A certificate that is its own authority, and its key."""
    chain, key, request = folder / f"{name}.pem", folder / f"{name}.key", folder / f"{name}.csr"
    words: list[str | Path] = ["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    words += ["-nodes", "-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}"]
    words += ["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", key, "-out", request]
    subprocess.run(["openssl", *words], check=True, capture_output=True)
    signing: list[str | Path] = ["x509", "-req", "-in", request, "-signkey", key, "-copy_extensions", "copy"]
    signing += ["-days", str(days), "-out", chain]
    subprocess.run(["openssl", *signing], check=True, capture_output=True)
    return chain, key


class TestHttps:
    def test_a_certificate_of_the_site(
        self, tmp_path: Path, agent: Callable[..., Agent], collector: Callable[..., Collector]
    ) -> None:
        chain, key = certificate(tmp_path, "own")
        one = collector(f"--certificate={chain}", f"--key={key}")
        url = f"https://localhost:{one.port}"
        started = agent("--push", url, "--ca", chain, "--token-file", tmp_path / "token", "--cluster", "c")
        wait_for(lambda: list(one.lake.rglob("part-*.parquet")) or "wait in the spool" in started.said())
        assert list(one.lake.rglob("part-*.parquet")), started.said()

    @pytest.mark.parametrize(
        ("host", "days", "is_known"),
        [("localhost", 2, False), ("other.example", 2, True), ("localhost", -1, True)],
        ids=["unknown authority", "another name", "expired"],
    )
    def test_a_server_that_is_not_the_collector_gets_nothing(
        self,
        tmp_path: Path,
        agent: Callable[..., Agent],
        collector: Callable[..., Collector],
        host: str,
        days: int,
        is_known: bool,
    ) -> None:
        chain, key = certificate(tmp_path, "server", host, days)
        known, _ = (chain, key) if is_known else certificate(tmp_path, "known")
        one = collector(f"--certificate={chain}", f"--key={key}")
        url = f"https://localhost:{one.port}"
        started = agent("--push", url, "--ca", known, "--token-file", tmp_path / "token", "--cluster", "c")
        wait_for(lambda: started.status()["destinations"][0]["failed_attempts"] > 0)
        assert started.waiting()
        assert not [name for name in started.waiting() if ".sent." in name]
        assert not one.lake.exists() or not list(one.lake.rglob("*.parquet"))
        assert started.status()["destinations"][0]["failing"][1]["why"]["code"] == "agent/stated"


class Portal(BaseHTTPRequestHandler):
    """The page of a network to which one has to log in first."""

    def do_GET(self) -> None:
        text = b"<html>Log in</html>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


class TestWrongServers:
    def test_a_portal_takes_nothing_and_is_said(
        self, tmp_path: Path, agent: Callable[..., Agent], collector: Callable[..., Collector]
    ) -> None:
        """Other servers that are none are in crates/agent/src/pushing/tests.rs."""
        one = collector()
        portal = ThreadingHTTPServer(("127.0.0.1", 0), Portal)
        thread = threading.Thread(target=portal.serve_forever)
        thread.start()
        words: list[str | Path] = ["--token-file", tmp_path / "token", "--cluster", "c"]
        try:
            url = f"http://127.0.0.1:{portal.server_port}"
            started = agent("--push", url, *words, "--metrics=127.0.0.1:0")
            run_job("portal-1", "dd if=/dev/zero of=a bs=1000 count=20 2>/dev/null", tmp_path)
            started.answer("portal-1", "--over")
            wait_for(lambda: started.status()["destinations"][0]["uncounted_answers"].get("content_type"))
            status = started.status()["destinations"][0]
            assert status["failing"][1]["why"] == {"code": "agent/content_type", "kind": "text/html"}
            [address] = re.findall(r"metrics at (\S+)", started.said())
            line = 'sysdock_agent_uncounted_answers_total{node="'
            wait_for(lambda: line in urllib.request.urlopen(address, timeout=600).read().decode())
            started.end()
        finally:
            portal.shutdown()
            portal.server_close()
            thread.join()
        assert started.waiting()
        assert not [name for name in started.waiting() if ".sent." in name]
        again = agent("--push", one.url, *words)
        wait_for(lambda: rows(one.lake, "SELECT 1"))
        assert again.end() == 0
        assert again.waiting() == []
        one.end()
        sql = "SELECT sum(written_bytes) FROM job_samples WHERE job_id = 'portal-1'"
        assert rows(one.lake, sql) == [(20_000,)]
        [(missing,)] = rows(one.lake, "SELECT max(sequence) - count(DISTINCT sequence) FROM agent_batches")
        assert missing == 0


class TestKills:
    def test_nothing_is_lost_or_doubled(self) -> None:
        """A short form of the tool, which is run with 200 kills."""
        words = [sys.executable, ROOT / "tools/break.d/kill-agents", "8", "--seed", "3"]
        environment = {**os.environ, "SYSDOCK_NATIVE": str(NATIVE)}
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, timeout=900, env=environment
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "8 kills" in done.stdout
        assert done.stdout.endswith(": 0 differences\n")
