"""The unknown program: per step, one collective on one kind of groups, or idle once the goal holds.

Steps are 1..N. An instruction is a collective and a span (which groups), so both are one-hot on their own.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from smtsynth.encode.clauses import Clauses, Literal
from smtsynth.model.program import Collective, Instruction, Program, Span, named


class Exactly(NamedTuple):
    """A program to exclude by itself, where programs that begin with it may be right."""

    program: Program


Blocked = Program | Exactly


@dataclass(frozen=True)
class Choice:
    """Variables of the unknown program of at most `steps` instructions out of `instructions` over `depth` factors."""

    clauses: Clauses
    depth: int
    steps: int
    instructions: tuple[Instruction, ...]

    @property
    def spans(self) -> tuple[Span, ...]:
        """The kinds of groups there are, in a fixed order."""
        return tuple(dict.fromkeys(instruction.span(self.depth) for instruction in self.instructions))

    def idle(self, step: int) -> Literal:
        """Step `step` does nothing."""
        return self.clauses.var("idle", step)

    def on(self, step: int, span: Span) -> Literal:
        """Step `step` works on the groups of `span`."""
        return self.clauses.var("on", step, span)

    def does(self, step: int, collective: Collective) -> Literal:
        """Step `step` runs `collective`."""
        return self.clauses.var("does", step, collective)

    def chosen(self, step: int, instruction: Instruction) -> tuple[Literal, Literal]:
        """The two literals that say that step `step` is `instruction`."""
        return self.on(step, instruction.span(self.depth)), self.does(step, instruction.collective)

    def define(self) -> None:
        """Exactly one instruction of the set, or idle, at every step."""
        clauses = self.clauses
        allowed = set(self.instructions)
        for step in range(1, self.steps + 1):
            with clauses.family(
                "one-instruction", "Every step has exactly one collective on one kind of groups, or is idle."
            ):
                clauses.exactly_one([self.idle(step), *(self.on(step, span) for span in self.spans)])
                clauses.exactly_one([self.idle(step), *(self.does(step, collective) for collective in Collective)])
            with clauses.family("instruction-set", "Only instructions of the set are used."):
                for span in self.spans:
                    for collective in Collective:
                        if named(collective, span, self.depth) not in allowed:
                            clauses.add(-self.on(step, span), -self.does(step, collective))

    def block(self, blocked: Blocked) -> None:
        """No program begins with a prefix, or, `Exactly`, is this one."""
        exactly = isinstance(blocked, Exactly)
        prefix = blocked.program if isinstance(blocked, Exactly) else blocked
        literals = [literal for step, one in enumerate(prefix, 1) for literal in self.chosen(step, one)]
        if exactly and len(prefix) < self.steps:
            literals.append(self.idle(len(prefix) + 1))
        self.clauses.add(*(-literal for literal in literals))

    def decode(self, true: Collection[Literal]) -> Program:
        """The program of a model, given its true variables."""
        program = []
        for step in range(1, self.steps + 1):
            if self.idle(step) in true:
                break
            span = next(span for span in self.spans if self.on(step, span) in true)
            collective = next(collective for collective in Collective if self.does(step, collective) in true)
            program.append(named(collective, span, self.depth))
        return tuple(program)
