"""Gives jobs to a thread and watches a console. select() cannot take a queue, so it has a timeout."""

import os
import queue
import select
import threading

jobs, results = queue.Queue(), queue.Queue()
wake_end, waker = os.pipe()


def work():
    while (job := jobs.get()) is not None:
        results.put(job * job)


threading.Thread(target=work).start()
total = 0
for number in range(12):
    jobs.put(number)
    done = False
    while not done:
        select.select([wake_end], [], [], 0.05)  # commands of the console would come here
        while not results.empty():
            total += results.get()
            done = True
jobs.put(None)
print("total", total)
