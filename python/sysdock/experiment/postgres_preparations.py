"""Preparations about PostgreSQL: servers of their own, reached by name through one file of services."""

from __future__ import annotations

import time
from typing import Literal

from sysdock.experiment.bench import Bench
from sysdock.experiment.preparation import preparation
from sysdock.experiment.state import Postgres
from sysdock.experiment.state.postgres import find_programs, programs
from sysdock.experiment.state.servers import free_port
from sysdock.experiment.tools import run_tool

# Service file of libpq: PGSERVICEFILE names it, `service=NAME` a server in it.
_SERVICES = "services"


def _tools(**_: object) -> tuple[str, ...]:
    """A server's programs lie outside of the usual places: by their path where they are installed."""
    folder = find_programs()
    return (str(folder / "postgres") if folder else "postgres", "psql", "setpriv", "unshare")


@preparation(_tools, starts_server=True)
def make_postgres(
    bench: Bench,
    *,
    scale: int,
    settings: dict[str, str],
    name: str = "db",
    data: str = "data",
    listen: Literal["socket", "tcp"] = "socket",
) -> None:
    """Starts a PostgreSQL on a file system, with tables of pgbench: `{scratch}/services`, `{db_programs}`.

    A server is reached as `service=NAME` where PGSERVICEFILE is that file; one that listens to tcp, for
    programs that know no sockets of Unix, also at `{db_port}` of 127.0.0.1 with the password in
    `{db_passfile}`, which servers of the experiment may read (PGPASSFILE).
    """
    port = free_port() if listen == "tcp" else 0
    server = bench.state.postgres(name, settings=settings, place=bench.place(data), port=port)
    bench.names |= {f"{name}_port": server.port, f"{name}_passfile": server.passfile}
    # A case that was killed may have left a file.
    with open(bench.scratch / _SERVICES, "a" if _SERVICES in bench.names else "w") as file:
        file.write(f"[{name}]\n{server.dsn.replace(' ', chr(10))}\n")
    bench.names |= {_SERVICES: bench.scratch / _SERVICES, name: server.dsn, f"{name}_programs": programs()}
    began = time.monotonic_ns()
    _fill(server, scale)
    bench.fact(name, "initialization_s", (time.monotonic_ns() - began) / 1e9)
    bench.about("server", f"version, {name}", server.psql("SHOW server_version"))
    for setting, value in settings.items():
        bench.about("server", f"{setting}, {name}", value)


def _fill(server: Postgres, scale: int) -> None:
    """Tables of pgbench; what that left to be written is on the disk afterwards."""
    server.run("pgbench", *server.address(), "-i", "-q", "-s", str(scale), "postgres")
    server.psql("CHECKPOINT")
    run_tool("sync", "--file-system", server.data)
