"""Averages 25 windows of a long measurement with two workers, which have it from their parent."""

import array
import multiprocessing

LENGTH, WINDOW, TASKS = 2_000_000, 500, 25
measurement = array.array("d", (n % 1009 for n in range(1009))) * (LENGTH // 1009)


def average(start):
    return sum(measurement[start : start + WINDOW]) / WINDOW


if __name__ == "__main__":
    tasks = (n * WINDOW for n in range(TASKS))
    with multiprocessing.get_context("fork").Pool(2) as workers:
        print(f"{sum(workers.imap(average, tasks)):.3f}")
