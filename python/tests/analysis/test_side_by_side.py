"""Two questions at a time: answers in order, filters and summaries for both, errors that end it."""

from __future__ import annotations

import threading

import pytest
from make_recording import RecordingMaker
from sysdock.analysis import Session
from sysdock.analysis.side_by_side import side_by_side
from sysdock.errors import UserError
from sysdock.sentences import say


def test_answers_come_in_the_order_of_the_questions(maker: RecordingMaker, open_session) -> None:
    session = open_session(maker.make())
    both = threading.Barrier(2)

    def ask(mine: Session, number: int) -> tuple[int, int, int]:
        if number < 2:
            # Neither goes on before the other has begun.
            both.wait(timeout=600)
        [(calls,)] = mine.fetch("SELECT sum(calls) FROM file_use")
        return number, calls, threading.get_ident()

    answers = side_by_side(session, ask, range(20))
    assert [number for number, _, _ in answers] == list(range(20))
    assert len({calls for _, calls, _ in answers}) == 1
    assert len({thread for _, _, thread in answers}) == 2


def test_filters_hold_for_both_and_are_told_once(maker: RecordingMaker, open_session) -> None:
    session = open_session(maker.make(), file="/nowhere", call="read")
    both = threading.Barrier(2)

    def ask(mine: Session, _number: int) -> int:
        both.wait(timeout=600)
        [(calls,)] = mine.fetch("SELECT count(*) FROM calls")
        return int(calls)

    assert side_by_side(session, ask, [0, 1]) == [0, 0]
    assert [say(note, "en") for note in session.notes] == [
        "--file /nowhere matches no path in this recording"
    ]


@pytest.mark.parametrize("error", [UserError("wrong"), KeyboardInterrupt()])
@pytest.mark.parametrize("failing", [0, 1, 7])
def test_an_error_of_either_ends_it(
    maker: RecordingMaker, open_session, error: BaseException, failing: int
) -> None:
    session = open_session(maker.make())
    asked = []

    def ask(mine: Session, number: int) -> None:
        asked.append(number)
        if number == failing:
            raise error
        mine.fetch("SELECT count(*) FROM calls")

    with pytest.raises(type(error)):
        side_by_side(session, ask, range(1000))
    assert len(asked) < 1000
    # The session goes on.
    assert session.fetch("SELECT count(*) > 0 FROM calls") == [(True,)]


def test_a_single_question_needs_nobody_beside(maker: RecordingMaker, open_session) -> None:
    session = open_session(maker.make())
    assert side_by_side(session, lambda mine, _: mine is session, [1]) == [True]
    assert side_by_side(session, lambda mine, _: mine is session, []) == []
