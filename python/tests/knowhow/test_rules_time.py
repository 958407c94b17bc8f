"""Rules on what holds a command back: one thread, sleeping in a loop, another program, its own code, the kernel."""

from __future__ import annotations

import pytest
from rule_calls import Calls, one
from sysdock.analysis import Finding

MS = 1_000_000
FOUR_CPUS = [{"section": "cpu", "name": "online", "value": "4", "source": "recorder"}]
CALLS: Calls = [{"call": "getpid"}]


def part(from_ms: float, ms: float, name: str = "running", **more: object) -> dict:
    """A part of the critical path."""
    return {"t": from_ms / 1e3, "dur_ns": round(ms * MS), "part": name, **more}


def away(from_ms: float, ms: float, tid: int = 100, **more: object) -> dict:
    """A time in which a thread waits."""
    waits = {"state": "sleeping", "cause": "lock", "wait_ns": round(ms * MS)}
    return {"t": from_ms / 1e3, "dur_ns": round(ms * MS), "tid": tid, **waits, **more}


def life(tid: int, ms: float, pid: int = 100, process: int = 0, start_ms: float = 0, **more: object) -> dict:
    """A thread."""
    start = 1_700_000_000_000_000_000
    own = {
        "pid": pid,
        "tid": tid,
        "process_id": process,
        "depth": 0,
        "tree_order": tid,
        "execs": 0,
        "calls": 0,
    }
    return {
        **own,
        "start_ts_ns": start + round(start_ms * MS),
        "end_ts_ns": start + round((start_ms + ms) * MS),
        **more,
    }


def samples(number: int, step_ms: float, **more: object) -> list[dict]:
    """Samples of thread 100, each for the time from one to the next."""
    own = {"period_ns": round(step_ms * MS), "cpu": 0, "in_kernel": False, "stack_id": 0}
    return [{"t": (at * step_ms + step_ms / 2) / 1e3, **own, **more} for at in range(number)]


def frame(stack: int, number: int, object_: str, function: str) -> dict:
    return {"stack_id": stack, "frame": number, "object": object_, "function": function}


STACKS = [
    frame(0, 0, "/srv/app", "merge"),
    frame(1, 0, "[kernel]", "clear_page_erms"),
    frame(1, 1, "[kernel]", "asm_exc_page_fault"),
    frame(2, 0, "[kernel]", "filemap_read"),
    frame(2, 1, "[kernel]", "do_syscall_64"),
]
NO_COMMAND = {"critical_path": [], "run_states": [], "samples": [], "stacks": STACKS}


@pytest.mark.parametrize("rule", ["serial", "polling", "peer", "user_code", "kernel_work"])
def test_without_a_command_nothing_can_be_judged(judge, rule: str) -> None:
    assert one(judge(f"time/{rule}", CALLS, **NO_COMMAND)).status == "unknown"


@pytest.mark.parametrize("rule", ["serial", "polling", "peer", "user_code", "kernel_work"])
def test_without_the_scheduler_nothing_can_be_judged(judge, rule: str) -> None:
    assert one(judge(f"time/{rule}", CALLS)).status == "unknown"


