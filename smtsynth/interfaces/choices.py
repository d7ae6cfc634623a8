"""The choice of a cost model in files: `cost_model: paper`, or a mapping with its settings.

    cost_model: {name: alpha-beta, algorithm: auto, overlap: full}
    cost_model:
      name: measured
      beyond: alpha-beta       # or refuse, the default
      curves:
        - {collective: AllReduce, nodes: 1, devices: 8, pieces: [[8, 33554432, 35 us, 100 GB/s], …]}

A piece: from and to how many bytes, the seconds that don't depend on them, and bytes per second.
"""

from __future__ import annotations

from typing import Any

from smtsynth.errors import InputError
from smtsynth.interfaces.nodes import Node
from smtsynth.model.choice import ALGORITHMS, BEYOND, MODELS, OVERLAPS, CostChoice, Curve, Piece
from smtsynth.model.program import Collective
from smtsynth.model.units import exact_text

MAX_BYTES = 2**60


def choice_of(node: Node) -> CostChoice:
    """The choice that a file makes. InputError names file and key."""
    if isinstance(node.value, str):
        name = node.word(MODELS)
        if name == "measured":
            raise node.error("measured needs `curves`", "those of smtsynth calibrate")
        return CostChoice(name)
    keys = node.fields(("name",), ("algorithm", "overlap", "curves", "beyond"))
    name = keys["name"].word(MODELS)
    words = {"algorithm": ALGORITHMS, "overlap": OVERLAPS, "beyond": BEYOND}
    given = {key: keys[key].word(known) for key, known in words.items() if key in keys}
    curves: list[Curve] = []
    if "curves" in keys:
        if name != "measured":
            raise keys["curves"].error(f"{name} has none", "cost model measured")
        curves = [_curve(one) for one in keys["curves"].items("a list of curves", 256)]
    elif name == "measured":
        raise keys["name"].error("measured needs `curves`", "those of smtsynth calibrate")
    return CostChoice(name, curves=tuple(curves), **given)


def _curve(node: Node) -> Curve:
    keys = node.fields(("collective", "nodes", "devices", "pieces"))
    collective = Collective(keys["collective"].word([str(one) for one in Collective]))
    pieces: list[Piece] = []
    for one in keys["pieces"].items("a list of pieces", 64):
        parts = list(one.items("a piece [from, to, seconds, bytes/s]", 4))
        if len(parts) != 4:
            raise one.error(f"has {len(parts)} entries", "[from, to, seconds, bytes/s]")
        first, last = parts[0].whole(0, MAX_BYTES), parts[1].whole(0, MAX_BYTES)
        if last < first or (pieces and first < pieces[-1].last):
            raise one.error("is out of order", "pieces by size, the smaller size of each first")
        pieces.append(Piece(first, last, parts[2].amount("seconds", zero=True), parts[3].amount("bytes/s")))
    if not pieces:
        raise keys["pieces"].error("is empty", "at least one piece")
    return Curve(collective, keys["nodes"].whole(1, 2**20), keys["devices"].whole(1, 2**20), tuple(pieces))


def choice_data(choice: CostChoice) -> Any:
    """The choice as plain data that choice_of reads back."""
    data: dict[str, Any] = {"name": choice.name}
    default = CostChoice()
    for key in ("algorithm", "overlap", "beyond"):
        if getattr(choice, key) != getattr(default, key):
            data[key] = getattr(choice, key)
    if choice.curves:
        data["curves"] = [curve_data(curve) for curve in choice.curves]
    return data if len(data) > 1 else choice.name


def curve_data(curve: Curve) -> dict[str, Any]:
    """A curve as plain data."""
    pieces = [
        [first, last, exact_text(alpha, "seconds"), exact_text(rate, "bytes/s")]
        for first, last, alpha, rate in curve.pieces
    ]
    return {
        "collective": str(curve.collective),
        "nodes": curve.nodes,
        "devices": curve.devices,
        "pieces": pieces,
    }


def changed(choice: CostChoice, given: dict[str, str | None]) -> CostChoice:
    """The choice with what the command line says in place of the file's; `curves` stay.

    given: values of --cost-model, --algorithm and --overlap (None: not given), by those names.
    """
    model = given.get("--cost-model")
    for option, known in (("--cost-model", MODELS), ("--algorithm", ALGORITHMS), ("--overlap", OVERLAPS)):
        word = given.get(option)
        if word is not None and word not in known:
            raise InputError(f"{word[:40]!r} is unknown", where=option, expected=", ".join(known))
    if model == "measured" and not choice.curves:
        raise InputError(
            "the problem holds no curves", where="--cost-model", expected="a file that smtsynth calibrate wrote"
        )
    other = model is not None and model != choice.name
    return CostChoice(
        model or choice.name,
        given.get("--algorithm") or ("ring" if other and model == "paper" else choice.algorithm),
        given.get("--overlap") or choice.overlap,
        choice.curves,
        choice.beyond,
    )
