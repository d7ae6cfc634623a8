"""First programs: the hierarchical schemes people use, cheap to list, one of which starts the loop (paper, section 2).

The factors are cut into consecutive segments. The innermost segments scatter and gather (or reduce and broadcast),
innermost first and last; the outermost is reduced over in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smtsynth.model.program import Collective, Instruction, Program, Span, canonical, named

MAX_SCHEMES = 4096


def schemes(depth: int, reduced: Sequence[bool], instructions: Sequence[Instruction]) -> Iterator[Program]:
    """Candidate programs over `depth` factors of the instruction set `instructions`, at most MAX_SCHEMES of them.

    Where factors that aren't reduced lie between, each run of reduced factors is reduced over in turn.
    """
    allowed = set(instructions)
    runs = _runs(reduced)
    if len(runs) != 1 or runs[0] != (0, depth):
        yield tuple(named(Collective.ALL_REDUCE, Span(start, stop, False), depth) for start, stop in runs)
        return
    count = 0
    for program in _nested(depth, depth, False):
        if all(canonical(one, depth) in allowed for one in program):
            yield program
            count += 1
            if count >= MAX_SCHEMES:
                return


def _runs(reduced: Sequence[bool]) -> list[tuple[int, int]]:
    """Maximal runs [start, stop) of reduced factors."""
    runs: list[tuple[int, int]] = []
    for factor, flag in enumerate(reduced):
        if flag and runs and runs[-1][1] == factor:
            runs[-1] = (runs[-1][0], factor + 1)
        elif flag:
            runs.append((factor, factor + 1))
    return runs


def _nested(stop: int, depth: int, masters: bool) -> Iterator[Program]:
    """Programs that reduce over factors 0..stop-1, where factors from `stop` on are done."""
    yield (named(Collective.ALL_REDUCE, Span(0, stop, masters), depth),)
    for start in range(1, stop):
        span = Span(start, stop, masters)
        for rest in _nested(start, depth, masters):
            yield (named(Collective.REDUCE_SCATTER, span, depth), *rest, named(Collective.ALL_GATHER, span, depth))
        for rest in _nested(start, depth, True):
            yield (named(Collective.REDUCE, span, depth), *rest, named(Collective.BROADCAST, span, depth))