class TestSerial:
    def serial(self, judge, processes: list[dict], states: list[dict], wall_ms: float = 1000) -> Finding:
        rows = {"samples": samples(10, wall_ms / 10), "stacks": STACKS, "environment": FOUR_CPUS}
        path = [part(0, wall_ms)]
        return one(
            judge("time/serial", CALLS, processes=processes, run_states=states, critical_path=path, **rows)
        )

    def test_a_thread_that_works_while_others_wait_is_found(self, judge) -> None:
        crew = [life(tid, 1000) for tid in (100, 101, 102)]
        found = self.serial(judge, crew, [away(100, 800, 101), away(100, 800, 102)])
        assert (found.status, found.value, found.cost_ns, found.process) == ("finding", 80, 800 * MS, 100)
        # It is unknown whether the work of this thread can be divided.
        assert found.gain_ns is None
        assert "in merge. 2 other workers wait" in found.reason

    def test_threads_that_take_turns_are_found(self, judge) -> None:
        crew = [life(tid, 1000) for tid in (100, 101, 102)]
        turns = [
            away(at, 100, tid)
            for at in range(0, 1000, 100)
            for tid in (100, 101, 102)
            if tid != 100 + at // 100 % 3
        ]
        found = self.serial(judge, crew, turns)
        assert (found.status, found.value, found.cost_ns) == ("finding", 100, 1000 * MS)
        # Three workers that work side by side do it in a third of the time.
        assert found.gain_ns == pytest.approx(1000 * MS * 2 / 3, abs=1)
        assert "at a time, in turns" in found.reason

    def test_a_thread_that_waits_for_a_cpu_works(self, judge) -> None:
        crew = [life(100, 1000), life(101, 1000)]
        states = [away(100, 800, 101, wait_ns=0, state="preempted", cause=None)]
        assert self.serial(judge, crew, states).status == "ok"

    @pytest.mark.parametrize(("waits_ms", "status"), [(500, "finding"), (499, "ok")])
    def test_half_of_the_time_is_serial(self, judge, waits_ms: int, status: str) -> None:
        assert (
            self.serial(judge, [life(100, 1000), life(101, 1000)], [away(100, waits_ms, 101)]).status
            == status
        )

    def test_a_helper_with_little_work_is_no_worker(self, judge) -> None:
        assert self.serial(judge, [life(100, 900), life(101, 900)], [away(0, 850, 101)], 900).status == "ok"

    def test_threads_of_a_runtime_are_no_workers(self, judge) -> None:
        crew = [life(100, 900), life(101, 900)]
        of_runtime = samples(8, 100, tid=101, stack_id=3)
        rows = {"processes": crew, "run_states": [away(0, 600, 101)], "critical_path": [part(0, 900)]}
        stacks = [
            *STACKS,
            frame(3, 0, "/usr/lib/jvm/java-17/lib/server/libjvm.so", "C2Compiler::compile_method"),
        ]
        for taken, status in ([], "finding"), (of_runtime, "ok"):
            rows |= {"samples": taken, "stacks": stacks, "environment": FOUR_CPUS}
            assert one(judge("time/serial", CALLS, **rows)).status == status

    def test_a_command_with_one_thread_is_a_note(self, judge) -> None:
        found = self.serial(judge, [life(100, 2000)], [away(10, 1)], 2000)
        assert (found.status, found.gain_ns, found.explained_by) == ("finding", 0, ("time/user_code",))

    def test_a_short_command_with_one_thread_is_fine(self, judge) -> None:
        assert self.serial(judge, [life(100, 900)], [away(10, 1)], 900).status == "ok"

    def test_a_parent_that_waits_for_its_child_is_no_crew(self, judge) -> None:
        child = life(200, 800, pid=200, process=1, start_ms=100, ppid=100)
        assert (
            self.serial(judge, [life(100, 900), child], [away(100, 800, cause="child process")], 900).status
            == "ok"
        )

    def test_a_pool_of_processes_of_which_one_works_is_found(self, judge) -> None:
        pool = [life(pid, 1000, pid=pid, process=number, ppid=1) for number, pid in enumerate((100, 200))]
        found = self.serial(judge, pool, [away(100, 800, 200, pid=200)])
        assert (found.status, found.process) == ("finding", 100)

    @pytest.mark.parametrize(("cause", "status"), [("pipe", "ok"), ("lock", "finding")])
    def test_processes_that_wake_each_other_at_a_pipe_share_no_work(
        self, judge, cause: str, status: str
    ) -> None:
        pair = [life(pid, 1000, pid=pid, process=number, ppid=1) for number, pid in enumerate((100, 200))]
        waits = [away(100 + 200 * n, 190, 200, pid=200, cause=cause, waker_task_id=0) for n in range(4)]
        assert self.serial(judge, pair, waits).status == status


