"""A small clause builder: named Boolean variables, families of clauses, DIMACS text in a fixed order.

Everything is built flat and once; solvers get the whole text. Literals are non-zero integers, negative when negated.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

from smtsynth.errors import LimitReached

Literal = int
Clause = tuple[Literal, ...]

MAX_CLAUSES = 3_000_000  # some 600 MB
LOOK_EVERY = 4096  # clauses between looks at the limits


@dataclass
class Clauses:
    """Clauses under construction. `without` names families that are left out (for mutation tests).

    Adding raises LimitReached past `deadline` (of perf_counter) or MAX_CLAUSES.
    """

    without: frozenset[str] = frozenset()
    names: dict[Hashable, int] = field(default_factory=dict)
    clauses: dict[Clause, None] = field(default_factory=dict)
    families: dict[str, str] = field(default_factory=dict)
    count: int = 0
    seen: set[Hashable] = field(default_factory=set)
    deadline: float | None = None
    _guard: Clause = ()
    _skip: bool = False
    _scope: tuple[Hashable, ...] = ()

    def var(self, *name: Hashable) -> Literal:
        """The variable of this name in the present scope, made at first use."""
        name = self._scope + name
        found = self.names.get(name)
        if found is None:
            found = self.names[name] = self.fresh()
        return found

    def first(self, *name: Hashable) -> bool:
        """Whether this is the first time of asking under this name, here: what is defined already need not be again."""
        key = (self._scope, self._guard, self._skip, name)
        before = len(self.seen)
        self.seen.add(key)
        return len(self.seen) > before

    def fresh(self) -> Literal:
        """A variable without a name."""
        self.count += 1
        return self.count

    @contextmanager
    def family(self, name: str, sentence: str) -> Iterator[None]:
        """Clauses added inside belong to the family `name`, which `sentence` says in English."""
        self.families[name] = sentence
        before, self._skip = self._skip, self._skip or name in self.without
        try:
            yield
        finally:
            self._skip = before

    @contextmanager
    def when(self, *literals: Literal) -> Iterator[None]:
        """Clauses added inside hold only where all `literals` do."""
        before, self._guard = self._guard, self._guard + tuple(-literal for literal in literals)
        try:
            yield
        finally:
            self._guard = before

    @contextmanager
    def scope(self, name: Hashable) -> Iterator[None]:
        """Variables named inside are apart from those of the same name outside."""
        before, self._scope = self._scope, (*self._scope, name)
        try:
            yield
        finally:
            self._scope = before

    def add(self, *literals: Literal) -> None:
        """At least one of `literals` holds. Repeated literals are joined; tautologies and repeated clauses dropped."""
        if self._skip:
            return
        clause = tuple(sorted(set(literals + self._guard), key=abs))
        for one, two in zip(clause, clause[1:], strict=False):
            if one == -two:
                return
        self.clauses[clause] = None
        if len(self.clauses) % LOOK_EVERY == 0:
            self._look()

    def _look(self) -> None:
        if len(self.clauses) > MAX_CLAUSES:
            raise LimitReached(f"the constraints need more than {MAX_CLAUSES} clauses")
        if self.deadline is not None and perf_counter() > self.deadline:
            raise LimitReached("the time limit was reached")

    def imply(self, premises: Iterable[Literal], *conclusion: Literal) -> None:
        """If all `premises` hold, one of `conclusion` does."""
        self.add(*(-premise for premise in premises), *conclusion)

    def equal(self, premises: Sequence[Literal], one: Literal, two: Literal) -> None:
        """If all `premises` hold, `one` and `two` are equal."""
        self.imply(premises, -one, two)
        self.imply(premises, one, -two)

    def at_most_one(self, literals: Sequence[Literal]) -> None:
        """At most one of `literals` holds (pairwise when few, else a sequential counter)."""
        if len(literals) <= 5:
            for i, one in enumerate(literals):
                for two in literals[i + 1 :]:
                    self.add(-one, -two)
            return
        seen = literals[0]
        for literal in literals[1:]:
            self.add(-seen, -literal)
            now = self.fresh()
            self.add(-seen, now)
            self.add(-literal, now)
            seen = now

    def exactly_one(self, literals: Sequence[Literal]) -> None:
        """Exactly one of `literals` holds."""
        self.add(*literals)
        self.at_most_one(literals)

    def dimacs(self) -> str:
        """The clauses as DIMACS CNF text, in the order they were added."""
        lines = [f"p cnf {self.count} {len(self.clauses)}"]
        lines.extend(" ".join(map(str, clause)) + " 0" for clause in self.clauses)
        return "\n".join(lines) + "\n"
