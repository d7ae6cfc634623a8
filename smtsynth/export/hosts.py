"""Rank to host and local device: hostfile, MPI rankfile, Slurm arbitrary list. This expresses every placement."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from smtsynth.errors import InputError
from smtsynth.export.mesh import Grid, devices_of_ranks, is_identity

HOST_LEVELS = ("node", "host", "server", "machine")
HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.\-]*[A-Za-z0-9_])?")
MAX_HOSTS = 2**20


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a rank runs: its device, host, place among the ranks of that host, and device among that host's devices."""

    rank: int
    device: int
    host: str
    local_rank: int
    local_device: int


@dataclass(frozen=True)
class Seating:
    """All ranks' seats, in rank order, and how many devices each host has."""

    grid: Grid
    order: tuple[int, ...]
    per_host: int
    seats: tuple[Seat, ...]

    @property
    def in_order(self) -> bool:
        """Whether rank r is device r: what every launcher does by itself."""
        return is_identity(devices_of_ranks(self.grid, self.order))

    @property
    def local_in_order(self) -> bool:
        """Whether on every host the local rank is the local device, as programs assume that take device LOCAL_RANK."""
        return all(seat.local_rank == seat.local_device for seat in self.seats)

    @property
    def runs(self) -> list[tuple[str, int]]:
        """(host, ranks) for each run of consecutive ranks on one host."""
        return [(host, len(list(run))) for host, run in groupby(seat.host for seat in self.seats)]

    def header(self) -> list[str]:
        """What the file says of itself, in lines without a comment sign."""
        names = ", ".join(self.grid.names[axis] for axis in self.order)
        lines = [f"{self.grid.title}; ranks count row-major over {names} (the last varies fastest)"]
        if not self.local_in_order:
            local = ",".join(str(seat.local_device) for seat in self.seats)
            if len(self.seats) > 256:
                local = "see --json"
            lines.append(f"local rank is not local device: bind rank r to device LOCAL[r] of its host, LOCAL = {local}")
        return lines


def host_level(grid: Grid, name: str | None = None) -> int:
    """The number of the level whose units are hosts: the one named, else one called node, host, server or machine,
    else the outer one of two levels (or the only one). InputError asks otherwise."""
    levels = [level.name for level in grid.system.levels]
    if name is not None:
        if name not in levels:
            raise InputError(f"there is no level {name!r}", where="--host-level", expected=", ".join(levels))
        return levels.index(name)
    for word in HOST_LEVELS:
        if word in levels:
            return levels.index(word)
    if len(levels) <= 2:
        return 0
    raise InputError(
        "no level is called node", where="--host-level", expected=f"the level of hosts: {', '.join(levels)}"
    )


def expand_hosts(text: str, where: str = "--hosts") -> list[tuple[str, int | None]]:
    """Hosts with their slots (None: not said) from names split at commas, blanks and lines.

    Taken too: Slurm's short form n[01-04,7], hostfile lines `name slots=8` and `name:8`, and comments from #.
    Raises InputError where a name can't be one.
    """
    found: list[tuple[str, int | None]] = []
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{where}:{number}" if "\n" in text.strip() else where
        words = re.findall(r"(?:\[[^\]]*\]?|[^\s,\[])+", line.split("#")[0])
        for word in words:
            if word.startswith("slots="):
                if not found or not word[6:].isdecimal():
                    raise InputError(f"{word[:40]!r} does not follow a host", where=place, expected="name slots=N")
                found[-1] = (found[-1][0], int(word[6:]))
                continue
            if word.startswith(("max_slots=", "max-slots=")):
                continue
            word, _, slots = word.partition(":")
            if slots and not slots.isdecimal():
                raise InputError(f"{slots[:40]!r} is no number of slots", where=place, expected="name:N")
            for name in _names(word, place):
                found.append((name, int(slots) if slots else None))
            if len(found) > MAX_HOSTS:
                raise InputError("names too many hosts", where=place, expected=f"at most {MAX_HOSTS}")
    return found


def _names(word: str, where: str) -> list[str]:
    """The names a word stands for: itself, or Slurm's prefix[ranges]suffix."""
    match = re.fullmatch(r"([^\[\]]*)\[([^\[\]]*)\]([^\[\]]*)", word)
    names = [word]
    if match is not None:
        before, ranges, after = match.groups()
        names = []
        for part in ranges.split(","):
            ends = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
            if ends is None or int(ends[2] or ends[1]) < int(ends[1]):
                raise InputError(f"{part[:40]!r} is no range", where=where, expected="a host list such as n[01-04,7]")
            low, high = int(ends[1]), int(ends[2] or ends[1])
            if high - low >= MAX_HOSTS:
                raise InputError("names too many hosts", where=where, expected=f"at most {MAX_HOSTS}")
            names += [f"{before}{number:0{len(ends[1])}d}{after}" for number in range(low, high + 1)]
    for name in names:
        if HOST_NAME.fullmatch(name) is None or len(name) > 253:
            raise InputError(f"{name[:60]!r} is no host name", where=where, expected="names such as n01, or n[01-04]")
    return names


