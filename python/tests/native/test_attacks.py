"""Small logs that are made to take as much as they can: `tools/break attack-logs` has them, here with a bound on memory."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import signal
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from sampling import some
from sysdock.recording.native import find_native
from waiting import cpu_s, wait_for

TOOL = Path(__file__).resolve().parents[3] / "tools" / "break.d" / "attack-logs"

# Steps of each attack: ten times less memory than the worst of them took before it was bounded.
STEPS = 6_000
# Twice what an import takes of any log, and what a name as long as the kernel lets it be takes for each step.
MOST_KB = 400_000


def load_tool() -> ModuleType:
    """The tool as a module."""
    loader = importlib.machinery.SourceFileLoader("attack", str(TOOL))
    spec = importlib.util.spec_from_loader("attack", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


attack = load_tool()


@pytest.mark.parametrize("name", some(sorted(attack.ATTACKS), 3))
def test_a_small_log_takes_little_memory(name: str, tmp_path: Path) -> None:
    """Whatever a log of some hundred kilobytes says, its import takes what that of any log takes."""
    log = tmp_path / "log"
    attack.write(name, STEPS, log)
    code, _, memory_kb, said = attack.run(find_native(), [log], tmp_path / "rec")
    assert code == 0, said
    assert memory_kb < MOST_KB


# Lines that are empty take the longest by the byte: of them there are fewer bytes, and as much less memory is allowed.
@pytest.mark.parametrize(
    ("unit", "megabytes"),
    [
        pytest.param(b"\0", 300, id="zeros"),
        pytest.param(b"\n", 80, id="newlines", marks=pytest.mark.more),
        pytest.param(b"x" * 1000 + b"\n", 300, id="lines"),
    ],
)
def test_a_compressed_log_takes_little_memory_whatever_is_in_it(
    unit: bytes, megabytes: int, tmp_path: Path
) -> None:
    """A line without end is dropped and counted; memory does not grow with what was compressed."""
    log = tmp_path / "log.gz"
    attack.write_bomb(log, megabytes, unit)
    code, _, memory_kb, said = attack.run(find_native(), [log], tmp_path / "rec")
    assert code == 0, said
    assert memory_kb < MOST_KB + 1000 * megabytes


def test_lines_without_end_in_many_logs_share_the_memory(tmp_path: Path) -> None:
    """Each of many compressed logs begins with a line of many megabytes."""
    logs = [tmp_path / f"log{number}" for number in range(40)]
    attack.write_bomb(logs[0], 60, b"\0")
    for log in logs[1:]:
        log.write_bytes(logs[0].read_bytes())
    code, _, memory_kb, said = attack.run(find_native(), logs, tmp_path / "rec")
    assert code == 0, said
    assert memory_kb < 1_500_000


def test_an_import_of_a_line_without_end_can_be_cancelled(tmp_path: Path) -> None:
    """The interrupt is seen between blocks, not at the next line."""
    log = tmp_path / "log.gz"
    attack.write_bomb(log, 20_000, b"\0")
    command = [str(find_native()), "import", str(log), "-o", str(tmp_path / "rec")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: cpu_s(process.pid) > 0.1, "the first blocks")
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
