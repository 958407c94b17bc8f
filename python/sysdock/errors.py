"""The one error that a user's mistake, or a damaged file, ends in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sysdock.sentences import Fact, Words, fact, languages, say


class UserError(Exception):
    """An error that the user can act on.

    `fact` says what is wrong (lower case, no full stop), `hint` what to do about it, `place` where it is
    (a file, `file:line`, or an option). The command line prints it without a trace-back and exits with 2.
    """

    def __init__(self, fact: str, hint: str | None = None, place: str | None = None, code: str = "") -> None:
        super().__init__(fact)
        self.fact = fact
        self.hint = hint
        self.place = place
        # The code of the sentence in `knowhow/sentences`, if it is one.
        self.code = code

    def __str__(self) -> str:
        """The lines that are printed, without the leading program name."""
        head = f"{self.place}: {self.fact}" if self.place else self.fact
        return f"{head}\n\nhint: {self.hint}" if self.hint else head


def refusal(why: Fact, hint: Fact | None = None, place: str | None = None) -> UserError:
    """The error that a fact is, in the language of errors."""
    lang = languages()[0]
    return UserError(say(why, lang), say(hint, lang) if hint else None, place, why.code)


class NotComputed(UserError):
    """An answer that the engine could not compute from a recording: an overflow, a conversion, a limit.

    A caller with several questions reports it in place of this answer, and goes on.
    """

    @property
    def words(self) -> Words:
        """The text to state in place of the answer."""
        return fact("errors/could_not_be_computed", why=self.fact)

    @property
    def sentence(self) -> Words:
        """The text as a sentence."""
        return fact("errors/this_could_not_be_computed", why=self.fact)


@contextmanager
def interruptions() -> Iterator[None]:
    """Raises KeyboardInterrupt for what the engine's Python layer makes of a SIGINT during a statement."""
    try:
        yield
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
        raise KeyboardInterrupt from None


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """A hint with the nearest known names, or `otherwise` where none is near."""
    import difflib

    known = list(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    # `summary` should find `io/summary`: compare with the last part of an id as well.
    near += [full for full in known if full not in near and full.rsplit("/", 1)[-1] == name]
    return f"did you mean {' or '.join(near)}?" if near else otherwise
