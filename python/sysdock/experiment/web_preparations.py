"""Preparations about web servers: servers of their own with static pages, and how much one of them can do."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from sysdock.errors import UserError
from sysdock.experiment.bench import Bench
from sysdock.experiment.preparation import preparation
from sysdock.experiment.state import folders
from sysdock.experiment.state.servers import free_port
from sysdock.experiment.tools import find_tool, run_tool, write_file
from sysdock.own_folder import set_owner
from sysdock.recording.native import command_line

_KIB = 1024
# Names of files are relative to the server's folder: nobody has to know how a configuration quotes a path.
# Workers are processes, one for each CPU. Nothing is written for a request.
_NGINX = """
daemon off;
pid pid;
error_log stderr;
worker_processes {cpus};
worker_rlimit_nofile 16384;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    sendfile on;
    keepalive_requests 1000000;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {{ listen 127.0.0.1:{port} backlog=4096; root pages; }}
}}
"""
# Debian's installation, without its modules and its log of requests. The log that sysdock opens as root is
# nothing that the server's user could open again.
_APACHE = """
ServerName 127.0.0.1
PidFile pid
DefaultRuntimeDir .
ErrorLog errors
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
Listen 127.0.0.1:{port}
ListenBacklog 4096
MaxKeepAliveRequests 0
DocumentRoot pages
"""


@preparation(lambda server, **_: (server, "taskset"), starts_server=True)
def make_web_server(
    bench: Bench,
    *,
    server: Literal["nginx", "apache2"],
    cpus: Literal["one", "all"],
    pages_kib: list[str],
    name: str = "web",
) -> None:
    """Starts a web server on the first CPU or all, with a page of each size: `{scratch}/web.urls`."""
    used = _cpus()[:1] if cpus == "one" else _cpus()
    folder, port = bench.scratch / name, free_port()
    user = bench.state.own_user()
    folders.make(bench.state.journal, folder)
    _write_pages(folder / "pages", pages_kib)
    file = folder / "configuration"
    write_file(file, (_NGINX if server == "nginx" else _APACHE).format(cpus=len(used), port=port))
    program = find_tool(server) or server
    options = ["-p", f"{folder}/", "-e", "stderr", "-c", str(file)]
    if server == "apache2":
        options = ["-d", str(folder), "-D", "FOREGROUND", "-f", str(file)]
    command = ["taskset", "--cpu-list", ",".join(map(str, used)), program, *options]
    if user is not None:
        set_owner(folder, user, user)
    bench.state.server(name, command, ready=f"tcp:127.0.0.1:{port}", user=user)
    urls = [f"http://127.0.0.1:{port}/{size}" for size in pages_kib]
    (bench.scratch / f"{name}.urls").write_text(" ".join(urls))
    bench.names |= {name: urls[0], f"{name}_port": port}
    bench.about("server", f"version, {server}", _version(program))
    bench.about("server", f"CPUs, {name}", ",".join(map(str, used)))


@preparation()
def measure_capacity(bench: Bench, *, name: str = "web", connections: int = 64, seconds: int = 3) -> None:
    """Asks a web server for its pages as fast as it answers: requests in a second are `{web_capacity}`."""
    bench.place(name)
    urls = (bench.scratch / f"{name}.urls").read_text().split()
    options = {"closed": True, "connections": connections, "for": f"{seconds}s", "keep_alive": True}
    client = ["taskset", "--cpu-list", str(_cpus()[-1]), *command_line("http-load", options, *urls)]
    found = json.loads(run_tool(*client))
    if found["achieved_per_s"] < 1:
        raise UserError("the server does not answer", f"see {bench.scratch / name}.log", name)
    bench.fact(name, "capacity_per_s", found["achieved_per_s"])
    bench.names[f"{name}_capacity"] = int(found["achieved_per_s"])


def _cpus() -> list[int]:
    """The CPUs that we may use."""
    return sorted(os.sched_getaffinity(0))


def _write_pages(folder: Path, sizes_kib: Sequence[str]) -> None:
    folder.mkdir(exist_ok=True)
    for size in sizes_kib:
        if not size.isdecimal() or size == "0":
            raise UserError(f"`{size}` is not a page size", "write pages_kib in KiB: ['1', '64']")
        (folder / size).write_bytes(os.urandom(int(size) * _KIB))


def _version(program: str) -> str:
    """The first line with the version; nginx prints it as an error."""
    return run_tool("sh", "-c", '"$0" -v 2>&1', program).strip().splitlines()[0]
