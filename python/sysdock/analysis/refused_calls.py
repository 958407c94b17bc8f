"""Refuses system calls to this process, for good, by seccomp: what Landlock does not know of.

Landlock says which files may be opened. It says nothing of modes, owners, extended attributes (with the
capabilities of programs in them) and times, which root may change by path alone, and nothing of the machine
itself. Calls fail with EPERM. A call of another architecture (32-bit programs) is refused, whichever it is.

Sources: seccomp(2), linux/filter.h, linux/seccomp.h, linux/audit.h; numbers: syscall_64.tbl of x86 and the
generic unistd.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from dataclasses import dataclass

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
# Loads of a word of `struct seccomp_data`, comparisons with a number, and the end.
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _SECOND_ARGUMENT = 0, 4, 24
# FS_IOC_SETFLAGS, FS_IOC32_SETFLAGS and FS_IOC_FSSETXATTR.
_SET_FLAGS = (0x40086602, 0x40046602, 0x401C5820)
# The same number everywhere, since Linux 5.2: open_tree, move_mount, fsopen, mount_setattr, io_uring_setup,
# pidfd_getfd, fchmodat2, setxattrat, removexattrat, file_setattr.
_EVERYWHERE = (428, 429, 430, 442, 425, 438, 452, 463, 466, 469)


@dataclass(frozen=True)
class _Architecture:
    """audit: its name in linux/audit.h; most: numbers from here on are of another interface (x32)."""

    audit: int
    ioctl: int
    refused: tuple[int, ...]
    most: int | None = None


_ARCHITECTURES = {
    "x86_64": _Architecture(
        0xC000003E,
        16,
        (
            # chmod, fchmod, fchmodat, chown, fchown, lchown, fchownat
            90, 91, 268, 92, 93, 94, 260,
            # setxattr, lsetxattr, fsetxattr, removexattr, lremovexattr, fremovexattr
            188, 189, 190, 197, 198, 199,
            # utime, utimes, futimesat, utimensat
            132, 235, 261, 280,
            # ptrace, process_vm_readv, process_vm_writev, userfaultfd, perf_event_open, open_by_handle_at
            101, 310, 311, 323, 298, 304,
            # add_key, request_key, keyctl, bpf, init_module, finit_module, delete_module
            248, 249, 250, 321, 175, 313, 176,
            # kexec_load, kexec_file_load, reboot, swapon, swapoff, acct, quotactl
            246, 320, 169, 167, 168, 163, 179,
            # settimeofday, clock_settime, sethostname, setdomainname, setns, chroot, pivot_root, (u)mount
            164, 227, 170, 171, 308, 161, 155, 165, 166,
        ),
        0x40000000,
    ),
    "aarch64": _Architecture(
        0xC00000B7,
        29,
        (
            # fchmod, fchmodat, fchownat, fchown
            52, 53, 54, 55,
            # setxattr, lsetxattr, fsetxattr, removexattr, lremovexattr, fremovexattr, utimensat
            5, 6, 7, 14, 15, 16, 88,
            # ptrace, process_vm_readv, process_vm_writev, userfaultfd, perf_event_open, open_by_handle_at
            117, 270, 271, 282, 241, 265,
            # add_key, request_key, keyctl, bpf, init_module, finit_module, delete_module
            217, 218, 219, 280, 105, 273, 106,
            # kexec_load, kexec_file_load, reboot, swapon, swapoff, acct, quotactl
            104, 294, 142, 224, 225, 89, 60,
            # settimeofday, clock_settime, sethostname, setdomainname, setns, chroot, pivot_root, (u)mount
            170, 112, 161, 162, 268, 51, 41, 40, 39,
        ),
    ),
}  # fmt: skip


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def refuse_calls(libc: ctypes.CDLL) -> str | None:
    """Installs the filter for this thread and those that it starts; why not, or None. Needs no_new_privs."""
    known = _ARCHITECTURES.get(platform.machine())
    if known is None:
        return f"system calls are not refused on {platform.machine()}"
    code = _filter(known)
    program = _Program(len(code) // 8, code)
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        return f"system calls are not refused: {os.strerror(ctypes.get_errno())}"
    return None


def _filter(known: _Architecture) -> bytes:
    """Instructions of classic BPF, 8 bytes each."""
    refuse = _instruction(_RETURN, value=_REFUSE)
    code = [_instruction(_LOAD, value=_ARCHITECTURE), _instruction(_EQUAL, yes=1, value=known.audit), refuse]
    code.append(_instruction(_LOAD, value=_NUMBER))
    if known.most is not None:
        code += [_instruction(_AT_LEAST, no=1, value=known.most), refuse]
    for number in (*known.refused, *_EVERYWHERE):
        code += [_instruction(_EQUAL, no=1, value=number), refuse]
    flags = [each for flag in _SET_FLAGS for each in (_instruction(_EQUAL, no=1, value=flag), refuse)]
    code += [_instruction(_EQUAL, no=len(flags) + 1, value=known.ioctl)]
    code += [_instruction(_LOAD, value=_SECOND_ARGUMENT), *flags]
    return b"".join([*code, _instruction(_RETURN, value=_ALLOW)])


def _instruction(code: int, yes: int = 0, no: int = 0, value: int = 0) -> bytes:
    """Jumps go over so many instructions, where a comparison holds and where it does not."""
    return struct.pack("=HBBI", code, yes, no, value)
