"""Writes recordings with DuckDB from the table definitions, so that tests need no native importer."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

import duckdb
from sysdock.library import Library
from sysdock.recording import FORMAT_VERSION
from sysdock.recording.writing import write_manifest

STARTED_NS = 1_700_000_000_000_000_000
CLASSES = {"openat": "open", "read": "read", "write": "write", "close": "close", "newfstatat": "stat"}


# Tables of families that need not be recorded.
ON_DEMAND = (
    "run_states",
    "critical_path",
    "samples",
    "lock_waits",
    "block_requests",
    "interrupts",
    "system_metrics",
    "allocations",
    "memory_stalls",
    "probe_events",
    "probe_requests",
    "marks",
    "syscall_times",
)


def own(folder: Path) -> Path:
    """The recording, noted as one that a recorder of this user made here."""
    write_manifest(folder, json.loads((folder / "recording.json").read_text()), is_own=True)
    return folder


class RecordingMaker:
    """Writes recordings into `folder`."""

    def __init__(self, library: Library, folder: Path) -> None:
        self.library = library
        self.folder = folder

    def make(self, calls: list[dict[str, Any]] | None = None, name: str = "rec", **manifest: Any) -> Path:
        """A recording of `calls`: dicts with `call`, any of t (s), path, to_path, kind, comm, and table columns.

        `pid`, `tid` and `result`, which no table of events stores, are turned into what it stores. Rows of
        `processes`, `signals`, `mappings`, `file_faults`, `page_io`, `stacks` and `import_issues` may be given
        too, further ones of `environment`, and those of tables that it does not have without (`ON_DEMAND`).
        """
        calls = sample_calls() if calls is None else calls
        paths: dict[str, tuple[int, str]] = {}
        comms: dict[str, int] = {}
        lives = _Lives(manifest.pop("processes", []))
        rows = [self._call(entry, paths, comms, lives) for entry in calls]
        rows.sort(key=lambda row: row["ts_ns"])
        signals = [self._event(entry, paths, lives) for entry in manifest.pop("signals", [])]
        mappings = [self._event(entry, paths, lives) for entry in manifest.pop("mappings", [])]
        faults = [self._event(entry, paths, lives) for entry in manifest.pop("file_faults", [])]
        requests = [self._event(entry, paths, lives) for entry in manifest.pop("page_io", [])]
        path_rows = [{"path_id": id_, "path": path, "kind": kind} for path, (id_, kind) in paths.items()]
        comm_rows = [{"comm_id": id_, "comm": comm} for comm, id_ in comms.items()]
        tables: dict[str, list[dict[str, Any]]] = {
            "calls": rows,
            "paths": path_rows,
            "commands": comm_rows,
            "processes": lives.rows,
            "mappings": mappings,
            "file_faults": faults,
            "page_io": requests,
            "stacks": manifest.pop("stacks", []),
            "import_issues": manifest.pop("import_issues", []),
            "environment": [
                {"section": "host", "name": "hostname", "value": "box", "source": "recorder"},
                *manifest.pop("environment", []),
            ],
            "signals": signals,
        }
        for table in ON_DEMAND:
            if table in manifest:
                tables[table] = [self._event(entry, paths, lives) for entry in manifest.pop(table)]
        for table in {"locks", "sockets", "ranks"} & manifest.keys():
            tables[table] = manifest.pop(table)
        return self.write(tables, name, **manifest)

    def make_scan(self, name: str = "scan") -> Path:
        """A recording of a small file system, as a scan of a disk makes it."""
        system = {
            "fs_type": "ext4",
            "source": "/dev/sdb1",
            "block_bytes": 4096,
            "size_bytes": 1 << 20,
            "free_bytes": 1 << 19,
        }
        system |= {
            "method": "raw",
            "reason": "an image",
            "files": 2,
            "unread_files": 0,
            "whole": True,
            "moment": "one",
        }
        file = {
            "kind": "file",
            "extents": 2,
            "fragments": 2,
            "links": 1,
            "size_bytes": 8192,
            "allocated_bytes": 8192,
        }
        tables = {
            "file_systems": [system],
            "devices": [{"device": 0, "path": "/dev/sdb1", "size_bytes": 1 << 20, "missing": False}],
            "inodes": [{"inode": 12, "path_id": 0, **file}],
            "extents": [
                {
                    "inode": 12,
                    "logical_bytes": 4096 * at,
                    "physical_bytes": 65536 * at,
                    "length_bytes": 4096,
                    "flags": "",
                    "device": 0,
                }
                for at in (1, 2)
            ],
            "free_extents": [{"physical_bytes": 1 << 19, "length_bytes": 1 << 19, "device": 0}],
            "layout": [{"part": "super block", "physical_bytes": 0, "length_bytes": 4096, "device": 0}],
            "paths": [{"path_id": 0, "path": "/file", "kind": "file"}],
            "file_usage": [
                {
                    "inode": 12,
                    "calls": 2,
                    "faults": 1,
                    "read_bytes": 8192,
                    "written_bytes": 0,
                    "time_ns": 90_000,
                }
            ],
            "environment": [
                {"section": "device", "name": "one more request", "value": "50000 ns", "source": "recorder"},
                {
                    "section": "device",
                    "name": "reads in order",
                    "value": "500000000 B/s",
                    "source": "recorder",
                },
            ],
        }
        return self.write(tables, name, recorder="disk", about="scan")

    def make_experiment(self, name: str = "experiment") -> Path:
        """A recording of an experiment of one case: ten blocks of two scenarios, which differ."""
        case = {
            "experiment": "disk/fragments",
            "workload": "read",
            "file_system": "ext4",
            "piece_bytes": "65536",
        }
        foretold = {"fragments": 2000.0, "predicted_requests": 2020.0, "most_requests": 2020.0}
        runs, metrics = [], []
        for number in range(20):
            scenario = ("whole", "broken")[number % 2]
            place = {"block": number // 2 + 1, "attempt": 1, "position": number % 2 + 1, "scenario": scenario}
            times = {"ts_ns": 1_700_000_000_000_000_000 + number * 10**9, "dur_ns": 10**8 * (1 + number % 2)}
            state = {"kind": "measured", "exit_code": 0, "rejected": False, "reason": None}
            runs.append({"run_id": number + 1, "case_id": 1, **place, **times, **state})
            values = {"elapsed_s": times["dur_ns"] / 1e9, "device_reads": 100.0 + 1900 * (number % 2)}
            metrics += [
                {"run_id": number + 1, "metric": key, "value": value, "reason": None}
                for key, value in values.items()
            ]
        verdict = {"case_id": 1, "workload": "read", "scenario": "broken", "metric": "elapsed_s"}
        verdict |= {
            "is_primary": True,
            "verdict": "changed",
            "ratio": 2.0,
            "ratio_low": 2.0,
            "ratio_high": 2.0,
        }
        verdict |= {
            "difference": 0.1,
            "p": 0.002,
            "p_adjusted": 0.002,
            "blocks": 10,
            "smallest_visible": 0.01,
        }
        verdict |= {"baseline_median": 0.1, "scenario_median": 0.2, "reason": None}
        check = {"case_id": 1, "name": "order", "effect": 0.0, "p": 1.0, "is_valid": True, "note": None}
        cause = {"case_id": 1, "scenario": "broken", "rank": 1, "kind": "requests", "name": "read, loop0"}
        cause |= {"difference_per_unit": 1900.0, "unit": "requests", "share": None}
        cause |= {"p": 0.002, "p_adjusted": 0.004, "blocks": 10}
        item = {"run_id": 1, "kind": "requests", "name": "read, loop0", "value": 100.0, "unit": "requests"}
        tables = {
            "experiment_cases": [{"case_id": 1, "parameter": key, "value": case[key]} for key in case],
            "experiment_runs": runs,
            "experiment_metrics": metrics,
            "experiment_facts": [
                {"case_id": 1, "subject": "broken", "name": key, "value": value}
                for key, value in foretold.items()
            ],
            "experiment_verdicts": [verdict],
            "experiment_checks": [check],
            "experiment_causes": [cause],
            "experiment_stacks": [{"run_id": 1, "stack": "cat;main", "time_ns": 9e6}],
            "experiment_methods": [
                {"run_id": 1, "method": "main", "calls": 1, "time_ns": 90, "samples": 1, "samples_within": 2}
            ],
            "experiment_profiles": [
                item,
                {**item, "kind": "total", "name": "elapsed", "value": 9e7, "unit": "ns"},
            ],
        }
        return self.write(tables, name, recorder="experiment", about="experiment")

    def make_each_kind(self) -> list[Path]:
        """One recording of each kind: calls, waits, a disk, an experiment, probes, a load, jobs, ranks and a crash dump."""
        return [
            self.make(),
            self.make_waits(),
            self.make_scan(),
            self.make_experiment(),
            self.make_probes(),
            self.make_load(),
            self.make_jobs(),
            self.make_ranks(),
            self.make_dump(),
            self.make_itrace(),
        ]

    def make_ranks(self, name: str = "ranks") -> Path:
        """Two ranks of a parallel job that write one file, as a merge has them."""
        lives, calls, ranks = [], [], []
        for rank in (0, 1):
            life = {
                "pid": 100 + rank,
                "tid": 100 + rank,
                "depth": 0,
                "tree_order": rank,
                "execs": 0,
                "calls": 1,
            }
            lives.append({**life, "start_ts_ns": STARTED_NS, "log": f"rank.{rank}", "rank": rank})
            write = {"call": "write", "path": "/scratch/out", "comm": "solver", "transferred_bytes": 4096}
            calls.append(
                {**write, "t": 0.01 * rank, "dur_ns": 20_000_000, "pid": 100 + rank, "tid": 100 + rank}
            )
            row = {
                "rank": rank,
                "name": f"rank.{rank}",
                "rank_from": "order",
                "host": "box",
                "recorder": "strace",
            }
            row |= {"identity": f"{rank:064}", "start_ts_ns": STARTED_NS, "elapsed_ns": 30_000_000}
            row |= {
                "offset_ns": 0,
                "offset_from": "same host" if rank else "first",
                "complete": True,
                "lost": 0,
            }
            ranks.append({**row, "first_cpu": 0, "inode_offset": 0, "device_offset": 0})
        return self.make(calls, name, processes=lives, ranks=ranks)

    def make_jobs(self, name: str = "jobs") -> Path:
        """Two jobs on two nodes for a minute, as a lake has them."""
        counts = (
            "reads writes opens creates closes stats readdirs removes renames makes attributes syncs errors"
        )
        counters = dict.fromkeys(counts.split(), 3)
        counters |= {"read_bytes": 4096, "written_bytes": 8192, "io_time_ns": 10**9, "io_wait_ns": 5 * 10**8}
        used = dict.fromkeys(
            ("cpu_wait_ns", "minor_faults", "major_faults", "disk_read_bytes", "disk_written_bytes"), 1
        )
        used |= {
            "cpu_ns": 10**9,
            "memory_bytes": 1 << 20,
            "largest_process_bytes": 1 << 20,
            "ended_processes": 1,
        }
        samples, totals, files, batches = [], [], [], []
        for number in (1, 2):
            sender = {"cluster": "c", "node": f"n{number}", "agent": f"{number:016}"}
            job = {"job_id": f"{4241 + number}", "user": f"u{number}", "name": f"case {number}"}
            for sequence in range(1, 7):
                moment = {
                    "ts_ns": STARTED_NS + sequence * 10**10,
                    "interval_ns": 10**10,
                    "sequence": sequence,
                }
                row = {**sender, **moment, **job}
                samples.append(
                    {**row, "counter_group": "files", "target": "/scratch", "file_system": "ext4", **counters}
                )
                samples.append({**row, "counter_group": "tasks", **used, "processes": 1, "threads": 2})
                own = dict.fromkeys(
                    ("jobs", "lost", "dropped_batches", "refused_batches", "waiting_batches"), 0
                )
                own |= {"version": "0.1.0", "is_resumed": False, "cpu_ns": 10**7, "memory_bytes": 1 << 24}
                batches.append({**sender, **moment, **own})
            ended = {"ended_ns": STARTED_NS + 6 * 10**10, "sequence": 7}
            times = {"begun_ns": STARTED_NS, "is_whole": True, "command": "sh", "left_out_calls": 0}
            totals.append({**sender, **job, **ended, **times, **counters, **used})
            file = {
                "file_path": "/scratch/a",
                "target": "/scratch",
                "calls": 3,
                "read_bytes": 1,
                "written_bytes": 1,
            }
            files.append({**sender, **job, **ended, **file, "io_time_ns": 10**9, "error_ns": 0})
        tables = {"job_samples": samples, "job_totals": totals, "job_files": files, "agent_batches": batches}
        return self.write(tables, name, recorder="agent", about="jobs")

    def make_itrace(self, name: str = "itrace") -> Path:
        """The instructions of a request: a program that calls a library, and the kernel."""
        kernel = {"request_id": 1, "task_id": 0, "mode": "kernel", "image_id": 0}
        user = {**kernel, "mode": "user", "image_id": 1}
        once = {"request_id": 1, "task_id": 0, "depth": 0, "times": 1, "steps": 100}
        call = {"request_id": 1, "task_id": 0, "first_step": 0, "returned": True, "outermost": True}
        call |= {"steps": 100, "steps_inclusive": 100}
        page = {"interval": 0, "interval_steps": 256, "times": 100}
        tables = {
            "traced_requests": [
                {"request_id": 1, "name": "/", "first_step": 0, "steps": 200, "steps_collapsed": 190}
            ],
            "traced_tasks": [
                {"task_id": number, "pid": 81 + number, "tgid": 81, "comm": f"task-{number}", "steps": 200}
                for number in range(2)
            ],
            "images": [
                {"image_id": 0, "path": "[kernel]", "mode": "kernel", "symbols": "kallsyms"},
                {"image_id": 1, "path": "/usr/sbin/apache2", "mode": "user", "symbols": "dynsym"},
            ],
            "traced_functions": [
                {"function_id": 0, "image_id": 1, "name": "main", "start": 4096},
                {"function_id": 1, "image_id": 0, "name": "entry_SYSCALL_64", "start": 8192},
                {"function_id": 2, "image_id": 1, "name": "profiled"},
            ],
            "function_totals": [
                {
                    "request_id": 1,
                    "task_id": 1,
                    "function_id": 2,
                    "times": 2,
                    "steps": 50,
                    "steps_inclusive": 50,
                }
            ],
            "trace_segments": [
                {**where, "first_step": first, "steps": 100, "steps_collapsed": 95, "loads": 9, "stores": 5}
                for where, first in ((user, 0), (kernel, 100))
            ],
            "function_calls": [
                {**call, "call_id": 0, "function_id": 0, "how": "before", "depth": 0},
                {**call, "call_id": 1, "caller_id": 0, "function_id": 1, "how": "system_call", "depth": 1},
            ],
            "call_paths": [
                {**once, "path_id": 0, "function_id": 0, "path": "main", "steps_inclusive": 200},
                {**once, "path_id": 1, "parent_id": 0, "function_id": 1, "path": "main;entry_SYSCALL_64"}
                | {"steps_inclusive": 100},
            ],
            "function_transitions": [
                {"request_id": 1, "task_id": 0, "step": 100, "previous_function_id": 0, "function_id": 1}
                | {"how": "enter", "depth": 2}
            ],
            "page_references": [
                {**where, **page, "kind": "instruction", "page": number}
                for number, where in enumerate((user, kernel))
            ],
            "reuse_distances": [
                {"request_id": 1, "mode": "user", "kind": "data", "block_bytes": 64, "times": 9}
            ],
            "source_lines": [
                {"request_id": 1, "function_id": 0, "path": "/src/main.c", "line": 12, "steps": 100}
            ],
            "kernel_entries": [
                {"request_id": 1, "task_id": 0, "call_id": 1, "step": 100, "kind": "system_call"}
                | {"name": "read", "steps": 100}
            ],
            "task_switches": [{"request_id": 1, "step": 150, "previous_task_id": 0, "task_id": 1}],
        }
        return self.write(tables, name, recorder="itrace", about="itrace")

    def make_dump(self, name: str = "dump") -> Path:
        """A kernel that crashed on request, with a task that holds a lock and one that waits for it."""
        about = {"path": "core", "format": "ELF", "release": "6.1.0", "pages_bytes": 1 << 28, "processors": 2}
        about |= {"symbols": 80_000, "types": 90_000, "panic": "sysrq triggered crash"}
        tasks, stacks, frames = [], [], []
        for number, (state, function) in enumerate((("S", "handle_userfault"), ("D", "pipe_write"))):
            pid = {"pid": 218 + number, "tgid": 218 + number, "ppid": 1, "comm": f"task-{number}"}
            pid["full_name"] = pid["comm"]
            times = dict.fromkeys(("user_ns", "system_ns", "queue_ns"), 10**6) | {"run_ns": 2 * 10**6}
            used = {"rss_bytes": 1 << 18, "read_bytes": 0, "write_bytes": 0, "start_ns": 10**9}
            place = {"state": state, "cpu": number, "stack_id": number, "wait_function": function}
            place |= {"arrived_ts_ns": STARTED_NS + number, "wait_ns": 10**8, "start_ts_ns": STARTED_NS}
            tasks.append({**pid, **times, **used, **place, "address": -(1 << 40) + number, "status": "ok"})
            stacks.append(
                {"stack_id": number, "tasks": 1, "frames": f"schedule < {function}", "status": "ok"}
            )
            for frame, name_ in enumerate(("schedule", function)):
                place = {"stack_id": number, "frame": frame, "function": name_, "offset": 8}
                frames.append({**place, "address": -(1 << 30) + frame, "status": "ok"})
        lock = {"kind": "mutex", "lock": "ffff8bd28d534800", "holder_pid": 218, "waiter_pid": 219}
        lock |= {"wait_function": "pipe_write", "depth": 1, "root_pid": 218, "status": "ok"}
        texts = ("sysrq: Trigger a crash", "Kernel panic - not syncing: sysrq triggered crash")
        log = [
            {
                "sequence": number,
                "ts_ns": STARTED_NS + number,
                "after_boot_ns": 10**9 + number,
                "level": 0,
                "text": text,
            }
            for number, text in enumerate(texts)
        ]
        tables = {"crash_dumps": [about], "dump_tasks": tasks, "dump_stacks": stacks, "dump_frames": frames}
        tables |= {"dump_locks": [lock], "dump_log": log}
        tables["dump_memory"] = [{"name": "total", "bytes": 1 << 28}, {"name": "free", "bytes": 1 << 26}]
        slab = {
            "name": "dentry",
            "object_bytes": 192,
            "objects": 42,
            "slabs": 2,
            "bytes": 8192,
            "status": "ok",
        }
        tables["dump_slabs"] = [slab]
        place = {"position_bytes": 0, "size_bytes": 9, "inode": 12}
        file = {"pid": 218, "fd": 3, "path": "/tmp/a", "kind": "file", **place, "status": "ok"}
        mount = {"path": "/", "fs_type": "ext4", "source": "/dev/vda1", "read_only": False, "status": "ok"}
        module = {"name": "loop", "bytes": 40960, "users": 2, "taints": 0, "status": "ok"}
        cpu = {"cpu": 0, "current_pid": 0, "ready_tasks": 0, "clock_ns": 10**9, "status": "ok"}
        tables |= {"dump_files": [file], "dump_mounts": [mount], "dump_modules": [module], "dump_cpus": [cpu]}
        tables |= self._stopped()
        tables["dump_scripts"] = [{"name": "workqueues", "rows": 1, "status": "ok"}]
        found = {"place": 0, "address": "ffffffffc0251100", "members": "name=loop", "status": "ok"}
        tables["dump_list_find"] = [found]
        found = {"address": "ffff8bd28d534800", "physical": "000000000d534800", "around": "loop"}
        tables["dump_find_text"] = [found]
        pool = {"cpu": 0, "workers": 3, "idle": 3, "waiting": 0, "status": "ok"}
        tables["dump_workqueues"] = [pool]
        return self.write(tables, name, recorder="dump", about="dump")

    def _stopped(self) -> dict[str, list[dict[str, Any]]]:
        """Where the kernel stopped, and the work in progress at that time."""
        panic = {"ts_ns": STARTED_NS + 10**8, "uptime_ns": 10**9, "cause": "sysrq", "sequence": 0, "taint": 0}
        panic |= {"record": "sysrq: Trigger a crash", "cpu": 0, "pid": 1, "comm": "init", "status": "ok"}
        register = {"cpu": 0, "pid": 1, "origin": "dump", "name": "ip", "value": "ffffffff975c3643"}
        request = {"disk": "nvme0n1", "ts_ns": STARTED_NS, "age_ns": 10**8, "operation": "read"}
        request |= {"sector": 8, "bytes": 4096, "state": "in flight", "tag": 1, "queue": 0, "status": "ok"}
        socket = {"pid": 218, "fd": 4, "family": "inet", "kind": "stream", "protocol": "tcp", "inode": 12}
        socket |= {"state": "listen", "local": "127.0.0.1", "local_port": 80, "unaccepted": 0, "status": "ok"}
        count = {"name": "tasks in the list", "found": 2, "expected": 2, "against": "nr_threads"}
        count |= {"status": "ok"}
        rows = {"dump_panic": [panic], "dump_registers": [register], "dump_requests": [request]}
        return rows | {"dump_sockets": [socket], "dump_counts": [count]}

    def make_load(self, name: str = "load") -> Path:
        """A load: reads and writes of two lengths and creates, by one process and by four, for a second each."""
        results, intervals, latencies = [], [], []
        settings = [("transfer", "write", 4096), ("transfer", "read", 1 << 20), ("metadata", "create", None)]
        cases = [(*setting, processes) for setting in settings for processes in (1, 4)]
        for id_, (item, operation, length, processes) in enumerate(cases, 1):
            started = STARTED_NS + id_ * 2 * 10**9
            operations = 500 * processes
            moved = operations * (length or 0)
            results.append(
                {
                    "result_id": id_,
                    "item": item,
                    "operation": operation,
                    "layout": "own",
                    "sync": "end" if operation == "write" else None,
                    "length_bytes": length,
                    "processes": processes,
                    "depth": 1,
                    "direct": False if length else None,
                    "engine": "sysdock",
                    "hosts": "box",
                    "bytes": moved,
                    "operations": operations,
                    "errors": 0,
                    "started_ns": started,
                    "first_end_ns": started + 10**9,
                    "ended_ns": started + 10**9,
                    "bytes_per_s": float(moved) or None,
                    "operations_per_s": float(operations),
                    "overlap": 1.0,
                    "p50_ns": 1_900_000,
                    "p99_ns": 2_100_000,
                    "max_ns": 2_200_000,
                    "status": "measured",
                }
            )
            same = {"result_id": id_, "dur_ns": 10**8, "bytes": 50 * (length or 0), "operations": 50}
            intervals += [
                {**same, "worker": worker, "ts_ns": started + 10**8 * step}
                for worker in range(processes)
                for step in range(10)
            ]
            latencies.append(
                {"result_id": id_, "low_ns": 1_800_000, "high_ns": 2_200_000, "operations": operations}
            )
        predicted = [
            {
                "workload": "simple_update",
                "clients": clients,
                "predicted_tps": 50.0 * clients,
                "latency_ns": 20_000_000,
                "limited_by": "flush",
                "flush_ns": 19_000_000,
                "flush_busy": 0.95,
                "cpu_busy": 0.01,
            }
            for clients in (1, 4)
        ]
        tables = {"load_results": results, "load_intervals": intervals, "load_latencies": latencies}
        tables["diskio_predictions"] = predicted
        return self.write(tables, name, recorder="load", about="load")

    def make_probes(self, name: str = "probes") -> Path:
        """A series of three probes of two items."""
        target = {
            "probe_id": 1,
            "time_ns": STARTED_NS,
            "folder": "/srv",
            "mount_point": "/srv",
            "fs_type": "ext4",
            "source": "/dev/sdb1",
            "options": "rw",
            "device": "8:17",
            "size_bytes": 1 << 30,
            "kernel": "6.1.0",
            "host": "box",
            "every_ns": 600 * 10**9,
        }
        same = {
            "boot_id": "b1",
            "kernel": "6.1.0",
            "status": "measured",
            "load": 0.5,
            "waited_ns": 0,
            "under_load": False,
        }
        items = ((1, "control", "compute", None, 9000.0), (2, "log", "append", 8192, 400.0))
        rows = [
            {
                **same,
                "probe_id": number + 1,
                "step": step,
                "time_ns": STARTED_NS + number * 600 * 10**9,
                "since_boot_ns": (number + 1) * 600 * 10**9,
                "item": item,
                "operation": operation,
                "length_bytes": length,
                "operations_per_s": rate + number,
                "p50_ns": round(1e9 / rate),
                "p99_ns": round(3e9 / rate),
            }
            for number in range(3)
            for step, item, operation, length, rate in items
        ]
        return self.write(
            {"probe_targets": [target], "probe_results": rows}, name, recorder="probe", about="probe"
        )

    def make_waits(self, name: str = "waits") -> Path:
        """A process that reads, for which it waits 30 ms for the disk, and computes; with all that families record."""
        ms = 1_000_000
        read = {"call": "read", "class": "read", "path": "/data"}
        wait = {"t": 0.01, "dur_ns": 31 * ms, "wait_ns": 30 * ms, "state": "uninterruptible", "cause": "disk"}
        path = [
            {"t": 0, "dur_ns": 10 * ms, "part": "running"},
            {"t": 0.01, "dur_ns": 30 * ms, "part": "waiting", "cause": "disk", **read},
            {"t": 0.04, "dur_ns": ms, "part": "runnable", **read},
            {"t": 0.041, "dur_ns": 59 * ms, "part": "running"},
        ]
        times = {"start_ts_ns": STARTED_NS, "end_ts_ns": STARTED_NS + 100 * ms}
        life = {"pid": 100, "tid": 100, "depth": 0, "tree_order": 0, "execs": 0, "calls": 1, **times}
        calls = [{"t": 0.009, "dur_ns": 33 * ms, "call": "read", "path": "/data", "transferred_bytes": 4096}]
        states = [{**wait, **read, "waker": "interrupt", "cpu": 0}]
        sample = {"period_ns": 5 * ms, "cpu": 0, "in_kernel": False, "stack_id": 0}
        samples = [{"t": 0.042 + 0.005 * n, **sample} for n in range(11)]
        samples.append({"t": 0.005, **sample, "in_kernel": True, "kernel_stack_id": 1})
        stacks = [
            {"stack_id": 0, "frame": 0, "object": "/srv/sum", "function": "add", "source": "sum.c:11"},
            {"stack_id": 1, "frame": 0, "object": "[kernel]", "function": "asm_exc_page_fault"},
        ]
        lock = {
            "lock_id": 0,
            "name": "inode.i_rwsem",
            "kind": "rwsem",
            "named_by": "cache",
            "cache": "inode_cache",
        }
        got = {
            "t": 0.0095,
            "dur_ns": 20_000,
            "lock_id": 0,
            "mode": "read",
            "cpu": 0,
            "nested": False,
            "given_up": False,
        }
        rows = {"run_states": states, "critical_path": path, "samples": samples, "stacks": stacks}
        request = {"t": 0.0101, "queue_ns": ms, "service_ns": 28 * ms, "path": "/data", "device": "sda"}
        request |= {"sector": 8, "length_bytes": 4096, "op": "read", "flags": "sync", "depth": 1}
        rows["block_requests"] = [request]
        rows["interrupts"] = [
            {"t": 0.05, "dur_ns": 9000, "self_ns": 9000, "cpu": 0, "kind": "vector", "name": "local_timer"}
        ]
        number = {"source": "cpu", "object": "cpu0", "metric": "user", "unit": "ns", "is_counter": True}
        site = {"kind": "cache", "freed": False, "function": "alloc_empty_file", "offset_bytes": 60}
        site |= {"cache": "filp", "size_bytes": 192, "number": 3, "asked_bytes": 552, "given_bytes": 576}
        rows["allocations"] = [{**site, "first_ts_ns": STARTED_NS}]
        stall = {"t": 0.0098, "dur_ns": 100_000, "kind": "direct reclaim", "page_order": 0, "pages": 32}
        rows["memory_stalls"] = [{**stall, "call": "read", "class": "read"}]
        times = {"call": "read", "class": "read", "lower_ns": 896, "upper_ns": 960, "number": 2, "failed": 0}
        rows["syscall_times"] = [{**times, "time_ns": 1900}]
        rows["system_metrics"] = [{"t": t, **number, "value": 1e9 * t} for t in (0.0, 0.1)]
        rows |= {
            "locks": [lock],
            "sockets": [{"path_id": 99, "protocol": "tcp", "remote": "192.0.2.1:80", "retransmits": 1}],
            "lock_waits": [{**got, "call": "read", "class": "read", "kernel_stack_id": 1}],
        }
        return self.make(calls, name, processes=[life], **rows)

    def write(self, tables: dict[str, list[dict[str, Any]]], name: str = "rec", **manifest: Any) -> Path:
        """A recording of these rows; `manifest` overrides keys of recording.json."""
        folder = self.folder / name
        folder.mkdir()
        entries = {table: self._table(folder, table, rows) for table, rows in tables.items()}
        ends = [row["ts_ns"] + (row.get("dur_ns") or 0) - STARTED_NS for row in tables.get("calls", [])]
        content = manifest_of(entries, max(ends, default=0), len(tables.get("calls", [])))
        content = with_keys(content, manifest)
        (folder / "recording.json").write_text(json.dumps(content))
        return folder

    def _call(
        self, entry: dict[str, Any], paths: dict[str, tuple[int, str]], comms: dict[str, int], lives: _Lives
    ) -> dict[str, Any]:
        row = {"class": CLASSES.get(entry["call"], "other"), "offset_uncertain": False}
        row |= self._event(entry, paths, lives)
        if (comm := row.pop("comm", None)) is not None:
            row["comm_id"] = comms.setdefault(comm, len(comms))
        moved = row.get("transferred_bytes")
        result = row.pop("result", None if row.get("errno") else 0 if moved is None else moved)
        # A recording has a result once.
        return {"value": None if result == moved else result, **row}

    def _event(
        self, entry: dict[str, Any], paths: dict[str, tuple[int, str]], lives: _Lives
    ) -> dict[str, Any]:
        """What all tables of events share: a time, a life, paths."""
        row = dict(entry)
        row["ts_ns"] = STARTED_NS + round(row.pop("t", 0) * 1_000_000_000)
        # Without a path it is a column of the table.
        kind = row.pop("kind", "file") if row.keys() & {"path", "to_path"} else None
        for name in ("path", "to_path"):
            if (path := row.pop(name, None)) is not None:
                row[f"{name}_id"] = paths.setdefault(path, (len(paths), kind or "file"))[0]
        row["task_id"] = lives.of(row.pop("pid", 100), row.pop("tid", 100), row["ts_ns"], "call" in row)
        return row

    def _table(self, folder: Path, name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
        if not rows:
            return {"rows": 0, "lost": 0, "parts": []}
        columns = tuple((column.name, column.sql_type) for column in self.library.table(name).columns)
        # One list per column: a statement per row would take seconds for some thousand rows.
        lists = [[row.get(column) for row in rows] for column, _ in columns]
        (folder / name).mkdir()
        file = folder / name / "part-0000.parquet"
        file.write_bytes(_parquet(columns, _Values(lists)))
        return {"rows": len(rows), "lost": 0, "parts": [part_entry(folder, file, len(rows))]}


class _Values:
    """Lists of values, by column; equal if they read the same."""

    def __init__(self, lists: list[list[Any]]) -> None:
        self.lists = lists
        self.shown = repr(lists)

    def __hash__(self) -> int:
        return hash(self.shown)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Values) and self.shown == other.shown


@functools.lru_cache(2000)
def _parquet(columns: tuple[tuple[str, str], ...], values: _Values) -> bytes:
    """A part of a recording. Most tables of most tests have rows that others have, too."""
    connection = _engine(os.getpid(), threading.get_ident())
    spec = ", ".join(f'"{name}" {sql_type}' for name, sql_type in columns)
    connection.execute(f"CREATE OR REPLACE TABLE t ({spec})")
    parameters = {f"c{number}": each for number, each in enumerate(values.lists)}
    unnested = ", ".join(f"unnest(${name})" for name in parameters)
    connection.execute(f"INSERT INTO t SELECT {unnested}", parameters)
    with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        connection.execute(f"COPY t TO '{file.name}' (FORMAT parquet, COMPRESSION zstd)")
        return Path(file.name).read_bytes()


@functools.cache
def _engine(_process: int, _thread: int) -> duckdb.DuckDBPyConnection:
    """A connection for all tables that a thread writes: to open one takes longer than to write a table."""
    return duckdb.connect()


class _Lives:
    """Rows of `processes`: those given, and one for each pid and tid that is in none of them."""

    def __init__(self, given: list[dict[str, Any]]) -> None:
        self.rows = [
            {"task_id": number, "process_id": number, "log": "t.log", **row}
            for number, row in enumerate(given)
        ]
        self.given = len(given)

    def of(self, pid: int, tid: int, ts_ns: int, calls: int) -> int:
        """The life that the thread has at that time."""
        own = [row for row in self.rows if (row["pid"], row["tid"]) == (pid, tid)]
        if not own:
            number = len(self.rows)
            first = next((row["process_id"] for row in self.rows if row["pid"] == pid), number)
            row = {
                "task_id": number,
                "process_id": first,
                "pid": pid,
                "tid": tid,
                "depth": 0,
                "tree_order": number,
            }
            self.rows.append({**row, "start_ts_ns": ts_ns, "execs": 0, "calls": 0, "log": "t.log"})
            own = self.rows[-1:]
        life = [own[0], *(row for row in own if row["start_ts_ns"] <= ts_ns)][-1]
        if life["task_id"] >= self.given:
            life["start_ts_ns"] = min(life["start_ts_ns"], ts_ns)
            life["calls"] += calls
        return life["task_id"]


def part_entry(folder: Path, file: Path, rows: int) -> dict[str, Any]:
    """The entry of a part in recording.json."""
    data = file.read_bytes()
    return {
        "file": file.relative_to(folder).as_posix(),
        "rows": rows,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


# Keys of recording.json that tests change, and where they stand in its capture.
OF_CAPTURE = {
    "lines_total": "total",
    "lines_understood": "understood",
    "lost_events": "lost",
    **{
        key: key
        for key in ("recorder", "unit", "clock", "options", "families", "sources", "issues", "ended_by")
    },
}


def manifest_of(tables: dict[str, Any], duration_ns: int, lines: int) -> dict[str, Any]:
    """A recording.json for these table entries."""
    capture = {
        "recorder": "strace-log",
        "unit": "lines",
        "total": lines,
        "understood": lines,
        "lost": 0,
        "clock": {
            "kind": "epoch",
            "resolution_ns": 1000,
            "has_durations": True,
            "includes_tracer": True,
            "note": None,
        },
        "options": ["-f", "-ttt", "-T", "-y"],
        "families": [{"family": "calls", "missing": None}],
        "sources": [{"path": "t.log", "bytes": 1000, "lines": lines}],
        "counts": {"restarted_calls": 0},
        "issues": {},
        "complete": True,
        "ended_by": "end of input",
    }
    return {
        "format_version": FORMAT_VERSION,
        "tool": {"name": "sysdock-native", "version": "0.1.0"},
        "command": "tar cf /dev/null /usr/share/doc",
        "directory": "/tmp",
        "host": "box",
        "started_ns": STARTED_NS,
        "duration_ns": duration_ns,
        "exit_code": 0,
        "exit_signal": None,
        "complete": True,
        "captures": [capture],
        "tables": tables,
    }


def with_keys(manifest: dict[str, Any], keys: dict[str, Any]) -> dict[str, Any]:
    """The manifest with other values: those of a capture go to its only one, `about` is its family."""
    [capture] = manifest["captures"]
    capture = {**capture, **{OF_CAPTURE[key]: value for key, value in keys.items() if key in OF_CAPTURE}}
    if "about" in keys:
        capture["families"] = [{"family": keys["about"], "missing": None}]
    if isinstance(keys.get("complete"), bool):
        capture["complete"] = keys["complete"]
    own = {key: value for key, value in keys.items() if key not in OF_CAPTURE and key != "about"}
    return {**manifest, **own, **({} if "captures" in own else {"captures": [capture]})}


def sample_calls() -> list[dict[str, Any]]:
    """A small run with every case that filters tell apart."""
    doc, lib, odd = "/usr/share/doc/a.txt", "/usr/lib/libc.so", '/tmp/it\'s "<script>"\n,[x]*'
    return [
        {"t": 0.0, "call": "openat", "path": doc, "dur_ns": 20_000, "comm": "tar", "fd": 3, "result": 3},
        {
            "t": 0.1,
            "call": "read",
            "path": doc,
            "dur_ns": 10_000,
            "comm": "tar",
            "offset_bytes": 0,
            "transferred_bytes": 100,
            "requested_bytes": 4096,
        },
        {
            "t": 0.2,
            "call": "read",
            "path": doc,
            "dur_ns": 30_000,
            "comm": "tar",
            "transferred_bytes": 0,
            "requested_bytes": 4096,
        },
        {"t": 0.3, "call": "openat", "path": lib, "dur_ns": 5_000, "comm": "tar", "errno": "ENOENT"},
        {
            "t": 0.4,
            "call": "write",
            "path": odd,
            "dur_ns": 40_000,
            "comm": "cat",
            "pid": 200,
            "tid": 201,
            "transferred_bytes": 7,
        },
        {"t": 0.5, "call": "getpid", "comm": "cat", "pid": 200, "tid": 200, "result": 200},
        {
            "t": 0.6,
            "call": "read",
            "path": "pipe:[42]",
            "kind": "pipe",
            "comm": "cat",
            "pid": 200,
            "result": None,
        },
        {
            "t": 0.7,
            "call": "newfstatat",
            "path": "/usr/share/doc",
            "kind": "directory",
            "dur_ns": 1_000,
            "comm": "tar",
        },
    ]


_COUNTS_OF_JOB = """reads writes opens creates closes stats readdirs removes renames makes attributes syncs errors
    cpu_wait_ns minor_faults major_faults disk_read_bytes disk_written_bytes ended_processes left_out_calls"""


def job_total(
    number: int, *, wait_s: float, user: str = "alice", name: str | None = "cfd", **more: Any
) -> dict[str, Any]:
    """The record of job `number`, which began `number` hours after the start."""
    begun_ns = STARTED_NS + number * 3600 * 10**9
    return {
        **{"cluster": "c", "node": "n1", "agent": "0" * 16, "sequence": number},
        **{"job_id": str(number), "user": user, "name": name, "command": "solver", "is_whole": True},
        **{"begun_ns": begun_ns, "ended_ns": begun_ns + 600 * 10**9 + number * 10**9},
        **dict.fromkeys(_COUNTS_OF_JOB.split(), 5),
        **{"read_bytes": 1 << 30, "written_bytes": 0, "io_time_ns": int(wait_s * 1e9), "io_wait_ns": int(wait_s * 1e9)},
        **{"cpu_ns": 500 * 10**9, "memory_bytes": 1 << 30, "largest_process_bytes": 1 << 30, **more},
    }  # fmt: skip
