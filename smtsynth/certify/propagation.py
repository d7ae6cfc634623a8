"""Unit propagation over a changing set of clauses: finds the hints of lemmas that come without.

Two watched literals per clause, in two kinds of lists: clauses that the proof is known to need ("core") are
propagated to the end before any other is looked at, so that few clauses enter the proof (Wetzler, Heule and Hunt, SAT
2014). What follows without assumptions stays assigned between calls, until a clause that it rests on goes.
"""

from __future__ import annotations

from collections.abc import Sequence


class Propagation:
    """Clauses by number (from 1; number 0 stands for an assumption), in force from `attach` until `detach`."""

    def __init__(self, variables: int, clauses: Sequence[Sequence[int]]) -> None:
        # The literal 0 is false from the start and pads clauses, so that each has two literals to watch.
        self._clauses = [[*clause, 0, 0] if len(clause) < 2 else list(clause) for clause in clauses]
        self._alive = bytearray(len(clauses))
        self._core = bytearray(len(clauses))
        self._false = bytearray(2 * variables + 1)  # by literal; negative ones count from the end
        self._reason = [0] * len(self._false)  # by false literal: the clause that made it so
        self._watches: list[list[list[int]]] = [[[] for _ in self._false] for _ in range(2)]  # others', core's
        self._trail: list[int] = []  # the false literals in the order they became so
        self._fixed: int | None = None  # how many of them hold without assumptions; None where that wants finding

    def attach(self, number: int) -> None:
        """The clause is in force from now on."""
        clause, false = self._clauses[number], self._false
        self._alive[number] = 1
        clause.sort(key=lambda literal: 2 * false[literal] - false[-literal])  # true literals first, false ones last
        if false[clause[1]] and not false[-clause[0]]:
            self._fixed = None
        for literal in clause[:2]:
            self._watches[self._core[number]][literal].append(number)

    def detach(self, number: int) -> None:
        """The clause is no longer in force."""
        self._alive[number] = 0  # watch lists drop it when they meet it
        literal = -self._clauses[number][0]
        if self._false[literal] and self._reason[literal] == number:
            self._fixed = None

    def prefer(self, number: int) -> None:
        """The proof needs this clause, so it may be used freely."""
        self._core[number] = 1

    def hints(self, lemma: Sequence[int]) -> list[int] | None:
        """Clauses that become unit one after the other, up to a conflict, once all of `lemma` is false.

        None where there is no conflict. More than needed may be among them: what holds of `lemma` without assumptions.
        """
        conflict = None
        if self._fixed is None:
            self._undo(0)
            self._assign(0, 0)
            conflict = self._propagate(0)
            self._fixed = None if conflict is not None else len(self._trail)
        if self._fixed is not None:
            for literal in lemma:
                if self._false[-literal] and conflict is None:
                    conflict = self._reason[-literal]
                elif not self._false[literal]:
                    self._assign(literal, 0)
            if conflict is None:
                conflict = self._propagate(self._fixed)
        found = None if conflict is None else self._explain(conflict)
        if self._fixed is not None:
            self._undo(self._fixed)
        return found

    def _assign(self, literal: int, reason: int) -> None:
        self._false[literal] = 1
        self._reason[literal] = reason
        self._trail.append(literal)

    def _undo(self, length: int) -> None:
        for literal in self._trail[length:]:
            self._false[literal] = 0
        del self._trail[length:]

    def _explain(self, conflict: int) -> list[int]:
        """The reasons behind a conflict, in the order of the trail, and the conflict itself."""
        chain, seen = [conflict], set(self._clauses[conflict])
        for literal in reversed(self._trail):
            reason = self._reason[literal]
            if reason and literal in seen:
                chain.append(reason)
                seen.update(self._clauses[reason])
        return chain[::-1]

    def _propagate(self, start: int) -> int | None:
        """Propagate the trail from place `start` on; return a clause that is false, or None."""
        trail, false, alive, core = self._trail, self._false, self._alive, self._core
        clauses, reasons = self._clauses, self._reason
        others, cores = self._watches
        heads = [start, start]
        while True:
            kind = 1 if heads[1] < len(trail) else 0
            if heads[kind] >= len(trail):
                return None
            lost = trail[heads[kind]]
            heads[kind] += 1
            watches = self._watches[kind]
            numbers = watches[lost]
            kept = watches[lost] = []
            for place, number in enumerate(numbers):
                if not alive[number]:
                    continue
                clause = clauses[number]
                first = clause[0]
                if first == lost:
                    first = clause[0] = clause[1]
                    clause[1] = lost
                target = cores if core[number] else others
                if false[-first]:
                    target[lost].append(number)
                    continue
                for other in range(2, len(clause)):
                    literal = clause[other]
                    if not false[literal]:
                        clause[1] = literal
                        clause[other] = lost
                        target[literal].append(number)
                        break
                else:
                    target[lost].append(number)
                    if false[first]:
                        kept.extend(numbers[place + 1 :])
                        return number
                    false[-first] = 1
                    reasons[-first] = number
                    trail.append(-first)
