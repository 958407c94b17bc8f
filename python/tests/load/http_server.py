"""A web server that does what a test asks for, and counts what it did."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

# Closing a socket with this option resets the connection.
RESET = struct.pack("ii", 1, 0)


@dataclass
class Served:
    """What the server did. It answers /SIZE with so many bytes, and knows the words of `answer`."""

    url: str = ""
    requests: list[tuple[str, float]] = field(default_factory=list)
    # The same, with methods.
    lines: list[str] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    most_open: int = 0
    # Requests that a connection answers before it is closed, without a word.
    most_requests: int = 1 << 30
    # From when on, and until when, it stood still.
    stalled: tuple[float, float] | None = None
    loop: asyncio.AbstractEventLoop | None = None
    over: asyncio.Event | None = None

    def stall(self, seconds: float) -> None:
        """Stand still, at once."""
        assert self.loop

        def sleep() -> None:
            began = time.monotonic()
            time.sleep(seconds)
            self.stalled = (began, time.monotonic())

        self.loop.call_soon_threadsafe(sleep)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection."""
        self.connections += 1
        self.open += 1
        self.most_open = max(self.open, self.most_open)
        try:
            for _ in range(self.most_requests):
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                path = head.split(" ", 2)[1]
                self.requests.append((path, time.monotonic()))
                self.lines.append(head.split(" HTTP/")[0])
                if not await self.answer(path.strip("/"), writer) or "Connection: close" in head:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def answer(self, what: str, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection is to be used again."""
        status, body = "200 OK", b"x" * int(what) if what.isdigit() else b""
        if what == "never":
            await asyncio.sleep(600)
        if what == "reset":
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.transport.abort()
            return False
        if what == "garbage":
            writer.write(b"220 mail.example ESMTP\r\n")
        elif what == "short":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nten bytes.")
        elif what == "chunked":
            writer.write(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
            )
        else:
            status = "503 Service Unavailable" if what == "busy" else status
            number = len(self.requests)
            if what == "differs":
                body = str(10**9 + number).encode()
            elif what == "order":
                status = f"201 Created\r\nNumber: {number}\r\nCents: none"
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        return what not in ("garbage", "short")


@contextmanager
def web_server() -> Iterator[Served]:
    """A server on a port of its own, in a thread of its own."""
    served = Served()
    ready = threading.Event()

    async def serve() -> None:
        server = await asyncio.start_server(served.connected, "127.0.0.1", 0, backlog=4096)
        served.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        served.loop, served.over = asyncio.get_running_loop(), asyncio.Event()
        ready.set()
        await served.over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(600)
    try:
        yield served
    finally:
        assert served.loop
        assert served.over
        served.loop.call_soon_threadsafe(served.over.set)
        thread.join(600)
