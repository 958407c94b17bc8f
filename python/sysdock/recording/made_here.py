"""Which recordings were made here: an attribute of recording.json, as `crates/table/src/folder.rs` writes it.

What recording.json says proves nothing: a stranger may know the name of this machine. Nor does the owner, who
is this user once a bundle is unpacked. The attribute has the inode of the file, when that was created, and a
hash of its content: what was unpacked, copied or changed is another file, or has another content. Some file
systems have no such attributes, or no times of creation: what is made there is read as a stranger's.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from contextlib import suppress
from pathlib import Path

NAME = "recording.json"
_ATTRIBUTE = "user.sysdock.identity"
# AT_EMPTY_PATH; STATX_INO and STATX_BTIME.
_EMPTY_PATH, _INODE_AND_BIRTH = 0x1000, 0x100 | 0x800


class _Statx(ctypes.Structure):
    """`struct statx` (linux/stat.h): 256 bytes."""

    _fields_ = (
        ("mask", ctypes.c_uint32),
        ("_before_inode", ctypes.c_byte * 28),
        ("inode", ctypes.c_uint64),
        ("_before_birth", ctypes.c_byte * 40),
        ("birth_s", ctypes.c_int64),
        ("birth_ns", ctypes.c_uint32),
        ("_rest", ctypes.c_byte * 164),
    )


def note(handle: int, content: bytes) -> None:
    """Notes in an open file which one it is, with this content."""
    if (identity := _identity(handle, content)) is not None:
        with suppress(OSError):
            os.setxattr(handle, _ATTRIBUTE, identity)


def is_noted(folder: Path) -> bool:
    """Whether recording.json in `folder` is the file that was noted, with its content; ours or root's."""
    try:
        with open(os.open(folder / NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            if os.fstat(file.fileno()).st_uid not in (os.geteuid(), 0):
                return False
            noted = os.getxattr(file.fileno(), _ATTRIBUTE)
            return noted == _identity(file.fileno(), file.read())
    except OSError:
        return False


def _identity(handle: int, content: bytes) -> bytes | None:
    """None where the file system does not know the time of creation, or the C library has no statx(2)."""
    found = _Statx()
    try:
        failed = ctypes.CDLL(None).statx(handle, b"", _EMPTY_PATH, _INODE_AND_BIRTH, ctypes.byref(found))
    except AttributeError:
        return None
    if failed or found.mask & _INODE_AND_BIRTH != _INODE_AND_BIRTH:
        return None
    digest = hashlib.sha256(content).hexdigest()
    return f"{found.inode} {found.birth_s}.{found.birth_ns:09} {digest}".encode()
