"""The two ends of sockets, against what the program that used them says of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from recorders import recorder_or_skip

Query = Callable[[Path, str], list[tuple]]
# A client and a server over IPv4 and IPv6, a pair of local sockets, and a socket that is connected to nobody. It says what it did.
PROGRAM = """
import json, os, socket, sys, time
said = []
inode = lambda end: os.fstat(end.fileno()).st_ino
address = lambda name: f"[{name[0]}]:{name[1]}" if ":" in name[0] else f"{name[0]}:{name[1]}"
def say(end, protocol, sent, received, peer):
    try:
        remote = address(end.getpeername())
    except OSError:
        remote = None
    said.append([inode(end), protocol, address(end.getsockname()), remote, sent, received, peer])
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    listener = socket.create_server((host, 0), family=family)
    client = socket.socket(family)
    client.connect(listener.getsockname())
    server, _ = listener.accept()
    client.sendall(bytes(5000))
    got = 0
    while got < 5000:
        got += len(server.recv(5000))
    server.sendall(bytes(70))
    client.recv(100)
    say(client, "tcp", 5000, 70, inode(server))
    say(server, "tcp", 70, 5000, inode(client))
    client.close()
    server.close()
one, other = socket.socketpair()
named = socket.socket(socket.AF_UNIX)
named.bind(sys.argv[1] + "/a socket")
named.listen()
alone = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
alone.bind(("127.0.0.1", 0))
said.append([inode(one), "unix", None, None, None, None, inode(other)])
said.append([inode(named), "unix", sys.argv[1] + "/a socket", None, None, None, None])
said.append([inode(alone), "udp", address(alone.getsockname()), None, None, None, None])
one.send(b"x")
other.recv(1)
alone.sendto(b"x", alone.getsockname())
time.sleep(2.2)
open(sys.argv[1] + "/said", "w").write(json.dumps(said))
"""


@pytest.fixture
def run(native: Path, tmp_path: Path) -> tuple[Path, list[list]]:
    kernel = recorder_or_skip(native, "kernel")
    program = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    kernel.record(tmp_path / "rec", *program, recorder_options=("--what", "io,sockets"))
    return tmp_path / "rec", json.loads((tmp_path / "said").read_text())


def test_each_end_has_its_addresses_and_its_peer(run: tuple[Path, list[list]], query: Query) -> None:
    recording, said = run
    sql = (
        "SELECT a.path, s.protocol, s.local, s.remote, s.sent_bytes, s.received_bytes, b.path "
        "FROM sockets AS s JOIN paths AS a USING (path_id) LEFT JOIN paths AS b ON b.path_id = s.peer_path_id"
    )
    found = {path: rest for path, *rest in query(recording, sql)}
    for inode, protocol, local, remote, sent, received, peer in said:
        row = found[f"socket:[{inode}]"]
        assert row[:3] == [protocol, local, remote]
        assert row[5] == (None if peer is None else f"socket:[{peer}]")
        if protocol == "tcp":
            assert row[3] == sent
            # The end of a connection, if it came, counts as one.
            assert row[4] - received in (0, 1)
        else:
            assert row[3:5] == [None, None]
