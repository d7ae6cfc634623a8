"""Worked numbers of the model, section 6, in whole nanoseconds."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import pytest

from smtsynth.cost.alphabeta import AlphaBeta, simulate_program, simulate_schedule
from smtsynth.cost.bound import any_schedule_bound
from smtsynth.cost.interface import Bottleneck
from smtsynth.meaning.rules import Failure, State, apply, complete, initial, instruction_groups
from smtsynth.model.lowering import Lowering, lower
from smtsynth.model.placement import Axis, check_placement
from smtsynth.model.program import Program, instruction_set, parse_program
from smtsynth.model.system import Level, System

NODES = System([Level("node", 4, "8 GB/s", "20 us"), Level("gpu", 16, "270 GB/s", "3 us")])
TEN = System([Level("node", 10, "400 GB/s", "8 us", "50 GB/s"), Level("gpu", 8, "450 GB/s", "2 us")])
THREE = System(
    [
        Level("su", 2, "800 GB/s", "12 us", "25 GB/s"),
        Level("node", 4, "400 GB/s", "8 us", "50 GB/s"),
        Level("gpu", 8, "450 GB/s", "2 us"),
    ]
)
PLAIN = "AllReduce(root, InsideGroup)"
SPLIT = "ReduceScatter(node, InsideGroup); AllReduce(node, Parallel(root)); AllGather(node, InsideGroup)"
MASTER = "Reduce(node, InsideGroup); AllReduce(node, Master(root)); Broadcast(node, InsideGroup)"
MIB = 2**20


def lowering(system: System, matrix: list[list[int]], reduced: list[int]) -> Lowering:
    axes = []
    for number, row in enumerate(matrix):
        size = 1
        for entry in row:
            size *= entry
        axes.append(Axis(f"axis{number}", size))
    return lower(system, check_placement(matrix, axes, system), reduced)


WORKED = [
    (NODES, [[4, 16]], [0], PLAIN, 2**31, 528_994_179),
    (NODES, [[4, 16]], [0], SPLIT, 2**31, 417_776_266),
    (NODES, [[4, 16]], [0], MASTER, 2**31, 418_770_472),
    (NODES, [[1, 8], [1, 2], [4, 1]], [0, 2], SPLIT, 2**31, 819_387_244),
    (NODES, [[1, 8], [2, 1], [2, 2]], [0, 2], SPLIT, 2**31, 283_478_538),
    (TEN, [[10, 8]], [0], PLAIN, 32 * MIB, 600_176),
    (TEN, [[10, 8]], [0], SPLIT, 32 * MIB, 453_485),
    (TEN, [[10, 8]], [0], PLAIN, 1024 * MIB, 5_736_101),
    (THREE, [[2, 4, 8]], [0], PLAIN, MIB, 367_411),
    (THREE, [[2, 4, 8]], [0], PLAIN, 64 * MIB, 692_552),
    (THREE, [[2, 4, 8]], [0], PLAIN, 1024 * MIB, 5_647_074),
]


@pytest.mark.parametrize(("system", "matrix", "reduced", "text", "payload", "expected"), WORKED)
def test_worked_cost(
    system: System, matrix: list[list[int]], reduced: list[int], text: str, payload: int, expected: int
) -> None:
    where = lowering(system, matrix, reduced)
    program = parse_program(text, where.names)
    costs = simulate_program(AlphaBeta(), where, program, Fraction(payload))
    assert sum(cost.nanoseconds for cost in costs) == expected
    assert simulate_schedule(AlphaBeta(), system, where.schedule(program), Fraction(payload)) == costs
    assert any_schedule_bound(where, Fraction(payload)) <= expected


@lru_cache
def two_factor_programs() -> tuple[Program, ...]:
    """The 93 programs of up to 5 steps that the rules accept over two factors, whatever their sizes."""
    goal, found = complete((2, 2)), []
    front: list[tuple[Program, State]] = [((), initial(4))]
    for _ in range(5):
        after = []
        for program, state in front:
            for instruction in instruction_set(2):
                new = apply(state, instruction.collective, instruction_groups((2, 2), instruction))
                if new == goal:
                    found.append((*program, instruction))
                elif not isinstance(new, Failure):
                    after.append(((*program, instruction), new))
        front = after
    return tuple(found)


BEST = [
    (NODES, [[4, 16]], [0], 2**31, 417_776_266, SPLIT),
    (NODES, [[1, 8], [1, 2], [4, 1]], [0, 2], 2**31, 819_387_244, SPLIT),
    (NODES, [[1, 8], [2, 1], [2, 2]], [0, 2], 2**31, 283_478_538, SPLIT),
    (TEN, [[10, 8]], [0], 32 * MIB, 453_485, SPLIT),
    (TEN, [[10, 8]], [0], 1024 * MIB, 5_736_101, PLAIN),
]


@pytest.mark.parametrize(("system", "matrix", "reduced", "payload", "expected", "text"), BEST)
def test_worked_best(
    system: System, matrix: list[list[int]], reduced: list[int], payload: int, expected: int, text: str
) -> None:
    """Of all two-factor programs none is cheaper, and none is below the bound for any schedule."""
    where = lowering(system, matrix, reduced)
    programs = two_factor_programs()
    assert len(programs) == 93
    costs = {
        program: sum(cost.nanoseconds for cost in simulate_program(AlphaBeta(), where, program, Fraction(payload)))
        for program in programs
    }
    assert min(costs.values()) == expected == costs[parse_program(text, where.names)]
    assert min(costs.values()) >= any_schedule_bound(where, Fraction(payload))


def test_two_replicas_share_the_nodes() -> None:
    """One replica alone takes about half of what both take."""
    where = lowering(NODES, [[1, 8], [1, 2], [4, 1]], [0, 2])
    program = parse_program(SPLIT, where.names)
    both = simulate_program(AlphaBeta(), where, program, Fraction(2**31))
    half = System([Level("node", 4, "8 GB/s", "20 us"), Level("gpu", 8, "270 GB/s", "3 us")])
    alone = simulate_program(AlphaBeta(), lowering(half, [[1, 8], [4, 1]], [0, 1]), program, Fraction(2**31))
    assert both[1].transfer == 2 * alone[1].transfer
    assert 1.9 < sum(c.nanoseconds for c in both) / sum(c.nanoseconds for c in alone) < 2


def test_parts_of_a_worked_step() -> None:
    """A node's load is spread over its 8 NICs, which then fill the uplink: 8 GPUs at 50 GB/s are 400 GB/s."""
    where = lowering(TEN, [[10, 8]], [0])
    (cost,) = simulate_program(AlphaBeta(), where, parse_program(PLAIN, where.names), Fraction(32 * MIB))
    edge = Fraction(2 * 79, 80) * 32 * MIB
    assert cost.transfer == edge / 400_000_000_000 == edge / 8 / 50_000_000_000
    assert cost.latency == Fraction(2 * 79, 80) * (10 * Fraction(8, 10**6) + 70 * Fraction(2, 10**6))
    assert cost.bottleneck == Bottleneck(0, 0, "up")


