"""Replaces names by keyed hashes, the same name by the same hash, and translates a text back.

Each component of a path is replaced by itself, so that folders can still be distinguished. The hash is the
first 64 bits of HMAC-SHA256; without the key no list of likely names can be tried.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from pathlib import Path

from sysdock.checkup.statement import Name
from sysdock.checkup.text_file import read_text
from sysdock.errors import UserError

_KEY_BYTES = 32
_DIGITS = 16
_TOKEN = re.compile(r"\bn[0-9a-f]{16}\b")
# Names that the kernel gives objects without a name: they reveal nothing about the user.
_NAMELESS = re.compile(r"(?:pipe|socket|anonymous|anon_inode|eventfd|eventpoll|unknown)(?::\[\d+\])?")
LEFT_OUT = "(left out)"


class Hasher:
    """Hashes names with a key."""

    def __init__(self, key: bytes | None = None) -> None:
        self.key = key or secrets.token_bytes(_KEY_BYTES)
        self._known: dict[str, str] = {}

    def word(self, text: str) -> str:
        """The hash of one word."""
        if not text:
            return text
        if text not in self._known:
            digest = hmac.new(self.key, text.encode("utf-8", "surrogateescape"), hashlib.sha256)
            self._known[text] = f"n{digest.hexdigest()[:_DIGITS]}"
        return self._known[text]

    def path(self, text: str) -> str:
        """A path with every component hashed."""
        return "/".join(self.word(part) for part in text.split("/"))

    def object(self, text: str, kind: str | None) -> str:
        """The name of something a call worked on; what has no name of the user's keeps the kernel's."""
        if kind in ("pipe", "socket", "anonymous") and _NAMELESS.fullmatch(text):
            return text
        return self.path(text)

    def command(self, text: str) -> str:
        """A command line with every argument hashed; blanks within arguments part them too."""
        return " ".join(self.path(word) for word in text.split())

    def name(self, name: Name) -> str:
        """A name in a statement."""
        return {"path": self.path, "command": self.command}.get(name.kind, self.word)(name.text)


def read_key(path: Path) -> bytes:
    """A key that was written next to a bundle."""
    text = read_text(path, "the key of a bundle").strip()
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise UserError("not the key of a bundle", "it is the .key file next to the bundle", str(path))
    return bytes.fromhex(text)


def translate(text: str, key: bytes, names: Iterable[str]) -> tuple[str, int]:
    """The text with hashes replaced by their names, and the number of unknown hashes."""
    hasher = Hasher(key)
    known = {}
    for name in names:
        # Paths are parted at slashes, command lines at blanks too.
        for word in (name, *name.split("/"), *re.split(r"[/\s]", name)):
            known[hasher.word(word)] = word
    unknown = 0

    def replace(found: re.Match[str]) -> str:
        nonlocal unknown
        if found[0] not in known:
            unknown += 1
        return known.get(found[0], found[0])

    return _TOKEN.sub(replace, text), unknown
