"""The encodings against the interpreters: exhaustively on tiny sizes, for every bound, and with families dropped."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from random import Random

import pytest
from conftest import problem
from pysat.solvers import Solver

from smtsynth import Level, System, lower
from smtsynth.cost.alphabeta import AlphaBeta
from smtsynth.cost.prices import Prices
from smtsynth.encode import concrete, placement, reduced
from smtsynth.encode.choice import Choice
from smtsynth.encode.clauses import Clauses
from smtsynth.encode.costs import less_than
from smtsynth.meaning import classes, rules
from smtsynth.meaning.goals import target
from smtsynth.model.placement import axes_of, placements
from smtsynth.model.program import Collective, Instruction, Program, instruction_set
from smtsynth.search.enumerate import StateGraph, cheapest_programs
from smtsynth.solvers.models import all_models
from smtsynth.solvers.outcome import Answer
from smtsynth.solvers.sat import solve_dimacs

Encode = Callable[..., Choice]


def prices_of(*sizes: int, payload: int = 2**20) -> Prices:
    """Prices of a reduction over all devices of a system of these sizes, slow outside."""
    levels = [Level(f"l{n}", size, Fraction(10**9 * 5**n), Fraction(3, 10 ** (6 + n))) for n, size in enumerate(sizes)]
    given = problem(System(levels), (System(levels).devices,), (0,), payload)
    return Prices(AlphaBeta(), lower(given, [sizes]), Fraction(payload))


def programs(choice: Choice) -> list[Program]:
    """All programs that the constraints admit, each once."""
    steps = range(1, choice.steps + 1)
    literals = [choice.idle(step) for step in steps]
    literals += [choice.on(step, span) for step in steps for span in choice.spans]
    literals += [choice.does(step, collective) for step in steps for collective in Collective]
    found = [choice.decode(model) for model in all_models(choice.clauses.dimacs(), literals)]
    assert len(set(found)) == len(found)
    return found


def answer(choice: Choice) -> Answer:
    return solve_dimacs(choice.clauses.dimacs()).answer


@pytest.mark.parametrize("instructions", ["p2", "full"])
def test_solver_counts_the_programs_of_two_factors(instructions: str) -> None:
    prices = prices_of(2, 2)
    choice = concrete.encode(prices, instruction_set(2, instructions), 5, None)
    graph = StateGraph(target((2, 2)), instructions)
    found = programs(choice)
    assert len(found) == {"p2": 47, "full": 93}[instructions]
    assert set(found) == {program for _, program in cheapest_programs(graph, prices, 5)}


CASES = [
    *((sizes, steps, 100) for sizes in [(2,), (3,), (4,)] for steps in (1, 2, 3)),
    *(((2, 2), steps, 12) for steps in (1, 2, 3)),
    pytest.param((2, 2), 3, 100, marks=pytest.mark.full),
]


def check_every_bound(encode: Encode, sizes: tuple[int, ...], steps: int, most: int) -> None:
    """For every bound that makes a difference (or `most`, seeded): satisfiable exactly where a program is cheaper."""
    prices = prices_of(*sizes)
    instructions = instruction_set(len(sizes))
    graph = StateGraph(target(sizes))
    costs = sorted({cost for cost, _ in cheapest_programs(graph, prices, steps)})
    bounds = sorted({bound for cost in costs for bound in (cost, cost + 1)})
    for bound in Random(7).sample(bounds, min(most, len(bounds))):
        choice = encode(prices, instructions, steps, bound)
        wanted = Answer.SAT if any(cost < bound for cost in costs) else Answer.UNSAT
        assert answer(choice) == wanted, f"bound {bound} over {sizes} in {steps} steps"
        if bound not in costs:
            continue
        exact = {program for cost, program in cheapest_programs(graph, prices, steps) if cost < bound}
        if encode is concrete.encode:
            assert set(programs(choice)) == exact
        else:
            missing = exact - set(programs(choice))
            assert not missing, f"the reduced encoding refutes {missing}"


@pytest.mark.parametrize(("sizes", "steps", "most"), CASES)
def test_concrete_is_the_interpreter_for_every_bound(sizes: tuple[int, ...], steps: int, most: int) -> None:
    check_every_bound(concrete.encode, sizes, steps, most)


@pytest.mark.parametrize(("sizes", "steps", "most"), CASES)
def test_reduced_never_refutes_what_the_interpreter_has(sizes: tuple[int, ...], steps: int, most: int) -> None:
    check_every_bound(reduced.encode, sizes, steps, most)


def families(encode: Encode) -> list[str]:
    return list(encode(prices_of(2, 2), instruction_set(2), 2, 10**9, [], []).clauses.families)


# Without blocked prefixes this family is empty; test_blocked_prefixes_are_excluded is its test.
NOT_NEEDED = {"blocked"}


@pytest.mark.parametrize("family", sorted(set(families(concrete.encode)) - NOT_NEEDED))
def test_every_family_of_the_concrete_encoding_is_needed(family: str) -> None:
    assert _caught(concrete.encode, frozenset([family])), f"no test fails without {family}"


@pytest.mark.parametrize("family", sorted(set(families(reduced.encode)) - NOT_NEEDED))
def test_every_family_of_the_reduced_encoding_is_needed(family: str) -> None:
    assert _caught(reduced.encode, frozenset([family])), f"no test fails without {family}"


@cache
def _whole(encode: Encode, sizes: tuple[int, ...], steps: int, name: str) -> frozenset[Program]:
    """The programs that all constraints admit."""
    return frozenset(programs(encode(prices_of(*sizes), instruction_set(len(sizes), name), steps, None)))


def _caught(encode: Encode, without: frozenset[str]) -> bool:
    """Whether some check of this file notices that these families are gone."""
    if _wrong_steps(encode, without):
        return True
    for sizes, steps, name in [((2,), 2, "full"), ((2, 2), 3, "p2"), ((2, 2), 3, "full")]:
        prices, instructions = prices_of(*sizes), instruction_set(len(sizes), name)
        part = encode(prices, instructions, steps, None, clauses=Clauses(without=without))
        if _some_other(part, _whole(encode, sizes, steps, name)):
            return True
        costs = [cost for cost, _ in cheapest_programs(StateGraph(target(sizes), name), prices, steps)]
        if answer(encode(prices, instructions, steps, min(costs), clauses=Clauses(without=without))) is Answer.SAT:
            return True
    return False


@pytest.mark.parametrize("encode", [concrete.encode, reduced.encode])
def test_one_step_is_the_interpreters_from_any_state(encode: Encode) -> None:
    assert not _wrong_steps(encode, frozenset())


def _wrong_steps(encode: Encode, without: frozenset[str]) -> bool:
    """Whether one step of the constraints, from some seeded state, differs from the interpreter's."""
    instructions = instruction_set(2)
    loose = Clauses(without=without | {"start", "goal"})
    choice = encode(prices_of(2, 2), instructions, 1, None, clauses=loose)
    ask = questions(choice.clauses)
    seeded = Random(5)
    for _ in range(300):
        state, literals, after = _random(encode, seeded, choice)
        for instruction in instructions:
            wanted = after(instruction)
            given = [*state, *choice.chosen(1, instruction), -choice.idle(1)]
            if wanted is None:
                if ask(given):
                    return True
                continue
            if not ask([*given, *(literal if literal in wanted else -literal for literal in literals)]):
                return True
            if any(ask([*given, -literal if literal in wanted else literal]) for literal in seeded.sample(literals, 3)):
                return True
    return False


