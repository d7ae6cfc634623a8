"""First programs: the hierarchical schemes people use, cheap to list, one of which starts the loop (paper, section 2).

The factors are cut into consecutive segments. The inner segments scatter and gather (or reduce to their first device
and broadcast), innermost first and last; in between the outer segments are reduced over, one by one or at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice

from smtsynth.meaning.goals import Aim
from smtsynth.model.program import Collective, Instruction, Program, Span, named

MAX_SCHEMES = 4096
MAX_WORK = 2**16  # schemes times classes: pricing one takes a look at every class


def schemes(aim: Aim, instructions: Sequence[Instruction]) -> Iterator[Program]:
    """Candidate programs for an aim, of the instruction set `instructions`, at most MAX_SCHEMES of them.

    Where factors that aren't reduced lie between, each run of reduced factors is reduced over in turn. Not all of
    them need reach the goal: they want a replay.
    """
    allowed, depth = set(instructions), aim.depth
    runs = _runs([bool(aim.summed >> factor & 1) for factor in range(depth)])
    if runs != [(0, depth)]:
        yield tuple(named(Collective.ALL_REDUCE, Span(start, stop, False), depth) for start, stop in runs)
        return
    count = 0
    listed = chain(_plain(depth), _nested(depth)) if aim.collective is Collective.ALL_REDUCE else _one_way(aim)
    for program in dict.fromkeys(islice(listed, 2 * MAX_SCHEMES)):
        if allowed.issuperset(program):
            yield program
            count += 1
            if count >= min(MAX_SCHEMES, max(8, MAX_WORK >> depth)):
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


def _plain(depth: int) -> Iterator[Program]:
    """The best known first: one AllReduce; one level of hierarchy, at each place; all levels, scattered one by one."""
    cores = [Span(0, core, False) for core in range(depth, 0, -1)]
    for segments in [[], *([Span(core.stop, depth, False)] for core in cores[1:])]:
        yield _around(cores[depth - segments[0].start] if segments else cores[0], segments, depth)
    yield _around(cores[-1], [Span(factor, factor + 1, False) for factor in range(depth - 1, 0, -1)], depth)


def _around(core: Span, segments: Sequence[Span], depth: int) -> Program:
    """The segments scattered, innermost first, the core reduced over, and the segments gathered again."""
    down = [named(Collective.REDUCE_SCATTER, span, depth) for span in segments]
    up = [named(Collective.ALL_GATHER, span, depth) for span in reversed(segments)]
    return (*down, named(Collective.ALL_REDUCE, core, depth), *up)


def _one_way(aim: Aim) -> Iterator[Program]:
    """For the other collectives: segments inwards or outwards one after the other, or an AllReduce, which will do.

    A ReduceScatter scatters over what ends split, innermost segment first, and reduces over the rest after that.
    """
    whole, depth = Span(0, aim.depth, False), aim.depth
    outwards = aim.collective in (Collective.ALL_GATHER, Collective.REDUCE, Collective.REDUCE_SCATTER)
    master = aim.collective in (Collective.REDUCE, Collective.BROADCAST)
    for segments in _compositions(0, depth):
        steps = []
        for start, stop in segments if outwards else reversed(segments):
            split = aim.collective is not Collective.REDUCE_SCATTER or not aim.whole & ((1 << stop) - (1 << start))
            span = Span(start, stop, master and stop < depth)
            steps.append((split, named(aim.collective if split else Collective.ALL_REDUCE, span, depth)))
        yield tuple(one for _, one in sorted(steps, key=lambda step: not step[0]))
    if aim.collective in (Collective.REDUCE_SCATTER, Collective.REDUCE):
        yield (named(Collective.ALL_REDUCE, whole, depth),)


def _compositions(start: int, stop: int) -> Iterator[list[tuple[int, int]]]:
    """Every way to cut the factors start..stop-1 into consecutive segments, innermost first; none for no factors."""
    if start == stop:
        yield []
    for cut in range(start, stop):
        for rest in _compositions(start, cut):
            yield [(cut, stop), *rest]


def _nested(depth: int) -> Iterator[Program]:
    """Inner segments scattered and gathered around reductions of the outer ones; or reduced and broadcast likewise."""

    def over(collective: Collective, start: int, stop: int, master: bool = False) -> Instruction:
        return named(collective, Span(start, stop, master and stop < depth), depth)

    for core in range(depth, 0, -1):
        for segments in _compositions(core, depth):
            down = tuple(over(Collective.REDUCE_SCATTER, *segment) for segment in segments)
            up = tuple(over(Collective.ALL_GATHER, *segment) for segment in reversed(segments))
            for outer in _compositions(0, core):
                yield (*down, *(over(Collective.ALL_REDUCE, *segment) for segment in outer), *up)
            if segments:
                down = tuple(over(Collective.REDUCE, *segment, True) for segment in segments)
                up = tuple(over(Collective.BROADCAST, *segment, True) for segment in reversed(segments))
                yield (*down, over(Collective.ALL_REDUCE, 0, core, True), *up)