class TestPolling:
    def sleeping(
        self,
        judge,
        times: int,
        ms: float,
        pause_ms: float,
        call: str = "clock_nanosleep",
        looks_at_it: bool = True,
        **more: object,
    ) -> Finding:
        step = ms + pause_ms
        own = {"call": call, "class": "wait", "dur_ns": round(ms * MS), "result": 0, **more}
        calls = [{"t": at * step / 1e3, **own} for at in range(times)]
        looks: Calls = [
            {"t": (at * step + ms) / 1e3, "call": "stat", "class": "stat", "path": "/d/ready", "dur_ns": 1000}
            for at in range(times if looks_at_it else 0)
        ]
        path = []
        for at in range(times):
            where = {"cause": "timer", "waker": "interrupt", "call": call, "class": own["class"]}
            path += [part(at * step, ms, "waiting", **where), part(at * step + ms, pause_ms)]
        return one(judge("time/polling", calls + looks, critical_path=path, stacks=STACKS))

    def test_short_sleeps_one_after_the_other_are_found(self, judge) -> None:
        found = self.sleeping(judge, 50, 10, 2)
        assert (found.status, found.cost_ns, found.gain_ns) == ("finding", 500 * MS, 500 * MS)
        assert found.value == round(100 * 10 / 12, 1)
        assert "50 sleeps of 10.00 ms on average" in found.reason

    def test_sleeps_between_which_nothing_is_asked_are_a_note(self, judge) -> None:
        found = self.sleeping(judge, 50, 10, 2, looks_at_it=False)
        assert (found.status, found.cost_ns, found.gain_ns) == ("finding", 500 * MS, 0)
        assert "There are no checks in between" in found.reason

    def test_timeouts_that_run_out_are_found(self, judge) -> None:
        found = self.sleeping(judge, 50, 10, 2, "epoll_wait")
        assert (found.status, found.certainty) == ("finding", "low")
        assert "50 timeouts of" in found.reason

    def test_events_that_come_in_time_are_fine(self, judge) -> None:
        assert self.sleeping(judge, 50, 10, 2, "epoll_wait", result=1).status == "ok"

    def test_a_lock_that_was_had_in_time_is_fine(self, judge) -> None:
        assert self.sleeping(judge, 50, 10, 2, "futex", **{"class": "lock"}).status == "ok"

    def test_timeouts_of_a_lock_may_be_those_of_threads_in_turn(self, judge) -> None:
        found = self.sleeping(
            judge, 50, 10, 2, "futex", **{"class": "lock", "errno": "ETIMEDOUT", "result": None}
        )
        assert (found.status, found.explained_by) == ("finding", ("time/serial", "locks/futexes"))

    def test_few_sleeps_are_no_polling(self, judge) -> None:
        assert self.sleeping(judge, 2, 100, 1).status == "ok"

    @pytest.mark.parametrize(("pause_ms", "status"), [(400, "ok"), (200, "finding")])
    def test_one_long_sleep_counts_where_it_takes_half_of_the_time(
        self, judge, pause_ms: int, status: str
    ) -> None:
        assert self.sleeping(judge, 1, 300, pause_ms).status == status

    def test_long_sleeps_may_be_meant_and_promise_nothing(self, judge) -> None:
        finding = self.sleeping(judge, 12, 251, 1)
        assert (finding.status, finding.gain_ns, "waited 12 times" in finding.reason) == (
            "finding",
            None,
            True,
        )

    def test_what_is_asked_between_sleeps_is_named(self, judge) -> None:
        assert "Checks in between: stat /d/ready." in self.sleeping(judge, 50, 10, 2).reason

    def test_sleeps_after_which_something_is_written_keep_a_pace(self, judge) -> None:
        step, path, calls = 12, [], []
        for at in range(50):
            sleep = {"call": "clock_nanosleep", "class": "wait"}
            calls.append({"t": at * step / 1e3, **sleep, "dur_ns": 10 * MS, "result": 0})
            wrote = {
                "call": "write",
                "class": "write",
                "path": "/d/log",
                "dur_ns": 1000,
                "transferred_bytes": 8,
            }
            calls.append({"t": (at * step + 11) / 1e3, **wrote})
            path += [part(at * step, 10, "waiting", cause="timer", waker="interrupt", **sleep)]
            path += [part(at * step + 10, 2)]
        found = one(judge("time/polling", calls, critical_path=path, stacks=STACKS))
        assert (found.status, found.gain_ns, "keeps a fixed pace" in found.reason) == ("finding", None, True)

    def test_processes_of_one_program_count_together(self, judge) -> None:
        poll = {"call": "poll", "class": "wait"}
        calls = [
            {"t": n, "tid": 100 + n, "pid": 100 + n, **poll, "dur_ns": 900 * MS, "result": 0}
            for n in range(3)
        ]
        path = [
            part(
                n * 1000, 900, "waiting", tid=100 + n, pid=100 + n, cause="events", waker="interrupt", **poll
            )
            for n in range(3)
        ]
        found = one(judge("time/polling", calls, critical_path=path, stacks=STACKS))
        assert (found.status, found.cost_ns, found.gain_ns) == ("finding", 2700 * MS, None)

    @pytest.mark.parametrize(("gap_ms", "status"), [(0.5, "ok"), (2, "finding")])
    def test_a_poll_that_waits_on_until_something_happens_is_no_timeout(
        self, judge, gap_ms: float, status: str
    ) -> None:
        poll, calls, path = {"call": "poll", "class": "wait"}, [], []
        for at in range(0, 4000, 400):
            calls.append({"t": at / 1e3, **poll, "dur_ns": 200 * MS, "result": 0})
            calls.append({"t": (at + 200 + gap_ms) / 1e3, **poll, "dur_ns": 100 * MS, "result": 1})
            path.append(part(at, 200, "waiting", cause="events", waker="interrupt", **poll))
            path.append(part(at + 200 + gap_ms, 100, "waiting", cause="events", waker="server", **poll))
        assert one(judge("time/polling", calls, critical_path=path, stacks=STACKS)).status == status
        peer = [
            one
            for one in judge("time/peer", calls, critical_path=path, stacks=STACKS)
            if one.subject == "server"
        ]
        assert peer[0].cost_ns == (3000 if status == "ok" else 1000) * MS

    def test_sleeps_that_take_little_of_the_time_are_fine(self, judge) -> None:
        assert self.sleeping(judge, 20, 10, 100).status == "ok"

    def asking(self, judge, number: int, **more: object) -> Finding:
        own = {"call": "read", "class": "read", "path": "pipe:[7]", "kind": "pipe", "dur_ns": 5_000}
        calls = [{"t": at / 1e5, **own, "errno": "EAGAIN", **more} for at in range(number)]
        return one(judge("time/polling", calls, critical_path=[part(0, 200)], stacks=STACKS))

    @pytest.mark.parametrize(("number", "status"), [(10_001, "finding"), (9_999, "ok")])
    def test_reads_of_an_empty_pipe_without_a_pause_are_found(self, judge, number: int, status: str) -> None:
        assert self.asking(judge, number).status == status

    def test_an_event_loop_that_reads_until_there_is_no_more_is_fine(self, judge) -> None:
        own = {"call": "read", "class": "read", "path": "pipe:[7]", "kind": "pipe", "dur_ns": 5_000}
        empty = [{"t": at / 1e5, **own, "errno": "EAGAIN"} for at in range(12_000)]
        full = [
            {"t": at / 1e5 + 5e-6, **own, "transferred_bytes": 1, "result": 1} for at in range(0, 12_000, 2)
        ]
        assert (
            one(judge("time/polling", empty + full, critical_path=[part(0, 200)], stacks=STACKS)).status
            == "ok"
        )


