"""Gives jobs to a thread, which wakes the main loop when a result is there."""

import os
import queue
import select
import threading

jobs, results = queue.Queue(), queue.Queue()
wake_end, waker = os.pipe()


def work():
    while (job := jobs.get()) is not None:
        results.put(job * job)
        os.write(waker, b".")


threading.Thread(target=work).start()
total = 0
for number in range(12):
    jobs.put(number)
    done = False
    while not done:
        select.select([wake_end], [], [])
        os.read(wake_end, 64)
        while not results.empty():
            total += results.get()
            done = True
jobs.put(None)
print("total", total)
