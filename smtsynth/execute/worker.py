"""What each process of a trial run does. Run as a file, `python worker.py FOLDER`: it needs nothing of the package.

FOLDER/job.json names the backend and the programs (modules in the same folder); every rank appends to
FOLDER/progress_RANK a line per event and writes what a program gave to FOLDER/out_PROGRAM_RANK.npy, or to
FOLDER/odd_PROGRAM_RANK what it is where it is no row of integers. A rank that fails writes its exception to
FOLDER/error_RANK, and how any rank ended stands in FOLDER/exit_RANK, written by its parent process. The launcher makes
FOLDER/close when all are done.
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
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.int64]
Run = Callable[[ModuleType, str, Array, bool], Any]
"""A module, the name of its function, values, and whether its groups are its own alone: what the program gives."""


class Diary:
    """A rank's events, one line each, in a file that the launcher reads; its stack on SIGUSR1 in another."""

    def __init__(self, folder: Path, rank: int) -> None:
        self.folder, self.rank = folder, rank
        self.file = open(folder / f"progress_{rank}", "a", encoding="utf-8", buffering=1)  # noqa: SIM115
        self.stack = open(folder / f"stack_{rank}", "w", encoding="utf-8")  # noqa: SIM115 -- open until the end
        faulthandler.register(signal.SIGUSR1, file=self.stack, all_threads=False)
        self.program: Path | None = None  # a module changed by hand, while it runs
        self.note("pid", os.getpid())

    def note(self, event: str, number: int) -> None:
        """Append an event."""
        self.file.write(f"{event} {number}\n")

    def failed(self, error: BaseException) -> None:
        """Write down an exception."""
        write_error(self.folder, self.rank, error, self.program)


def write_error(folder: Path, rank: int, error: BaseException, program: Path | None = None) -> None:
    """An exception as one line: its own, without what libraries add below, and the last line of `program` in it."""
    said = next((line.strip() for line in str(error).split("\n") if line.strip()), "")
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    trace, line = error.__traceback__, None
    while trace is not None:
        if program is not None and trace.tb_frame.f_code.co_filename == str(program):
            line = trace.tb_lineno
        trace = trace.tb_next
    text += f" (line {line} of the module)" if line else ""
    part = folder / f"error_{rank}.part"  # renamed, so that nobody reads half of it
    part.write_text(text, encoding="utf-8", errors="replace")
    part.rename(folder / f"error_{rank}")


def load(folder: Path, name: str) -> ModuleType:
    """A program's module."""
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def watch(launcher: int, folder: Path) -> None:
    """End this process when its parent or the launcher is gone, or the launcher has taken the folder away."""
    parent = os.getppid()

    def loop() -> None:
        while True:
            time.sleep(1)
            if os.getppid() != parent:
                os._exit(4)
            try:
                os.kill(launcher, 0)
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


def oddity(result: Any) -> str | None:
    """What a result is, if it is no row of integers."""
    if not hasattr(result, "__array__"):
        text = repr(result)
        return f"{text[:40]}{'…' * (len(text) > 40)} (of type {type(result).__name__})"
    found = np.asarray(result)
    if found.dtype.kind not in "iu":
        return f"an array of {found.dtype}"
    return None if found.ndim == 1 else f"an array of shape {found.shape}"


def each(job: dict[str, Any], folder: Path, diary: Diary, run: Run, barrier: Callable[[], Any]) -> None:
    """Run every program on this rank's values (all ranks' where one process stands for all), one after the other."""
    diary.note("ready", 0)
    for number, program in enumerate(job["programs"]):
        diary.note("start", number)
        values = np.load(folder / program["inputs"])
        if job["backend"] != "jax":
            values = values[diary.rank].copy()
        diary.program = folder / f"{program['module']}.py" if program["alone"] else None
        result = run(load(folder, program["module"]), program["function"], values, program["alone"])
        diary.program = None
        odd = oddity(result)
        if odd is None:
            np.save(folder / f"out_{number}_{diary.rank}.npy", np.asarray(result))
        else:
            (folder / f"odd_{number}_{diary.rank}").write_text(odd, encoding="utf-8", errors="replace")
        diary.note("done", number)
        barrier()  # so that a program that goes wrong meets nothing of the next one
    while not (folder / "close").exists():  # a rank that closed its library now would break, not leave, the others
        time.sleep(0.02)