def questions(clauses: Clauses) -> Callable[[list[int]], bool]:
    """A function that says whether the clauses are satisfiable together with some literals."""
    solver = Solver("cadical195", bootstrap_with=list(clauses.clauses))
    return lambda literals: bool(solver.solve(assumptions=literals))


After = Callable[[Instruction], set[int] | None]


def _random(encode: Encode, seeded: Random, choice: Choice) -> tuple[list[int], list[int], After]:
    """A seeded state as literals at time 0, the literals at time 1, and the interpreter's step on it."""
    return (_random_matrices if encode is concrete.encode else _random_classes)(seeded, choice)


def _random_matrices(seeded: Random, choice: Choice) -> tuple[list[int], list[int], After]:
    matrices = concrete.Matrices(choice, (2, 2), range(4))
    rows, own = seeded.choice([0b1111, 0b0111, 0b0011, 0b0001]), seeded.random() < 0.6
    state = []
    for device in range(4):
        held = rows if seeded.random() < 0.7 else seeded.randrange(16)
        contributors = 1 << device if own and seeded.random() < 0.8 else seeded.randrange(1, 16)
        state.append(rules.blocks([(held, contributors)] if held else []))

    def bits(time: int, states: rules.State) -> dict[int, bool]:
        return {
            matrices.bit(time, d, c, f): any(r >> c & 1 and b >> f & 1 for r, b in states[d])
            for d, c, f in product(range(4), repeat=3)
        }

    def after(instruction: Instruction) -> set[int] | None:
        result = rules.step(tuple(state), (2, 2), instruction)
        return None if isinstance(result, rules.Failure) else {bit for bit, on in bits(1, result).items() if on}

    now = bits(0, tuple(state))
    return [bit if on else -bit for bit, on in now.items()], list(bits(1, tuple(state))), after


def _random_classes(seeded: Random, choice: Choice) -> tuple[list[int], list[int], After]:
    variables = reduced.Classes(choice)
    usual = classes.ClassState(True, seeded.randrange(4), seeded.randrange(4))
    usual = classes.EMPTY if seeded.random() < 0.2 else usual
    state = []
    for _ in range(4):
        other = classes.ClassState(True, seeded.randrange(4), seeded.randrange(4))
        state.append(usual if seeded.random() < 0.7 else classes.EMPTY if seeded.random() < 0.4 else other)

    def bits(time: int, states: classes.States) -> dict[int, bool]:
        result = {variables.held(time, kind): one.held for kind, one in enumerate(states)}
        for kind, factor in product(range(4), range(2)):
            result[variables.rows(time, kind, factor)] = bool(states[kind].rows >> factor & 1)
            result[variables.contributors(time, kind, factor)] = bool(states[kind].contributors >> factor & 1)
        return result

    def after(instruction: Instruction) -> set[int] | None:
        groups = classes.shape(instruction, 2)
        result = classes.step(tuple(state), instruction.collective, groups)
        if result is None and instruction.collective is Collective.BROADCAST:
            result = _broadcast_without_effect(tuple(state), groups)
        return None if result is None else {bit for bit, on in bits(1, result).items() if on}

    now = bits(0, tuple(state))
    return [bit if on else -bit for bit, on in now.items()], list(bits(1, tuple(state))), after


