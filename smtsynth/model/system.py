"""Systems (model, section 1; paper, section 2): levels of units joined by uplinks."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from types import NoneType

from smtsynth.errors import InputError, check_type
from smtsynth.model.topology import Topology
from smtsynth.model.units import Number, quantity

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]{0,63}")
MAX_DEVICES = 2**40
KINDS = ("switch", "ring", "full", "torus")
UNWIRED = Fraction(1)  # bytes/s of a level whose wiring a topology gives; nothing reads it


def check_name(name: object, what: str) -> str:
    """`name` if it can name a level or an axis, else InputError."""
    if not isinstance(name, str) or NAME.fullmatch(name) is None or name == "root":
        raise InputError(
            f"{what} name {str(name)[:70]!r} cannot be used",
            expected="a letter, then letters, digits, '_' or '-', and not 'root'",
        )
    return name


def check_size(size: object, what: str) -> int:
    """`size` if it is a whole number from 1 up, else InputError."""
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MAX_DEVICES:
        huge = isinstance(size, int) and abs(size) > MAX_DEVICES  # its digits may be too many to print
        raise InputError(f"{what} is {'far too large' if huge else repr(size)[:40]}", expected="a whole number from 1")
    return size


@dataclass(frozen=True, slots=True)
class Level:
    """One level: `size` units below each unit of the level above, each joined to it by an uplink.

    bandwidth: bytes/s of the whole uplink, one direction (full duplex); latency: seconds;
    per_device: bytes/s that one device can drive of the uplink, or None. Plain numbers are in those base
    units; text needs a unit, as in files ("8 GB/s", "20 us").

    Beyond the model's tree: kind `ring`, `full` or `torus` joins the units below one parent to each other by links
    of this bandwidth and latency instead of uplinks (`dims`: a torus' sizes, else as square as can be); duplex
    `half` lets both directions of a link share it; per_group: bytes/s that one group alone can drive of an uplink.
    """

    name: str
    size: int
    bandwidth: Fraction
    latency: Fraction
    per_device: Fraction | None
    kind: str
    dims: tuple[int, ...]
    duplex: str
    per_group: Fraction | None

    def __init__(
        self,
        name: str,
        size: int,
        bandwidth: Number,
        latency: Number = 0,
        per_device: Number | None = None,
        *,
        kind: str = "switch",
        dims: tuple[int, ...] | list[int] = (),
        duplex: str = "full",
        per_group: Number | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "name", check_name(name, "level"))
        put(self, "size", check_size(size, f"size of level {name!r}"))
        for key, value, dimension in (
            ("bandwidth", bandwidth, "bytes/s"),
            ("latency", latency, "seconds"),
            ("per_device", per_device, "bytes/s"),
            ("per_group", per_group, "bytes/s"),
        ):
            if key.startswith("per_") and value is None:
                put(self, key, None)
                continue
            amount = _amount(value, dimension, f"level {name!r}: {key}")
            if amount == 0 and key != "latency":
                raise InputError("is zero", where=f"level {name!r}: {key}", expected="a positive quantity")
            put(self, key, amount)
        if kind not in KINDS:
            raise InputError(f"kind {str(kind)[:40]!r} is unknown", where=f"level {name!r}", expected=", ".join(KINDS))
        if duplex not in ("full", "half"):
            raise InputError(f"duplex {str(duplex)[:40]!r} is unknown", where=f"level {name!r}", expected="full, half")
        if kind != "switch" and (per_device is not None or per_group is not None):
            raise InputError(f"a {kind} has no uplinks to limit", where=f"level {name!r}", expected="kind switch")
        whole = isinstance(dims, (tuple, list)) and all(isinstance(side, int) and side > 0 for side in dims)
        if not whole or (dims and (kind != "torus" or math.prod(dims) != size)):
            raise InputError(
                f"dims {str(dims)[:40]} do not fit", where=f"level {name!r}", expected=f"a torus' sizes, {size} in all"
            )
        put(self, "kind", kind)
        put(self, "dims", (tuple(dims) or _square(size)) if kind == "torus" else ())
        put(self, "duplex", duplex)

    @property
    def plain(self) -> bool:
        """Whether the level is one of the model's: uplinks to a switch, full duplex, no limit per group."""
        return self.kind == "switch" and self.duplex == "full" and self.per_group is None


def _amount(value: object, dimension: str, where: str) -> Fraction:
    """A quantity of the API: a number in the base unit, or text with a unit."""
    return quantity(value, dimension, where=where, bare=not isinstance(value, str))  # type: ignore[arg-type]


def _square(size: int) -> tuple[int, int]:
    """The most nearly square torus of `size` units."""
    side = next(side for side in range(math.isqrt(size), 0, -1) if size % side == 0)
    return side, size // side


@dataclass(frozen=True, slots=True)
class System:
    """Levels, outermost first, and a fixed `overhead` (seconds) per step. Devices are numbered by mixed radix.

    Beyond the model: copy, bytes/s at which a device copies its data once in every step (None: at no cost), and a
    topology of links that takes the place of the levels' uplinks.
    """

    levels: tuple[Level, ...]
    overhead: Fraction
    copy: Fraction | None
    topology: Topology | None

    def __init__(
        self,
        levels: tuple[Level, ...] | list[Level],
        overhead: Number = 0,
        *,
        copy: Number | None = None,
        topology: Topology | None = None,
    ) -> None:
        check_type(levels, (tuple, list), "levels", "a list of Level")
        for level in levels:
            check_type(level, Level, "levels", "a list of Level")
        check_type(topology, (Topology, NoneType), "topology", "a Topology")
        if not levels:
            raise InputError("a system has no levels", expected="at least one level")
        names = [level.name for level in levels]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"two levels are named {name!r}", expected="a name of its own for each level")
        if math.prod(level.size for level in levels) > MAX_DEVICES:
            raise InputError("the system has too many devices", expected=f"at most {MAX_DEVICES}")
        object.__setattr__(self, "levels", tuple(levels))
        object.__setattr__(self, "overhead", _amount(overhead, "seconds", "overhead"))
        rate = None if copy is None else _amount(copy, "bytes/s", "copy")
        if rate == 0:
            raise InputError("is zero", where="copy", expected="a positive quantity")
        object.__setattr__(self, "copy", rate)
        object.__setattr__(self, "topology", None if topology is None else topology.check(self.devices))

    @property
    def switched(self) -> bool:
        """Whether all levels are uplinks to switches, so that costs depend on a placement through its factors only."""
        return self.topology is None and all(level.kind == "switch" for level in self.levels)

    @property
    def plain(self) -> bool:
        """Whether the system is one of the model's: a tree of plain levels, no copies."""
        return self.topology is None and self.copy is None and all(level.plain for level in self.levels)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Level sizes, outermost first."""
        return tuple(level.size for level in self.levels)

    @property
    def devices(self) -> int:
        """The number of devices, the product of the level sizes."""
        return math.prod(self.sizes)

    def below(self, level: int) -> int:
        """How many devices one unit of `level` (0 = outermost) holds."""
        return math.prod(self.sizes[level + 1 :])

    def coordinates(self, device: int) -> tuple[int, ...]:
        """The device's coordinate at every level, outermost first."""
        return tuple(device // self.below(i) % level.size for i, level in enumerate(self.levels))

    def describe(self, device: int) -> str:
        """The device in words, e.g. 'node 2, gpu 5'."""
        places = zip(self.levels, self.coordinates(device), strict=True)
        return ", ".join(f"{level.name} {place}" for level, place in places)