def supervise(folder: Path, children: dict[int, int]) -> int:
    """Wait for processes, {pid: rank}, and write down how each ended: its exit code, or a signal as a negative number.
    The exit code of the first that failed, or 0."""
    first = 0
    left = dict(children)
    while left:
        pid, status = os.wait()
        code = os.waitstatus_to_exitcode(status)
        if pid in left:
            (folder / f"exit_{left.pop(pid)}").write_text(f"{code}\n", encoding="utf-8")
            first = first or code
    return first


def forked(folder: Path, rank: int, work: Callable[[], None]) -> int:
    """The process id of a child that does the work and ends."""
    pid = os.fork()
    if pid:
        return pid
    code = 0
    try:
        work()
    except BaseException as error:
        code = 3
        if not (folder / f"error_{rank}").exists():
            write_error(folder, rank, error)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def mpi(job: dict[str, Any], folder: Path) -> None:
    """A rank of an MPI launch."""
    watch(job["launcher"], folder)
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError):
        (folder / "no_library").touch()
        raise
    if MPI.COMM_WORLD.size != job["ranks"]:  # each rank alone: mpiexec is of another MPI
        (folder / "no_library").touch()
        raise RuntimeError(f"{MPI.COMM_WORLD.size} ranks instead of {job['ranks']}")
    diary = Diary(folder, MPI.COMM_WORLD.rank)
    known: dict[str, Any] = {}

    def run(module: ModuleType, function: str, values: Array, alone: bool) -> Any:
        result = getattr(module, function)(values, make_groups(module, {} if alone else known))
        return values if result is None else result

    try:
        each(job, folder, diary, run, MPI.COMM_WORLD.Barrier)
    except BaseException as error:
        diary.failed(error)
        time.sleep(10)  # the launcher ends all ranks; until then others can say what is wrong with them
        MPI.COMM_WORLD.Abort(3)
    MPI.Finalize()


def gloo(job: dict[str, Any], folder: Path) -> int:
    """All ranks of torch.distributed over gloo: torch is loaded once, and each rank is a fork."""
    import torch

    torch.set_num_threads(1)
    work = (partial(gloo_rank, job, folder, rank) for rank in range(job["ranks"]))
    return supervise(folder, {forked(folder, rank, one): rank for rank, one in enumerate(work)})


def gloo_rank(job: dict[str, Any], folder: Path, rank: int) -> None:
    """A rank of torch.distributed over gloo."""
    import torch
    import torch.distributed as dist

    watch(job["launcher"], folder)
    diary = Diary(folder, rank)
    known: dict[str, Any] = {}

    def run(module: ModuleType, function: str, values: Array, alone: bool) -> Any:
        tensor = torch.from_numpy(values)
        result = getattr(module, function)(tensor, make_groups(module, {} if alone else known))
        return tensor if result is None else result

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
    except BaseException as error:
        diary.failed(error)
        raise


def jax_devices(job: dict[str, Any], folder: Path) -> None:
    """All ranks in one process, on as many forced host devices."""
    watch(job["launcher"], folder)
    diary = Diary(folder, 0)
    try:
        import jax
        from jax.sharding import Mesh, NamedSharding, PartitionSpec

        mesh = Mesh(np.array(jax.devices()[: job["ranks"]]), ("ranks",))

        def run(module: ModuleType, function: str, values: Array, alone: bool) -> Any:
            spread = jax.device_put(values.reshape(-1), NamedSharding(mesh, PartitionSpec("ranks")))
            return module.over(mesh)(spread)

        each(job, folder, diary, run, lambda: None)
    except BaseException as error:
        diary.failed(error)
        raise


RANK_NAMES = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")
"""Where launchers of MPI tell a process its rank, before it joins the others."""


def main() -> None:
    """Run the job of the folder on the command line; each rank in a process of its own, below one that sees it end."""
    folder = Path(sys.argv[1])
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    if job["backend"] == "gloo":
        watch(job["launcher"], folder)
        code = gloo(job, folder)
    else:
        rank = int(next((os.environ[name] for name in RANK_NAMES if name in os.environ), "0"))
        rank = rank if job["backend"] == "mpi" else 0
        work = partial({"mpi": mpi, "jax": jax_devices}[job["backend"]], job, folder)
        code = supervise(folder, {forked(folder, rank, work): rank})
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
