"""What each process of a trial run does. Run as a file, `python worker.py FOLDER`: it needs nothing of the package.

FOLDER/job.json names the backend and the programs (modules in the same folder); every rank appends to
FOLDER/progress_RANK a line per event and writes what a program gave to FOLDER/out_PROGRAM_RANK.npy. The launcher
makes FOLDER/close when all are done.
"""

from __future__ import annotations

import faulthandler
import importlib.util
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.int64]
Run = Callable[[ModuleType, str, Array, bool], Array]
"""A module, the name of its function, values, and whether its groups are its own alone: what the program gives."""


class Diary:
    """A rank's events, one line each, in a file that the launcher reads; its stack on SIGUSR1 in another."""

    def __init__(self, folder: Path, rank: int) -> None:
        self.folder, self.rank = folder, rank
        self.file = open(folder / f"progress_{rank}", "a", encoding="utf-8", buffering=1)  # noqa: SIM115
        self.stack = open(folder / f"stack_{rank}", "w", encoding="utf-8")  # noqa: SIM115 -- open until the end
        faulthandler.register(signal.SIGUSR1, file=self.stack, all_threads=False)
        self.note("pid", os.getpid())

    def note(self, event: str, number: int) -> None:
        """Append an event."""
        self.file.write(f"{event} {number}\n")

    def failed(self) -> None:
        """Write down the exception that is being handled."""
        (self.folder / f"error_{self.rank}").write_text(traceback.format_exc(), encoding="utf-8")


def load(folder: Path, name: str) -> ModuleType:
    """A program's module."""
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def watch(parent: int, folder: Path) -> None:
    """End this process when the launcher is gone, or has taken the folder away."""

    def loop() -> None:
        while True:
            time.sleep(1)
            try:
                os.kill(parent, 0)
                (folder / "job.json").stat()
            except OSError:
                os._exit(4)

    threading.Thread(target=loop, daemon=True).start()


def make_groups(module: Any, known: dict[str, Any]) -> dict[str, Any]:
    """The module's own groups, made by its make_groups, except those that an earlier program has made already."""
    wanted = module.GROUPS
    module.GROUPS = {name: rows for name, rows in wanted.items() if json.dumps(rows) not in known}
    made = module.make_groups()
    for name, rows in module.GROUPS.items():
        known[json.dumps(rows)] = made.get(name)
    module.GROUPS = wanted
    mine = {name: known[json.dumps(rows)] for name, rows in wanted.items()}
    return {name: group for name, group in mine.items() if group is not None}


def each(job: dict[str, Any], folder: Path, diary: Diary, run: Run, barrier: Callable[[], Any]) -> None:
    """Run every program on this rank's values (all ranks' where one process stands for all), one after the other."""
    diary.note("ready", 0)
    for number, program in enumerate(job["programs"]):
        diary.note("start", number)
        values = np.load(folder / program["inputs"])
        if job["backend"] != "jax":
            values = values[diary.rank].copy()
        result = run(load(folder, program["module"]), program["function"], values, program["alone"])
        np.save(folder / f"out_{number}_{diary.rank}.npy", result)
        diary.note("done", number)
        barrier()  # so that a program that goes wrong meets nothing of the next one
    while not (folder / "close").exists():  # a rank that closed its library now would break, not leave, the others
        time.sleep(0.02)


def mpi(job: dict[str, Any], folder: Path) -> None:
    """A rank of an MPI launch."""
    from mpi4py import MPI

    diary = Diary(folder, MPI.COMM_WORLD.rank)
    known: dict[str, Any] = {}

    def run(module: ModuleType, function: str, values: Array, alone: bool) -> Array:
        result = getattr(module, function)(values, make_groups(module, {} if alone else known))
        return values if result is None else result

    try:
        each(job, folder, diary, run, MPI.COMM_WORLD.Barrier)
    except BaseException:
        diary.failed()
        MPI.COMM_WORLD.Abort(3)


def gloo(job: dict[str, Any], folder: Path) -> None:
    """All ranks of torch.distributed over gloo: torch is loaded once, and each rank is a fork."""
    import torch

    torch.set_num_threads(1)
    pids = []
    for rank in range(job["ranks"]):
        pid = os.fork()
        if pid == 0:
            gloo_rank(job, folder, rank)
            os._exit(0)
        pids.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    sys.exit(max(codes, key=abs))


def gloo_rank(job: dict[str, Any], folder: Path, rank: int) -> None:
    """A rank of torch.distributed over gloo."""
    import torch
    import torch.distributed as dist

    watch(job["launcher"], folder)
    diary = Diary(folder, rank)
    known: dict[str, Any] = {}

    def run(module: ModuleType, function: str, values: Array, alone: bool) -> Array:
        tensor = torch.from_numpy(values)
        result = getattr(module, function)(tensor, make_groups(module, {} if alone else known))
        return np.asarray(tensor if result is None else result)

    try:
        dist.init_process_group(
            "gloo",
            init_method=(folder / "rendezvous").as_uri(),
            rank=rank,
            world_size=job["ranks"],
            timeout=timedelta(seconds=job["patience"]),
        )
        each(job, folder, diary, run, dist.barrier)
        dist.destroy_process_group()
    except BaseException:
        diary.failed()
        os._exit(3)


def jax_devices(job: dict[str, Any], folder: Path) -> None:
    """All ranks in one process, on as many forced host devices."""
    diary = Diary(folder, 0)
    try:
        import jax
        from jax.sharding import Mesh, NamedSharding, PartitionSpec

        mesh = Mesh(np.array(jax.devices()[: job["ranks"]]), ("ranks",))

        def run(module: ModuleType, function: str, values: Array, alone: bool) -> Array:
            spread = jax.device_put(values.reshape(-1), NamedSharding(mesh, PartitionSpec("ranks")))
            return np.asarray(module.over(mesh)(spread)).reshape(job["ranks"], -1)

        each(job, folder, diary, run, lambda: None)
    except BaseException:
        diary.failed()
        os._exit(3)


def main() -> None:
    """Run the job of the folder on the command line."""
    folder = Path(sys.argv[1])
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    watch(job["launcher"], folder)
    {"mpi": mpi, "gloo": gloo, "jax": jax_devices}[job["backend"]](job, folder)


if __name__ == "__main__":
    main()