def seating(
    grid: Grid,
    order: Sequence[int],
    hosts: Sequence[tuple[str, int | None]] | None = None,
    level: str | None = None,
    where: str = "--hosts",
) -> Seating:
    """Every rank's seat, where ranks count row-major over the axes in `order` (slowest first).

    hosts: names with slots, in the order of the system's hosts (default: the level's name and a number). Raises
    InputError where they are too few, named twice, or have another number of slots than devices.
    """
    number = host_level(grid, level)
    per_host = grid.system.below(number)
    needed = grid.system.devices // per_host
    name = grid.system.levels[number].name
    if hosts is None:
        width = len(str(needed - 1))
        hosts = [(f"{name}{place:0{width}d}", None) for place in range(needed)]
    if len(hosts) < needed:
        many = f"{len(hosts)} host{'s' * (len(hosts) != 1)}"
        raise InputError(f"names {many}", where=where, expected=f"{needed}, one for each {name}")
    used = list(hosts[:needed])
    seen: set[str] = set()
    for host, slots in used:
        if host in seen:
            raise InputError(f"host {host!r} is there twice", where=where, expected="each host once")
        seen.add(host)
        if slots is not None and slots < per_host:
            raise InputError(
                f"host {host!r} has {slots} slot{'s' * (slots != 1)}",
                where=where,
                expected=f"{per_host}, the devices below a {name}",
            )
    taken: dict[str, int] = {}
    seats = []
    for rank, device in enumerate(devices_of_ranks(grid, order).tolist()):
        host = used[device // per_host][0]
        seats.append(Seat(rank, device, host, taken.get(host, 0), device % per_host))
        taken[host] = taken.get(host, 0) + 1
    return Seating(grid, tuple(order), per_host, tuple(seats))


def unused_hosts(seats: Seating, hosts: Sequence[tuple[str, int | None]]) -> str | None:
    """A sentence on the hosts that no rank runs on, or None."""
    used = {seat.host for seat in seats.seats}
    left = list(dict.fromkeys(host for host, _ in hosts if host not in used))
    shown = ", ".join(left[:8]) + (f", … {len(left)} in all" if len(left) > 8 else "")
    verb = "are" if len(left) != 1 else "is"
    return f"{shown} {verb} left out: the placement has {len(used)} host{'s' * (len(used) != 1)}" if left else None


def hostfile_text(seats: Seating) -> str:
    """A hostfile of MPICH's mpiexec (`host:ranks`), with -rankmap in a comment where hosts take turns.

    Hydra starts a host that is listed twice as two, with local ranks that count from 0 in each: so each host is listed
    once, and the rank map says the rest.
    """
    lines = [f"# {line}" for line in seats.header()]
    hosts = list(dict.fromkeys(seat.host for seat in seats.seats))
    command = f"mpiexec -f FILE -n {len(seats.seats)}"
    if len(seats.runs) > len(hosts):
        command += f" -rankmap '{rankmap(seats)}'"
    lines.append(f"# {command} PROGRAM")
    return "\n".join(lines + [f"{host}:{seats.per_host}" for host in hosts]) + "\n"


def rankmap(seats: Seating) -> str:
    """The value of mpiexec -rankmap (MPICH): the number of the host, in hostfile order, for each rank."""
    hosts = {host: number for number, host in enumerate(dict.fromkeys(seat.host for seat in seats.seats))}
    return f"(vector,{','.join(str(hosts[seat.host]) for seat in seats.seats)})"


def rankfile_text(seats: Seating) -> str:
    """An Open MPI rankfile, a rank a line; the slot is the number of the local device."""
    lines = [f"# {line}" for line in seats.header()]
    lines.append(f"# mpiexec --map-by rankfile:file=FILE -n {len(seats.seats)} PROGRAM")
    lines += [f"rank {seat.rank}={seat.host} slot={seat.local_device}" for seat in seats.seats]
    return "\n".join(lines) + "\n"


def slurm_text(seats: Seating) -> str:
    """The file that SLURM_HOSTFILE names, a host a line in rank order (comments aren't allowed in it)."""
    return "".join(f"{seat.host}\n" for seat in seats.seats)


def slurm_command(seats: Seating) -> str:
    """How the list is used."""
    hosts = len(set(seat.host for seat in seats.seats))
    return f"SLURM_HOSTFILE=FILE srun --distribution=arbitrary --nodes={hosts} --ntasks={len(seats.seats)} PROGRAM"
