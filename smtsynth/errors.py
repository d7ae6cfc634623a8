"""Errors that a user can mend; each message is one line: where, what is wrong, what was expected."""

from __future__ import annotations


class SmtsynthError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(SmtsynthError):
    """Bad input: a file, key, argument or value that breaks the rules of the model."""

    def __init__(self, what: str, *, where: str | None = None, expected: str | None = None) -> None:
        self.what = " ".join(what.split())
        self.where = where
        self.expected = expected
        text = f"{where}: {self.what}" if where else self.what
        super().__init__(f"{text}; expected {expected}" if expected else text)

    def at(self, where: str) -> InputError:
        """The same error with `where` put in front of the place it already names."""
        place = f"{where}: {self.where}" if self.where else where
        return InputError(self.what, where=place, expected=self.expected)


def check_type(value: object, kinds: type | tuple[type, ...], where: str, expected: str) -> None:
    """InputError unless `value` is of one of these types."""
    if not isinstance(value, kinds):
        raise InputError(f"is {repr(value)[:40]}", where=where, expected=expected)


class InternalError(SmtsynthError):
    """Two of our own answers disagree: a bug of ours, reported as one and never hidden."""


class LimitReached(SmtsynthError):
    """A stated limit (time, memory, size) ended the work before an answer."""


class VerificationError(SmtsynthError):
    """A schedule that is not right; the message is the reason of its verdict, in one line."""

    def __init__(self, reason: str, verdict: object = None) -> None:
        super().__init__(reason)
        self.verdict = verdict
