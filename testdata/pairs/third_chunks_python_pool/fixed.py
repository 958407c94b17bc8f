"""Adds up the digits of squares, in two workers, which take 500 numbers at a time."""

from multiprocessing import Pool


def weight(number):
    return sum(int(digit) for digit in str(number * number))


if __name__ == "__main__":
    with Pool(2) as pool:
        print("sum", sum(pool.imap(weight, range(15000), chunksize=500)))
