"""Systems that people have, by name (model, section 1), every bandwidth in one direction.

Vendors quote NVLink and ICI with both directions summed; the figures here are halved where that is so, and each
preset says where its figures come from and what a tree of levels leaves out of the real machine.
"""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from smtsynth.errors import InputError
from smtsynth.model.system import Level, System
from smtsynth.model.units import exact_text, quantity


@dataclass(frozen=True, slots=True)
class LevelTemplate:
    """A level of a preset: `size` by default, any size up to `most` on request.

    link: bandwidth of a unit's whole uplink; with `own`, that of each device's own link instead (a NIC per GPU, a
    chip's own ports), so that the uplink is as many times wider as devices are below it.
    """

    name: str
    size: int
    most: int
    link: str
    latency: str
    own: bool = False

    def level(self, size: int, below: int) -> Level:
        """The level at this size, with `below` devices under each of its units."""
        link = quantity(self.link, "bytes/s")
        rails = self.own and below > 1
        return Level(self.name, size, link * (below if rails else 1), self.latency, link if rails else None)


@dataclass(frozen=True, slots=True)
class Preset:
    """A known system: level templates, where the figures come from, what they leave out, and an example on it.

    axes (name, size), over (axis names) and payload make a whole problem of it at the default sizes.
    """

    name: str
    title: str
    levels: tuple[LevelTemplate, ...]
    source: str
    leaves_out: str
    axes: tuple[tuple[str, int], ...]
    over: tuple[str, ...]
    payload: str

    @property
    def sizes(self) -> dict[str, int]:
        """Default sizes by level name."""
        return {level.name: level.size for level in self.levels}

    @property
    def most(self) -> dict[str, int]:
        """The largest size each level may be given, by level name."""
        return {level.name: level.most for level in self.levels}

    def system(self, sizes: Mapping[str, int]) -> System:
        """The system with these sizes in place of the default ones, all of them checked before."""
        levels: list[Level] = []
        below = 1
        for template in reversed(self.levels):
            size = sizes.get(template.name, template.size)
            levels.insert(0, template.level(size, below))
            below *= size
        return System(levels)


MANY = 2**16

_PAPER = (
    "paper (arXiv 2110.10548), its simulator's constants: one NIC of 8 GB/s a node, {inside}. It states no "
    "latencies: 20 us across nodes and 3 us inside are our assumption."
)
_FABRIC_LATENCY = "The latencies are our assumption, of the size that fits to published NCCL runs give."
_TORUS = (
    "A torus is not a tree of levels. Each level stands for one dimension, whose rings run over the two links a chip "
    "has in it, so that one collective in one dimension is priced by its own links. Left out: several dimensions busy "
    "at the same time (up to {times} times the speed for a flat collective), the number of hops, and that an axis "
    "{wrap} has no wraparound link and only half the ring's speed."
)


