"""The paper's two headlines by the model: how far placements lie apart, and what the best program gains.

P2 (arXiv 2110.10548) measured up to 448x between placements and up to 2.04x by synthesis. This prices the same
axes and reductions on the same systems and prints both beside the paper's measurements.

    python p2_headlines.py [--bytes '2 GiB'] [--json]
"""

from __future__ import annotations

import argparse
import json
import textwrap

from smtsynth import InputError, Problem, Reduction, preset, solve

# (system, axes, reduced axes), then what the paper's appendix measured over the placements it lists:
# the largest over the smallest plain AllReduce, and the largest gain; under NCCL's rings and trees. None: not stated.
CASES = [
    (("a100-4x16", (4, 16), (0,)), (374, 448), (1.57, 1.60)),
    (("a100-4x16", (4, 16), (1,)), (98, 86), (1.74, 1.28)),
    (("a100-4x16", (8, 2, 4), (0, 2)), (1.9, 2.9), (1.70, 1.36)),
    (("a100-4x16", (2, 2, 16), (0, 2)), (2.0, 2.5), (1.61, 1.30)),
    (("a100-4x16", (16, 2, 2), (0, 2)), (1.9, 2.8), (1.58, 1.36)),
    (("v100-4x8", (8, 2, 2), (0, 2)), (3.4, None), (2.04, None)),
]
WHY = [
    "Spread: the model's is larger, chiefly because it leaves out what a collective costs inside a node besides the "
    "links: there the paper measured 0.15 s (rings) and 0.20 s (trees) for some 20 GB, where 270 GB/s alone would "
    "take 0.11 s. The 448x is trees, which this model does not have; under rings the paper measured 374x.",
    "Gain: the paper's 2.04x is on V100, and this model can't reach it with payloads this large: over two nodes a "
    "flat ring of m GPUs puts 2(m-1)/m of the payload on the NIC and the hierarchical program 1, so that its gain "
    "stays below 2 (and below 4/3 over four). We take the rest to be what two levels leave out of that machine: NVLink "
    "joins neighbours only, and other hops and all traffic to the NIC share PCIe and the CPUs. On A100 the measured "
    "gains over two nodes (up to 1.8x under rings) are near the model's.",
    "With several reduced axes the paper's programs follow the axes in row-major order, not the hardware, so that its "
    "best there is not ours, and not on the same placement.",
]


def priced(name: str, sizes: tuple[int, ...], over: tuple[int, ...], payload: str) -> dict[str, object]:
    """The spread of plain AllReduce over all placements, and the largest gain of a program proved best."""
    axes = {f"a{number}": size for number, size in enumerate(sizes)}
    found = solve(Problem(preset(name), axes, Reduction([f"a{number}" for number in over], payload))).placements
    plain = sorted(found, key=lambda one: one.allreduce)
    best = max(found, key=lambda one: one.speedup or 1.0)
    return {
        "system": name,
        "axes": list(sizes),
        "over": list(over),
        "allreduce_seconds": {str(one.placement): one.allreduce / 1e9 for one in plain},
        "spread": plain[-1].allreduce / plain[0].allreduce,
        "gain": best.speedup,
        "gain_on": str(best.placement),
        "proved": all(one.status == "optimal" for one in found),
    }


def figures(two: tuple[float | None, float | None], digits: str) -> str:
    """The paper's figures under rings and trees."""
    return " / ".join("-" if one is None else f"{one:{digits}}" for one in two)


def main() -> None:
    """Price all cases, and print them beside the paper's figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", default="2 GiB", help="bytes per device (default: 2 GiB)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    rows = []
    for case, spreads, gains in CASES:
        try:
            row = priced(*case, given.bytes)
        except InputError as error:
            parser.error(str(error))
        rows.append(row | {"paper_spread": spreads, "paper_gain": gains})
    if given.json:
        print(json.dumps({"bytes": given.bytes, "cases": rows, "why_they_differ": WHY}))
        return
    print(f"{given.bytes} per device; the paper's figures are measured, under rings / trees")
    print("system     axes      over     spread       paper   gain        paper  gain is on")
    for row, (case, spreads, gains) in zip(rows, CASES, strict=True):
        axes, over = (str(list(numbers)).replace(",", "") for numbers in case[1:])
        print(
            f"{case[0]:9}  {axes:8}  {over:5}  {row['spread']:7.1f}x {figures(spreads, 'g'):>11}  {row['gain']:.2f}x"
            f" {figures(gains, '.2f'):>12}  {row['gain_on']}{'' if row['proved'] else ' (not all proved)'}"
        )
    for text in WHY:
        print("\n" + textwrap.fill(text, 100))


if __name__ == "__main__":
    main()