class TestPeer:
    def waiting(
        self,
        judge,
        times: int,
        ms: float,
        *,
        sends: bool = True,
        waker: str = "postgres",
        calls: Calls | None = None,
    ) -> Finding:
        of = {"path": "socket:[7]", "kind": "socket"}
        step = ms + 1
        made = list(calls or CALLS)
        path = []
        for at in range(times):
            if sends:
                made.append(
                    {
                        "t": at * step / 1e3,
                        "call": "sendto",
                        "class": "write",
                        "dur_ns": 1000,
                        "transferred_bytes": 9,
                        **of,
                    }
                )
            where = {"cause": "socket", "waker": waker, "call": "recvfrom", "class": "read", **of}
            path += [part(at * step, 1), part(at * step + 1, ms, "waiting", **where)]
        return one(judge("time/peer", made, critical_path=path, stacks=STACKS))

    def test_many_round_trips_are_found(self, judge) -> None:
        found = self.waiting(judge, 200, 2)
        assert (found.status, found.subject, found.cost_ns, found.certainty) == (
            "finding",
            "postgres",
            400 * MS,
            "medium",
        )
        assert "200 round trips one after another, 2.00 ms each, on socket:[7]" in found.reason

    def test_few_long_answers_are_found(self, judge) -> None:
        found = self.waiting(judge, 3, 200)
        assert (found.status, found.certainty) == ("finding", "low")
        assert "3 replies took 200.0 ms each" in found.reason

    def test_who_only_receives_makes_no_round_trips(self, judge) -> None:
        assert "until postgres sends or receives data" in self.waiting(judge, 200, 2, sends=False).reason

    @pytest.mark.parametrize("waker", ["interrupt", "ksoftirqd/1"])
    def test_the_kernel_speaks_for_the_network(self, judge, waker: str) -> None:
        assert self.waiting(judge, 3, 200, waker=waker).subject == "network"

    def test_a_server_may_wait_for_its_clients(self, judge) -> None:
        accepted: Calls = [{"call": "accept4", "class": "socket", "result": 5, "dur_ns": 1000}]
        found = self.waiting(judge, 200, 2, calls=accepted)
        assert (found.status, found.gain_ns) == ("finding", 0)

    def test_short_waits_are_fine(self, judge) -> None:
        assert self.waiting(judge, 20, 2).status == "ok"

    def polled(self, judge, result: int) -> Finding:
        calls: Calls = [{"t": 0.001, "call": "poll", "class": "wait", "dur_ns": 500 * MS, "result": result}]
        where = {"cause": "events", "waker": "interrupt", "call": "poll", "class": "wait"}
        return one(
            judge(
                "time/peer",
                calls,
                critical_path=[part(0, 1), part(1, 500, "waiting", **where)],
                stacks=STACKS,
            )
        )

    @pytest.mark.parametrize(("result", "status"), [(1, "finding"), (0, "ok")])
    def test_a_poll_that_ran_out_waited_for_nobody(self, judge, result: int, status: str) -> None:
        assert self.polled(judge, result).status == status


