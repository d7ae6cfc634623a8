"""Verify your own all-reduce in your own tests: copy this file, put your groups in, and run pytest on it.

Two hierarchical all-reduces over nodes of `per_node` ranks, the last of which may be smaller, for 2 to 16 ranks. The
one by leaders is right for all sizes. The one by parts is right where sizes divide; where they don't, it would add
parts of unequal lengths, and is refused: by itself if it checks its input, by the verifier if it doesn't.
"""

import pytest

from smtsynth import Schedule, VerificationError

SIZES = [(ranks, per_node) for ranks in range(2, 17) for per_node in range(1, ranks + 1)]
DIVISIBLE = [(ranks, per_node) for ranks, per_node in SIZES if ranks % per_node == 0]
UNEVEN = [(ranks, per_node) for ranks, per_node in SIZES if ranks % per_node and per_node > 1]


def nodes(ranks: int, per_node: int) -> list[list[int]]:
    """The ranks of each node."""
    return [list(range(first, min(first + per_node, ranks))) for first in range(0, ranks, per_node)]


def by_leaders(ranks: int, per_node: int) -> Schedule:
    """Reduce to each node's first rank, all-reduce among these, broadcast inside the nodes."""
    inside = nodes(ranks, per_node)
    leaders = [[node[0] for node in inside]]
    return Schedule(devices=ranks).reduce(inside).all_reduce(leaders).broadcast(inside)


def by_parts(ranks: int, per_node: int) -> Schedule:
    """Reduce-scatter inside the nodes, all-reduce equal parts across them, all-gather inside; nothing is checked."""
    inside = nodes(ranks, per_node)
    across = [[node[place] for node in inside if place < len(node)] for place in range(per_node)]
    return Schedule(devices=ranks).reduce_scatter(inside).all_reduce(across).all_gather(inside)


def by_parts_checked(ranks: int, per_node: int) -> Schedule:
    """The same, refusing what does not divide."""
    if ranks % per_node:
        raise ValueError(f"{ranks} ranks are no whole nodes of {per_node}: use by_leaders")
    return by_parts(ranks, per_node)


@pytest.mark.parametrize(("ranks", "per_node"), SIZES)
def test_by_leaders_is_right_for_all_sizes(ranks: int, per_node: int) -> None:
    assert by_leaders(ranks, per_node).verify("identity").layout == "identity"


@pytest.mark.parametrize(("ranks", "per_node"), DIVISIBLE)
def test_by_parts_is_right_where_sizes_divide(ranks: int, per_node: int) -> None:
    assert by_parts_checked(ranks, per_node).verify("identity").layout == "identity"


@pytest.mark.parametrize(("ranks", "per_node"), UNEVEN)
def test_by_parts_is_refused_where_they_do_not(ranks: int, per_node: int) -> None:
    with pytest.raises(ValueError, match=f"{ranks} ranks are no whole nodes of {per_node}"):
        by_parts_checked(ranks, per_node)
    with pytest.raises(VerificationError, match="step 2: AllReduce on group .* hold buffers of unequal lengths"):
        by_parts(ranks, per_node).verify()
