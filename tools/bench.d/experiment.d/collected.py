"""A program that makes garbage in cycles: `collected.py KIND THRESHOLD`; 0: the collector is off."""

import gc
import sys


class Node:
    """Refers to itself, so only the collector frees it."""

    def __init__(self) -> None:
        self.me = self


def make(kind: str) -> object:
    """Something in a cycle."""
    if kind == "objects":
        return Node()
    holder: list | dict = [] if kind == "lists" else {}
    if isinstance(holder, list):
        holder.append(holder)
    else:
        holder["me"] = holder
    return holder


gc.disable()
if threshold := int(sys.argv[2]):
    gc.enable()
    gc.set_threshold(threshold, 5, 5)
kept = [make(sys.argv[1]) for _ in range(250_000)]
