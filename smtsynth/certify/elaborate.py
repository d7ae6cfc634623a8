"""From a solver's proof to one that the small checker takes: only the lemmas needed, each with the hints needed.

The proof is gone through from its end. A lemma that is needed keeps those of its hints (as the solver gave them) that
lead to the conflict; where it has none, or they don't lead there, unit propagation finds them. What they name is
needed in turn. Nothing here has to be trusted: the result is checked.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from smtsynth.certify.propagation import Propagation
from smtsynth.errors import InternalError

Literals = Sequence[int]
Lemma = tuple[Literals, list[int]]  # literals; hints, by clause number

EVERY = 2000  # lemmas between progress lines


@dataclass
class Proof:
    """A solver's proof over the clauses 1..`originals`; lemmas are numbered on from there.

    `events`: numbers in the order of the proof, negative where a clause is dropped. `hints` by number, where given.
    """

    clauses: list[Literals]
    originals: int
    hints: dict[int, array[int]] = field(default_factory=dict)
    events: array[int] = field(default_factory=lambda: array("i"))

    def add(self, literals: Literals) -> int:
        """The next lemma; returns its number."""
        self.clauses.append(literals)
        self.events.append(len(self.clauses) - 1)
        return len(self.clauses) - 1


def read_lrat(clauses: Iterable[Literals], lines: Iterable[str]) -> Proof:
    """A proof with hints, as CaDiCaL writes it.

    It numbers clauses as they come, and simplified ones between the originals: the numbers that no lemma has are
    the originals'.
    """
    proof = Proof([(), *clauses], 0)
    proof.originals = len(proof.clauses) - 1
    names, dropped = array("q"), []
    for line in lines:
        words = line.split()
        if words[1] == "d":
            dropped.append((len(proof.events), array("q", map(int, words[2:-1]))))
            continue
        values = array("q", map(int, words))
        zero = values.index(0)
        names.append(values[0])
        proof.hints[proof.add(values[1:zero])] = values[zero + 1 : -1]
        if zero == 1:
            break
    taken = set(names)
    free = (name for name in range(1, max(names, default=0) + proof.originals + 1) if name not in taken)
    number = dict(zip(free, range(1, proof.originals + 1), strict=False))
    number.update(zip(names, range(proof.originals + 1, len(proof.clauses)), strict=True))
    for hints in proof.hints.values():
        hints[:] = array("q", [number.get(name, 0) for name in hints])
    events = array("i")
    at = 0
    for place, those in dropped:
        events.extend(proof.events[at:place])
        events.extend(-number[name] for name in those if name in number)
        at = place
    proof.events = events + proof.events[at:]
    return proof


def read_drup(clauses: Iterable[Literals], lines: Iterable[str]) -> Proof:
    """A proof without hints: lemmas, and "d" before those that are dropped."""
    proof = Proof([(), *clauses], 0)
    proof.originals = len(proof.clauses) - 1
    known: dict[tuple[int, ...], list[int]] = {}
    for number, clause in enumerate(proof.clauses):
        known.setdefault(tuple(sorted(clause)), []).append(number)
    for line in lines:
        words = line.split()
        drop = words[0] == "d"
        literals = array("i", map(int, words[drop:-1]))
        same = known.setdefault(tuple(sorted(literals)), [])
        if not drop:
            same.append(proof.add(literals))
            if not literals:
                break
        elif same:
            proof.events.append(-same.pop())
    return proof


def elaborate(proof: Proof, progress: Callable[[str], None] = lambda line: None) -> list[Lemma]:
    """The lemmas needed for the empty clause, in order, numbered on from the originals, each with its hints.

    Raises InternalError where the proof doesn't end in the empty clause or a lemma does not follow.
    """
    clauses, total = proof.clauses, len(proof.clauses)
    for number in range(1, proof.originals + 1):
        if not clauses[number]:
            return [((), [number])]
    if not proof.events or clauses[proof.events[-1]]:
        raise InternalError("the solver's proof does not end in the empty clause")
    alive, needed = bytearray([1]) * total, bytearray(total)
    for event in proof.events:
        alive[abs(event)] = event > 0
    needed[proof.events[-1]] = 1
    chains: dict[int, list[int]] = {}
    search: Propagation | None = None
    for place, event in enumerate(reversed(proof.events)):
        number = abs(event)
        alive[number] = event < 0
        if search is not None:
            (search.attach if event < 0 else search.detach)(number)
        if event < 0 or not needed[number]:
            continue
        chain = follow(clauses, clauses[number], proof.hints[number]) if number in proof.hints else None
        if chain is None:
            if search is None:
                search = _search(proof, alive, needed)
            chain = follow(clauses, clauses[number], search.hints(clauses[number]) or ())
        if chain is None:
            raise InternalError(f"lemma {number - proof.originals} of the solver's proof does not follow")
        for hint in chain:
            needed[hint] = 1
            if search is not None:
                search.prefer(hint)
        chains[number] = chain
        if len(chains) % EVERY == 0:
            progress(f"{len(chains)} lemmas kept, {len(proof.events) - place} lines of the proof left")
    kept = sorted(chains)
    name = {number: proof.originals + at for at, number in enumerate(kept, 1)}
    return [(clauses[number], [name.get(hint, hint) for hint in chains[number]]) for number in kept]


def _search(proof: Proof, alive: bytearray, needed: bytearray) -> Propagation:
    variables = max((abs(literal) for clause in proof.clauses for literal in clause), default=0)
    search = Propagation(variables, proof.clauses)
    for number in range(1, len(proof.clauses)):
        if needed[number]:
            search.prefer(number)
        if alive[number]:
            search.attach(number)
    return search


def follow(clauses: Sequence[Literals], lemma: Literals, hints: Iterable[int]) -> list[int] | None:
    """Those of `hints` that lead from the negation of `lemma` to a conflict, or None where they don't lead there."""
    false: dict[int, int] = dict.fromkeys(lemma, 0)  # literal: the hint that made it false
    for hint in hints:
        left = [literal for literal in clauses[hint] if literal not in false]
        if len(left) > 1 or not hint:
            return None
        if not left:
            return _used(clauses, false, hint)
        if -left[0] not in false:
            false[-left[0]] = hint
    return None


def _used(clauses: Sequence[Literals], false: dict[int, int], conflict: int) -> list[int]:
    chain, seen = [conflict], set(clauses[conflict])
    for literal, hint in reversed(false.items()):
        if hint and literal in seen:
            chain.append(hint)
            seen.update(clauses[hint])
    return chain[::-1]


def lrat(lemmas: Iterable[Lemma], originals: int) -> Iterator[str]:
    """The lines of the proof for the checker."""
    for number, (literals, hints) in enumerate(lemmas, originals + 1):
        yield f"{number} {' '.join(map(str, literals))}{' ' if literals else ''}0 {' '.join(map(str, hints))} 0\n"


def drup(lemmas: Iterable[Lemma]) -> Iterator[str]:
    """The same proof without hints, for checkers that find them on their own."""
    for literals, _ in lemmas:
        yield " ".join(map(str, [*literals, 0])) + "\n"
