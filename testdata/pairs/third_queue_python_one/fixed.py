"""Weighs words in one thread and adds up in another, with a queue of 2,000."""

import queue
import threading

letters = queue.Queue(2000)


def weigh():
    for number in range(25000):
        letters.put(number * 7919 % 1000)
    letters.put(None)


thread = threading.Thread(target=weigh)
thread.start()
total = 0
while (weight := letters.get()) is not None:
    total = (total * 31 + weight) % 1000003
thread.join()
print("total", total)