def test_one_device_cannot_fill_its_uplink() -> None:
    """Masters alone: the node's whole load goes through one GPU's NIC."""
    where = lowering(TEN, [[10, 8]], [0])
    program = parse_program("AllReduce(node, Master(root))", where.names)
    (cost,) = simulate_program(AlphaBeta(), where, program, Fraction(32 * MIB))
    assert cost.transfer == Fraction(2 * 9, 10) * 32 * MIB / 50_000_000_000
    assert cost.bottleneck == Bottleneck(0, 0, "up", 0)


def test_nothing_reduced_costs_nothing() -> None:
    where = lowering(NODES, [[4, 16], [1, 1]], [1])
    assert where.size == 1
    assert simulate_program(AlphaBeta(), where, (), Fraction(2**31)) == []
    assert any_schedule_bound(where, Fraction(2**31)) == 0


def test_sixty_five_thousand_devices() -> None:
    """A size at which no list of groups is made: the closed form alone, held against the formula by hand."""
    system = System([Level("node", 4096, "400 GB/s", "8 us"), Level("gpu", 16, "450 GB/s", "2 us")])
    where = lowering(system, [[4096, 16]], [0])
    program = parse_program(SPLIT, where.names)
    inside = Fraction(15, 16) * (Fraction(2**30, 450 * 10**9) + 16 * Fraction(2, 10**6))
    across = 2 * Fraction(4095, 4096) * (16 * Fraction(2**30, 16) / (400 * 10**9) + 4096 * Fraction(8, 10**6))
    costs = simulate_program(AlphaBeta(), where, program, Fraction(2**30))
    assert [cost.latency + cost.transfer for cost in costs] == [inside, across, inside]
    assert "devices" not in where.__dict__


def test_huge_system_is_priced() -> None:
    """2^40 devices: nothing is laid out, so this returns at once or runs out of memory."""
    system = System([Level("a", 2**20, "1 GB/s", "1 us"), Level("b", 2**20, "1 GB/s", "1 us")])
    where = lowering(system, [[2**20, 2**20]], [0])
    program = parse_program("ReduceScatter(a, InsideGroup); AllReduce(a, Parallel(root))", where.names)
    shares = [cost.transfer for cost in simulate_program(AlphaBeta(), where, program, Fraction(2**40))]
    ring = Fraction(2**20 - 1, 2**20)
    assert shares == [ring * 2**40 / 10**9, 2 * ring * 2**20 * 2**20 / 10**9]