def _paper(name: str, title: str, nodes: int, gpus: int, link: str, inside: str, leaves_out: str) -> Preset:
    """One of the paper's clusters."""
    return Preset(
        name,
        title,
        (
            LevelTemplate("node", nodes, MANY, "8 GB/s", "20 us"),
            LevelTemplate("gpu", gpus, gpus, link, "3 us"),
        ),
        _PAPER.format(inside=inside),
        leaves_out,
        (("data", nodes * gpus // 4), ("shard", 4)),
        ("data",),
        "2 GiB",
    )


def _a100(nodes: int) -> Preset:
    return _paper(
        f"a100-{nodes}x16",
        f"{nodes} nodes of 16 A100, the paper's A100 system",
        nodes,
        16,
        "270 GB/s",
        "NVSwitch at 270 GB/s per GPU",
        "What one group alone can draw from the NIC, and the CPUs' part in NIC traffic.",
    )


def _v100(nodes: int) -> Preset:
    return _paper(
        f"v100-{nodes}x8",
        f"{nodes} nodes of 8 V100, a stand-in for the paper's V100 system",
        nodes,
        8,
        "135 GB/s",
        "a ring of NVLinks at 135 GB/s per direction",
        "The ring itself: NVLink joins neighbours only, every other hop and all NIC traffic goes through PCIe "
        "switches (32 GB/s) and the CPUs, so that groups off the ring are much slower than these two levels say.",
    )


def _tpu(name: str, generation: str, dimensions: tuple[LevelTemplate, ...], source: str, wrap: str) -> Preset:
    """A slice of a TPU pod, a level per dimension of its torus."""
    chips = 1
    for level in dimensions:
        chips *= level.size
    shape = "x".join(str(level.size) for level in dimensions)
    return Preset(
        name,
        f"a {shape} slice of TPU {generation}",
        dimensions,
        f"{source} The latency is our assumption.",
        _TORUS.format(times=len(dimensions), wrap=wrap),
        (("data", chips // dimensions[-1].size), ("model", dimensions[-1].size)),
        ("data",),
        "1 GiB",
    )


def _dimensions(sizes: Mapping[str, int], most: int, link: str) -> tuple[LevelTemplate, ...]:
    return tuple(LevelTemplate(name, size, most, link, "1 us", own=True) for name, size in sizes.items())


_CUBE = {"plane": 4, "row": 4, "chip": 4}
_CUBE_WRAP = "that is no multiple of 4"

PRESETS: tuple[Preset, ...] = (
    _a100(2),
    _a100(4),
    _v100(2),
    _v100(4),
    Preset(
        "dgx-h100",
        "DGX or HGX H100 nodes, one 400 Gbit/s NIC per GPU",
        (
            LevelTemplate("node", 4, MANY, "50 GB/s", "8 us", own=True),
            LevelTemplate("gpu", 8, 8, "450 GB/s", "2 us"),
        ),
        "NVIDIA's data sheets: NVLink 4 at 900 GB/s per GPU with both directions summed, so 450 in one; eight "
        f"ConnectX-7 of 400 Gbit/s (50 GB/s) a node. {_FABRIC_LATENCY}",
        "Reductions inside the NVLink switch (NVLS) and trees, which can beat these link speeds; a busy fabric.",
        (("data", 8), ("tensor", 4)),
        ("data",),
        "1 GiB",
    ),
    Preset(
        "h100-pod",
        "DGX SuperPOD H100: scalable units of 32 nodes, a full fat tree",
        (
            LevelTemplate("su", 4, MANY, "50 GB/s", "12 us", own=True),
            LevelTemplate("node", 32, 32, "50 GB/s", "8 us", own=True),
            LevelTemplate("gpu", 8, 8, "450 GB/s", "2 us"),
        ),
        "NVIDIA's DGX SuperPOD reference architecture: 32 nodes a scalable unit, eight rails of 400 Gbit/s, as many "
        f"links from leaf to spine as from node to leaf; NVLink 4 as in dgx-h100. {_FABRIC_LATENCY}",
        "That a rail's traffic stays under one leaf switch, collisions of flows in the spine, and reductions in "
        "switches (SHARP, NVLS). A pod with fewer uplinks needs its own file, with a lower bandwidth at su.",
        (("data", 128), ("tensor", 8)),
        ("data",),
        "1 GiB",
    ),
    Preset(
        "gb200-nvl72",
        "GB200 NVL72 racks, one 400 Gbit/s NIC per GPU",
        (
            LevelTemplate("rack", 4, MANY, "50 GB/s", "8 us", own=True),
            LevelTemplate("gpu", 72, 72, "900 GB/s", "2 us"),
        ),
        "NVIDIA's data sheets: NVLink 5 at 1.8 TB/s per GPU with both directions summed, so 900 GB/s in one, 72 GPUs "
        f"in one NVLink domain; a 400 Gbit/s NIC (50 GB/s) per GPU. {_FABRIC_LATENCY}",
        "Reductions inside the NVLink switch, trees, a busy fabric, and NICs of 800 Gbit/s where a rack has them.",
        (("data", 36), ("tensor", 8)),
        ("data",),
        "1 GiB",
    ),
    _tpu(
        "tpu-v4",
        "v4",
        _dimensions(_CUBE, 16, "90 GB/s"),
        "worked out from Google's Cloud TPU pages: 1.1 PB/s of all-reduce bandwidth in a pod of 4096 chips with six "
        "links each is about 45 GB/s a link in one direction (the bisection, 24 TB/s, gives 47), two links in a "
        "dimension.",
        _CUBE_WRAP,
    ),
    _tpu(
        "tpu-v5e",
        "v5e",
        _dimensions({"row": 16, "chip": 16}, 16, "100 GB/s"),
        "Google's Cloud TPU pages: 400 GB/s of ICI a chip with both directions summed, over four ports, so 50 GB/s a "
        "port in one direction; a pod is a 16x16 torus.",
        "shorter than 16",
    ),
    _tpu(
        "tpu-v5p",
        "v5p",
        _dimensions(_CUBE, 24, "200 GB/s"),
        "Google's Cloud TPU pages: 1200 GB/s of ICI a chip with both directions summed, over six links, so 100 GB/s "
        "a link in one direction, two links in a dimension.",
        _CUBE_WRAP,
    ),
)


def preset_names() -> tuple[str, ...]:
    """The names of all presets."""
    return tuple(preset.name for preset in PRESETS)


def find_preset(name: str) -> Preset:
    """The preset of this name, or InputError naming the known ones."""
    for known in PRESETS:
        if known.name == name:
            return known
    near = difflib.get_close_matches(str(name)[:60], preset_names(), n=1)
    hint = f", did you mean {near[0]!r}?" if near else ""
    raise InputError(f"preset {str(name)[:60]!r} is unknown{hint}", expected=f"one of {', '.join(preset_names())}")


def preset(name: str, sizes: Mapping[str, int] | None = None) -> System:
    """The system of a preset, with `sizes` (level name to size) in place of its default sizes.

    Raises InputError for an unknown preset or level, or a size the machine cannot have.
    """
    found = find_preset(name)
    given = dict(sizes or {})
    most = found.most
    for level, size in given.items():
        if level not in most:
            raise InputError(f"{name} has no level {str(level)[:60]!r}", expected=f"one of {', '.join(most)}")
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= most[level]:
            what = size if isinstance(size, int) and abs(size) < 10**40 else type(size).__name__
            raise InputError(
                f"size of level {level!r} of {name} is {what}", expected=f"a whole number from 1 to {most[level]}"
            )
    return found.system(given)


def preset_file(name: str) -> str:
    """The preset at its default sizes as a whole problem file, its sources in comments (model, section 8)."""
    found = find_preset(name)
    system = found.system({})
    lines = []
    for text in (
        f"{found.name}: {found.title}. All bandwidths are in one direction.",
        f"Source: {found.source}",
        f"Left out: {found.leaves_out}",
    ):
        lines += textwrap.wrap(text, 112, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False)
    lines += ["system:", "  levels:"]
    for level in system.levels:
        words = [
            f"name: {level.name}",
            f"size: {level.size}",
            f"bandwidth: {exact_text(level.bandwidth, 'bytes/s')}",
            f"latency: {exact_text(level.latency, 'seconds')}",
        ]
        if level.per_device is not None:
            words.append(f"per_device: {exact_text(level.per_device, 'bytes/s')}")
        lines.append(f"    - {{{', '.join(words)}}}")
    axes = ", ".join(f"{axis}: {size}" for axis, size in found.axes)
    lines.append(f"axes: {{{axes}}}")
    lines.append(f"reduce: {{over: [{', '.join(found.over)}], bytes: {found.payload}}}")
    return "\n".join(lines) + "\n"