class TestWork:
    """Work of the program itself, and of the kernel for it."""

    def working(
        self,
        judge,
        rule: str,
        user: int,
        kernel: int,
        stack: int = 2,
        call: str | None = "read",
        on_path: float = 2000,
    ) -> Finding:
        class_ = "read" if call else None
        taken = samples(user + kernel, 10)
        for sample in taken[user:]:
            sample |= {"in_kernel": True, "call": call, "class": class_, "kernel_stack_id": stack}
        return one(
            judge(f"time/{rule}", CALLS, critical_path=[part(0, on_path)], samples=taken, stacks=STACKS)
        )

    def test_a_command_that_computes_in_one_function_is_found(self, judge) -> None:
        found = self.working(judge, "user_code", 180, 20)
        # How much faster the function can be made is not known.
        assert (found.status, found.subject, found.cost_ns, found.gain_ns) == (
            "finding",
            "merge",
            1800 * MS,
            None,
        )

    @pytest.mark.parametrize(("user", "status"), [(100, "finding"), (99, "ok")])
    def test_it_computes_half_of_its_time(self, judge, user: int, status: str) -> None:
        assert self.working(judge, "user_code", user, 200 - user).status == status

    def test_too_few_samples_say_nothing(self, judge) -> None:
        assert self.working(judge, "user_code", 29, 0).status == "unknown"
        assert self.working(judge, "kernel_work", 0, 39).status == "unknown"

    def test_samples_beside_the_path_do_not_count(self, judge) -> None:
        assert self.working(judge, "user_code", 200, 0, on_path=290).status == "unknown"

    def test_a_kernel_that_reads_is_found(self, judge) -> None:
        found = self.working(judge, "kernel_work", 60, 140)
        assert (found.status, found.subject, found.value, found.gain_ns) == (
            "finding",
            "page cache in read",
            70,
            None,
        )
        assert "io/rereads" in found.explained_by

    def test_page_faults_give_way_to_the_rule_on_new_memory(self, judge) -> None:
        found = self.working(judge, "kernel_work", 60, 140, stack=1, call=None)
        assert (found.subject, found.explained_by[0]) == ("page faults", "memory/new_memory")

    @pytest.mark.parametrize(("kernel", "status"), [(100, "finding"), (99, "ok")])
    def test_the_kernel_takes_half_of_the_time(self, judge, kernel: int, status: str) -> None:
        assert self.working(judge, "kernel_work", 200 - kernel, kernel).status == status
