"""Asks several things of one recording at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from sysdock.analysis.session import Session

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def side_by_side(
    session: Session, work: Callable[[Session, Item], Answer], items: Sequence[Item]
) -> list[Answer]:
    """`work(session, item)` for each item, two at a time; the answers in the order of the items.

    The engine divides a query between all cores, but not its plan, nor what is done with its rows here. The
    other thread has a session of its own. The first error ends it all, and so does Ctrl-C.
    """
    if len(items) < 2:
        return [work(session, item) for item in items]
    # Taken from the end.
    waiting = list(enumerate(items))[::-1]
    answers: dict[int, Answer] = {}
    errors: list[BaseException] = []
    lock = threading.Lock()

    def next_one() -> tuple[int, Item] | None:
        with lock:
            return waiting.pop() if waiting and not errors else None

    def take_turns(mine: Session) -> None:
        while (taken := next_one()) is not None:
            number, item = taken
            try:
                answers[number] = work(mine, item)
            except BaseException as error:
                errors.append(error)

    other = session.for_thread()
    thread = threading.Thread(target=take_turns, args=(other,))
    thread.start()
    try:
        take_turns(session)
        thread.join()
    except BaseException as error:
        errors.append(error)
    finally:
        if errors:
            other.views.connection.interrupt()
        thread.join()
        other.close()
    if errors:
        raise errors[0]
    return [answers[number] for number in range(len(items))]
