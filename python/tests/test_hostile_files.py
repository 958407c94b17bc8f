"""Readers of small files meet what no tool would write: a part of `tools/break attack readers`, and what it once found."""

from __future__ import annotations

import re
import shutil
import struct
from pathlib import Path

import pytest
from hostile_files import ROOT, attack, content, read, readers
from sampling import sampled
from sysdock.checkup import accounting, histogram
from sysdock.errors import UserError
from sysdock.library.experiments import parse_experiment

_FILES = sampled(300, 1500)


def test_files_that_nobody_would_write(tmp_path: Path) -> None:
    wrong = [f"{number}: {said}" for number in range(_FILES) if (said := attack(number, tmp_path))]
    assert not wrong


def test_the_same_number_gives_the_same_file() -> None:
    for number in range(200):
        assert content(number) == content(number)


_ACCT = struct.Struct("<" + accounting._V3)


def _process(real: float) -> bytes:
    return _ACCT.pack(3, 7, 1, 1_700_000_000, real, 0, 0, b"sh".ljust(16, b"\0"))


_HEADER = "-- Title\n-- needs: calls\n-- column: x BIGINT   Text"
_PAGE = "# Title\n\n```strace\nx\n```\n"
_FOUND = {
    "a bound that is not a number": (
        "analysis",
        f"{_HEADER}.\n-- param: p BIGINT = 5 > -.   Text.\nSELECT 1",
    ),
    "a long row of blanks": ("analysis", f"{_HEADER}{' ' * 200_000}x\nSELECT 1"),
    "a row with more cells than names": ("page", f"{_PAGE}\n```rows calls\na,b\n1,2,3\n```\n"),
    "a cell of CSV that is too long": ("page", f"{_PAGE}\n```rows calls\na\n{'x' * 200_000}\n```\n"),
    "parameters that are nested deeply": ("page", f"{_PAGE}\n```params\na = {'[' * 5000}\n```\n"),
    "a parameter of thousands of digits": ("page", f"{_PAGE}\n```params\na = {'9' * 5000}\n```\n"),
    "a description that is a number": ("chart", '{"description": 0.5}'),
    "a site nested deeply": ("site", f"a = {'[' * 5000}"),
    "a site with thousands of digits": ("site", f"[ratio]\nthreshold = {'9' * 5000}"),
    "a threshold that no float holds": ("site", f"[ratio]\nthreshold = 0x{'f' * 400}"),
    "records of thousands of digits": ("site", f"[ratio]\nthreshold = 0.1\nrecords = 0x{'f' * 5000}"),
    "a rate that no float holds": (
        "site",
        f'[ratio]\nthreshold = 0.1\n[rates."/w"]\nread_bytes_s = 1{"0" * 400}',
    ),
    "a counter of thousands of digits": ("proc-io", f"rchar: {'9' * 5000}"),
    "calls of thousands of digits": ("nfsstat", f"net 0 0\nrpc {'9' * 5000} 0 0"),
    "a counter of 64 bits": ("llite", f"read {1 << 63} samples [reqs]"),
    "digits before a percentage": ("nfsstat", f"Client rpc stats:\ncalls\n{'9' * 300_000}%\n"),
    "an interval that is a number": ("sysstat", '{"sysstat": {"hosts": [{"statistics": [1]}]}}'),
    "a time stamp that is a number": (
        "sysstat",
        '{"sysstat": {"hosts": [{"statistics": [{"timestamp": 1}]}]}}',
    ),
    "a job on thousands of digits of cores": ("jobs", f"job,user,real,cores\na,1,2,{'9' * 5000}\n"),
    "a line of a table that never ends": ("jobs", f"job,user,real\na,1,2{'x' * 100_000}\n"),
}


@pytest.mark.parametrize("said", _FOUND)
def test_what_was_found(said: str, tmp_path: Path) -> None:
    word, text = _FOUND[said]
    [reader] = [reader for reader in readers() if reader.word == word]
    assert read(reader, text.encode(), tmp_path) is None


@pytest.mark.parametrize("pattern", ["(" * 5000 + ")" * 5000, "a{99999999999999999999}", "(", "a"])
def test_a_pattern_that_cannot_be_used(pattern: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "knowhow/experiments/app", tmp_path, dirs_exist_ok=True)
    file = tmp_path / "orders.toml"
    text, number = re.subn(r"""(?m)^pattern = '.*p50_ns.*'$""", f"pattern = '{pattern}'", file.read_text())
    assert number == 1
    file.write_text(text)
    with pytest.raises(UserError, match="`pattern`"):
        parse_experiment(file, "x/x")


def test_a_disk_that_no_disk_is(tmp_path: Path) -> None:
    [reader] = [reader for reader in readers() if reader.word == "sysstat"]
    disk = '{"disk-device": %s, "rkB": %s, "wkB": 1, "await": %s, "util-percent": 1}'
    for values in (('"a"', "1", "1e308"), ('"a"', "9" * 400, "1"), ("[]", "1", "1"), ('"\\ud800"', "1", "1")):
        text = '{"sysstat": {"hosts": [{"statistics": [{"disk": [%s]}]}]}}' % (disk % values)
        assert read(reader, text.encode(), tmp_path) is None, values


@pytest.mark.parametrize("real", [float("nan"), float("inf"), -1.0, 1e30])
def test_a_process_that_took_no_time_at_all(real: float, tmp_path: Path) -> None:
    [reader] = [reader for reader in readers() if reader.word == "acct, first"]
    assert read(reader, _process(real), tmp_path) is None


def test_two_jobs_of_which_one_is_as_good_as_none() -> None:
    for lighter in (1e-3, 1e-12):
        found = histogram.Histogram()
        found.add(0.001, lighter)
        found.add(0.9, 1e12)
        split = found.split()
        assert split is None or split.valley >= 0
