"""Argument values, and how strace prints each: strings, descriptors with tags, vectors, structures, colours."""

from __future__ import annotations

import re
from dataclasses import dataclass

PLAIN = {9: r"\t", 10: r"\n", 11: r"\v", 12: r"\f", 13: r"\r", 34: r"\"", 92: r"\\"}
SYSCALL, VALUE, CONST, COMMENT, RETURN, ERROR, NAME, RESET = (
    f"\033[{code}m" for code in (33, 35, 34, 36, 32, 31, 39, 0)
)
ESCAPE = re.compile(r"\033\[[0-9;]*m")


@dataclass(frozen=True)
class Word:
    """Printed as it is: numbers, structures that the tests need no part of."""

    text: str


@dataclass(frozen=True)
class Flags:
    """Symbolic constants joined by `|`."""

    text: str


@dataclass(frozen=True)
class Pointer:
    """An address: buffers of failed calls."""

    address: int


@dataclass(frozen=True)
class PathName:
    """A path: printed in full, whatever -s says."""

    name: bytes


@dataclass(frozen=True)
class Data:
    """A buffer, of which -s limits what is printed."""

    data: bytes


@dataclass(frozen=True)
class Fd:
    """A descriptor and what it meant when it was printed."""

    number: int
    name: bytes | None = None
    detail: str = ""
    deleted: bool = False


@dataclass(frozen=True)
class Here:
    """AT_FDCWD and the working directory."""

    cwd: bytes


@dataclass(frozen=True)
class Pair:
    """The two descriptors of a pipe."""

    first: Fd
    second: Fd


@dataclass(frozen=True)
class Vector:
    """An iovec: buffers and their lengths, which may be longer than the data read."""

    parts: tuple[tuple[bytes, int], ...]


@dataclass(frozen=True)
class Stat:
    """struct stat: two members, all with -v."""

    mode: str
    size: int


@dataclass(frozen=True)
class Entries:
    """What getdents64 returned: a comment, the list with -v."""

    names: tuple[bytes, ...]


@dataclass(frozen=True)
class Strings:
    """argv."""

    items: tuple[bytes, ...]


@dataclass(frozen=True)
class Environment:
    """envp: an address and a comment, the list with -v."""

    items: tuple[bytes, ...]


@dataclass(frozen=True)
class Pid:
    """A process id; -Y adds the name of its program."""

    number: int
    comm: str = ""


@dataclass(frozen=True)
class Changed:
    """A value before and after the call: `before => after`."""

    before: str
    after: str


@dataclass(frozen=True)
class Style:
    """What decides how values look."""

    tags: int = 0
    hex: int = 0
    length: int = 32
    verbose: bool = False
    comm: bool = False
    color: bool = False
    old: bool = False

    def punct(self, text: str) -> str:
        """Punctuation, after which the colour of values begins (print_fields.h of strace 7)."""
        return f"{RESET}{text}{VALUE}" if self.color else text

    def const(self, text: str) -> str:
        """A constant."""
        return f"{CONST}{text}{VALUE}" if self.color else text

    def comment(self, text: str) -> str:
        """A C comment."""
        return f"{COMMENT} /* {text}{COMMENT} */{VALUE}" if self.color else f" /* {text} */"


def octal(byte: int, following: int | None) -> str:
    """The shortest octal escape, or three digits where a digit follows."""
    return f"\\{byte:03o}" if following is not None and 48 <= following <= 57 else f"\\{byte:o}"


def escaped(data: bytes, style: Style, also: bytes = b"") -> str:
    """The inside of a string or tag. -x turns a whole string to hex if it holds one byte that is neither printable nor white space."""
    odd = any(not (32 <= byte < 127 or 9 <= byte <= 13) for byte in data)
    if style.hex == 2 or (style.hex == 1 and odd):
        return "".join(f"\\x{byte:02x}" for byte in data)
    out = []
    for index, byte in enumerate(data):
        following = data[index + 1] if index + 1 < len(data) else None
        if byte in also or not (32 <= byte < 127 or byte in PLAIN):
            out.append(octal(byte, following))
        else:
            out.append(PLAIN.get(byte, chr(byte)))
    return "".join(out)