def _broadcast_without_effect(state: classes.States, groups: classes.Shape) -> classes.States | None:
    """The reduced encoding also admits a broadcast to groups whose members all hold the same."""
    after = list(state)
    for root in groups.roots:
        kinds = groups.members(root)
        if len({state[kind] for kind in kinds}) == 1:
            held = state[root]
            if not held.held or groups.joined & ~(held.rows & held.contributors):
                return None
            continue
        result = classes.on_group(Collective.BROADCAST, groups.joined, [state[kind] for kind in kinds])
        if result is None:
            return None
        for kind, new in zip(kinds, result, strict=True):
            after[kind] = new
    return tuple(after)


def _some_other(part: Choice, whole: frozenset[Program]) -> bool:
    """Whether `part` has a model that `whole` has not: a program, or a step that does two things at once."""
    ask = questions(part.clauses)
    for step in range(1, part.steps + 1):
        does = [part.does(step, collective) for collective in Collective]
        on = [part.on(step, span) for span in part.spans]
        if any(ask([one, two]) for several in (does, on) for one, two in combinations(several, 2)):
            return True
        if step < part.steps and ask([part.idle(step), -part.idle(step + 1)]):
            return True
    return set(programs(part)) != whole


def test_blocked_prefixes_are_excluded() -> None:
    prices = prices_of(2, 2)
    graph = StateGraph(target((2, 2)))
    every = [program for _, program in cheapest_programs(graph, prices, 3)]
    prefix = every[0][:1]
    choice = concrete.encode(prices, instruction_set(2), 3, None, blocked=[prefix])
    assert set(programs(choice)) == {program for program in every if program[:1] != prefix}


@pytest.mark.parametrize("steps", [1, 2, *(pytest.param(steps, marks=pytest.mark.full) for steps in (3, 4, 5))])
def test_goal_over_two_rows_needs_two_steps(steps: int) -> None:
    """Columns of a several-axis reduction: unsatisfiable at one step, satisfiable from two on."""
    system = System([Level("node", 2, "1 GB/s"), Level("gpu", 4, "5 GB/s")])
    given = problem(system, (2, 4), (1,), 2**20)
    lowering = lower(given, [[1, 2], [2, 2]], "columns")
    assert lowering.sizes == (2, 2, 2)
    prices = Prices(AlphaBeta(), lowering, Fraction(2**20))
    for encode in (concrete.encode, reduced.encode):
        wanted = Answer.UNSAT if steps == 1 else Answer.SAT
        assert answer(encode(prices, instruction_set(3), steps, None)) == wanted


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_less_than_is_exact(width: int) -> None:
    for bound in range(1, 2**width + 2):
        clauses = Clauses()
        bits = [clauses.var("bit", number) for number in range(width)]
        clauses.add(*bits, -bits[0])  # so that every bit is there
        less_than(clauses, bits, bound)
        found = {sum((bit in model) << n for n, bit in enumerate(bits)) for model in all_models(clauses.dimacs(), bits)}
        assert found == {number for number in range(2**width) if number < bound}


@pytest.mark.parametrize(
    ("levels", "sizes"),
    [
        ((4, 16), (4, 16)),
        ((4, 16), (8, 2, 4)),
        ((4, 16), (16, 2, 2)),
        ((6, 6), (9, 4)),
        ((3, 1, 4), (2, 6)),
        ((1,), (1,)),
    ],
)
def test_placement_constraints_have_exactly_the_placements(levels: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    system = System([Level(f"l{n}", size, 1) for n, size in enumerate(levels)])
    axes = axes_of({f"a{n}": size for n, size in enumerate(sizes)})
    matrix = placement.encode(axes, system)
    found = [matrix.decode(model) for model in all_models(matrix.clauses.dimacs(), matrix.literals)]
    assert sorted(found) == [one.matrix for one in placements(system, axes)]
    for one in placements(system, axes):
        matrix.block(one)
    assert solve_dimacs(matrix.clauses.dimacs()).answer is Answer.UNSAT


def test_no_clause_is_a_tautology_or_repeated() -> None:
    choice = reduced.encode(prices_of(2, 2), instruction_set(2), 3, 10**7)
    clauses = list(choice.clauses.clauses)
    assert all(len({abs(literal) for literal in clause}) == len(clause) for clause in clauses)
    again = reduced.encode(prices_of(2, 2), instruction_set(2), 3, 10**7)
    assert again.clauses.dimacs() == choice.clauses.dimacs()