def string(data: bytes, style: Style, limit: int | None = None) -> str:
    """A quoted string, cut by -s, with `...` behind the quote where it was cut."""
    if limit is None or len(data) <= limit:
        return f'"{escaped(data, style)}"'
    return f'"{escaped(data[:limit], style)}"' + (style.punct("...") if style.color else "...")


def tag(fd: Fd | Here, style: Style) -> str:
    """`<path>` of -y, with the device or the peers of -yy. `<` and `>` inside are octal."""
    name = fd.cwd if isinstance(fd, Here) else fd.name
    if not style.tags or name is None:
        return ""
    detail = "" if isinstance(fd, Here) or style.tags < 2 else fd.detail
    deleted = isinstance(fd, Fd) and fd.deleted
    if style.old and deleted:  # before 5.19 the kernel's mark stood inside
        name, deleted = name + b" (deleted)", False
    text = escaped(name, style, b"<>")
    if detail and not detail.startswith("char"):
        text, detail = detail, ""
    inner = text + (f"<{detail}>" if detail else "")
    return f"{style.punct('<')}{inner}{style.punct('>')}" + ("(deleted)" if deleted else "")


def program(comm: str, style: Style) -> str:
    """`<name>` of -Y, escaped as a tag."""
    return f"<{escaped(comm.encode(), style, b'<>')}>" if style.comm else ""


def joined(items: list[str], style: Style, brackets: str = "[]") -> str:
    """A list in brackets."""
    return style.punct(brackets[0]) + style.punct(", ").join(items) + style.punct(brackets[1])


def member(name: str, value: str, style: Style) -> str:
    """`name=value` of a structure."""
    return (f"{NAME}{name}{RESET}={VALUE}" if style.color else f"{name}=") + value


def printed(value: object, style: Style) -> str:
    """Any value, as it stands in the finished line."""
    match value:
        case Word(text):
            return text
        case Flags(text):
            return style.punct("|").join(style.const(word) for word in text.split("|"))
        case Pointer(address):
            return f"{address:#x}"
        case PathName(name):
            return string(name, style)
        case Data(data):
            return string(data, style, style.length)
        case Fd(number):
            return f"{number}{tag(value, style)}"
        case Here():
            return style.const("AT_FDCWD") + tag(value, style)
        case Pair(first, second):
            return joined([printed(first, style), printed(second, style)], style)
        case Pid(number, comm):
            return f"{number}{program(comm, style)}" if comm else str(number)
        case Changed(before, after):
            return f"{before} => {after}"
        case _:
            return structure(value, style)


def structure(value: object, style: Style) -> str:
    """Values with members."""
    match value:
        case Vector(parts):
            items = [
                joined(
                    [
                        member("iov_base", string(data, style, style.length), style),
                        member("iov_len", str(length), style),
                    ],
                    style,
                    "{}",
                )
                for data, length in parts
            ]
            return joined(items, style)
        case Stat(mode, size):
            members = [member("st_mode", mode, style), member("st_size", str(size), style)]
            if style.verbose:
                members.insert(0, member("st_dev", "makedev(0xfe, 0)", style))
                members.append(
                    member("st_mtime", "1700000000" + style.comment("2023-11-14T22:13:20+0000"), style)
                )
            else:
                members.append("...")
            return joined(members, style, "{}")
        case Entries(names):
            if not style.verbose:
                return "0x55d0c0de2010" + style.comment(f"{len(names)} entries")
            return joined(["{d_ino=1, d_name=" + string(name, style) + "}" for name in names], style)
        case Strings(items):
            return joined([string(item, style, style.length) for item in items], style)
        case Environment(items):
            if style.verbose:
                return joined([string(item, style, style.length) for item in items], style)
            return "0x7ffe00001000" + style.comment(f"{len(items)} vars")
    raise TypeError(value)
