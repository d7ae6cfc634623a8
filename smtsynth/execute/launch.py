"""Launching the processes of a trial run and watching them: their results, or which ranks wait and where."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from smtsynth.errors import InputError

WORKER = Path(__file__).with_name("worker.py")
BACKENDS = ("mpi", "gloo", "jax")
FINISHED = "finished"
START_PATIENCE = 180.0
"""Seconds that ranks may take to import their libraries and find each other, at least."""


CONSEQUENCE = re.compile(
    r"(?i)connection (reset|closed|refused|aborted)|broken pipe|socket closed|closed by peer|proc(ess)?[_ ]?fail"
)
"""What the others say when a rank has died."""
NOISE = re.compile(r"(?i)[=\-\s]*$|=|your application terminated|this typically refers|please see the faq|\*+$")


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a launch ended before its last program: the program's number, how, and each rank's place or error (rank
    None: of no one rank)."""

    program: int | None
    how: Literal["hang", "error", "interrupt"]
    ranks: tuple[tuple[int | None, str], ...]


def check_backend(backend: str) -> None:
    """InputError for an unknown backend, or where what it needs isn't installed (which extra brings it)."""
    if backend not in BACKENDS:
        raise InputError(f"backend {backend!r} is unknown", expected=", ".join(BACKENDS))
    module, extra = {"mpi": ("mpi4py", "run"), "gloo": ("torch", "torch"), "jax": ("jax", "jax")}[backend]
    if importlib.util.find_spec(module) is None:
        raise InputError(f"{module} is not installed", where=f"backend {backend}", expected=_install(extra))
    if backend == "mpi" and find_mpiexec() is None:
        raise InputError("there is no mpiexec", where="backend mpi", expected=_install("run"))


def _install(extra: str) -> str:
    return f"pip install 'smtsynth[{extra}]'"


def find_mpiexec() -> str | None:
    """The mpiexec beside this Python, else the one on the path."""
    return shutil.which("mpiexec", path=os.path.dirname(sys.executable)) or shutil.which("mpiexec")


def _command(backend: str, folder: Path, ranks: int) -> list[str]:
    worker = [sys.executable, str(WORKER), str(folder)]
    return [find_mpiexec() or "mpiexec", "-n", str(ranks), *worker] if backend == "mpi" else worker


def _environment(backend: str, ranks: int) -> dict[str, str]:
    found = dict(os.environ)
    found["OMP_NUM_THREADS"] = "1"
    # Open MPI counts cores and refuses more ranks; MPICH knows none of these.
    found["OMPI_MCA_rmaps_base_oversubscribe"] = "1"
    found["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"
    # MPICH: a rank that waits gives its core to the others, of which there are more than cores.
    found.setdefault("MPIR_CVAR_ENABLE_HEAVY_YIELD", "1")
    if backend == "jax":
        flags = re.sub(r"--xla_force_host_platform_device_count=\S+", "", found.get("XLA_FLAGS", ""))
        found["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count={ranks}".strip()
        found["JAX_PLATFORMS"] = "cpu"
        found["JAX_ENABLE_X64"] = "1"
    return found


class Watch:
    """The ranks of a launch, as far as their files tell."""

    def __init__(self, folder: Path, ranks: int, one: bool = False) -> None:
        """one: whether one process stands for all ranks."""
        self.folder, self.ranks, self.one = folder, range(1 if one else ranks), one
        self.events: list[set[tuple[str, int]]] = [set() for _ in self.ranks]
        self.read = [0 for _ in self.ranks]  # bytes of each rank's file
        self.current = 0  # the first program that some rank has not finished

    def look(self) -> int:
        """Read what is new; how many events there are."""
        for rank in self.ranks:
            path = self.folder / f"progress_{rank}"
            if not path.exists():
                continue
            with open(path, "rb") as file:
                file.seek(self.read[rank])
                new = file.read()
            new = new[: new.rfind(b"\n") + 1]  # whole lines
            self.read[rank] += len(new)
            words = (line.split() for line in new.decode("utf-8").splitlines())
            self.events[rank].update((event, int(number)) for event, number in words)
        while self.done(self.current):
            self.current += 1
        return sum(map(len, self.events))

    @property
    def pids(self) -> list[int]:
        """Process ids of the ranks that have started."""
        return [number for events in self.events for event, number in events if event == "pid"]

    @property
    def ready(self) -> bool:
        """Whether every rank has started."""
        return all(("ready", 0) in events for events in self.events)

    @property
    def failed(self) -> bool:
        """Whether some rank has written down an error, or has ended."""
        return any((self.folder / f"{what}_{rank}").exists() for rank in self.ranks for what in ("error", "exit"))

    def ended(self, rank: int) -> tuple[int, int] | None:
        """(nanoseconds, exit code) of a rank that has ended; a signal is a negative code."""
        path = self.folder / f"exit_{rank}"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return (path.stat().st_mtime_ns, int(text)) if text.endswith("\n") else None

    def done(self, program: int) -> bool:
        """Whether every rank has finished the program."""
        return all(("done", program) in events for events in self.events)

    def place(self, rank: int, program: int) -> str:
        """What a rank is at while others are in `program`, in words."""
        if ("done", program) in self.events[rank]:
            return FINISHED
        if ("start", program) not in self.events[rank]:
            return "not started" if self.events[rank] else "not come up"
        return self.stack(rank)

    def stack(self, rank: int) -> str:
        """Where a rank's stack, written on a signal, is in a program: its step, or its line."""
        path = self.folder / f"stack_{rank}"
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        for file, number in re.findall(r'File "([^"]+)", line (\d+)', text):
            if Path(file).parent == self.folder and Path(file).exists():
                lines = Path(file).read_text(encoding="utf-8").split("\n")
                for line in reversed(lines[: int(number)]):
                    if re.match(r"\s*# \d+\. ", line):
                        step, what = line.strip()[2:].split(":")[0].split(". ", 1)
                        return f"in step {step} ({what})"
                    if line.startswith("def "):
                        return f"in {line[4:].split('(')[0]}"
        return "waiting"


def launch(folder: Path, backend: str, ranks: int, programs: int, patience: float) -> Stop | None:
    """Run the job that lies in `folder` (job.json and what it names); None if every rank finished every program.

    patience: seconds that may pass without any rank's getting on; an interrupt stops it too. All processes are ended
    before this returns.
    """
    with open(folder / "output", "wb") as output:
        process = subprocess.Popen(
            _command(backend, folder, ranks),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(backend, ranks),
            cwd=folder,
            start_new_session=True,
        )
    watch = Watch(folder, ranks, one=backend == "jax")
    stop: Stop | None = Stop(None, "error", ())
    try:
        stop = _follow(watch, process, programs, patience)
        if (folder / "no_library").exists():
            raise InputError(
                "mpi4py finds no MPI library that goes with this mpiexec", where="backend mpi", expected=_install("run")
            )
        return stop
    except KeyboardInterrupt:
        return Stop(watch.current, "interrupt", ())
    finally:
        _end(process, gently=stop is None)


def _follow(watch: Watch, process: subprocess.Popen[bytes], programs: int, patience: float) -> Stop | None:
    seen, since = 0, time.monotonic()
    while True:
        code = process.poll()
        now = watch.look()
        if watch.current == programs:
            (watch.folder / "close").touch()
            return None
        if code is not None or watch.failed:
            return _broken(watch)
        if now != seen:
            seen, since = now, time.monotonic()
        limit = patience if watch.ready else max(patience, START_PATIENCE)
        if time.monotonic() - since > limit:
            for pid in watch.pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGUSR1)
            time.sleep(0.5)
            ranks = tuple((rank, watch.place(rank, watch.current)) for rank in watch.ranks)
            return Stop(watch.current if watch.ready else None, "hang", ranks)
        time.sleep(0.05)


def _broken(watch: Watch) -> Stop:
    """A rank failed: the first cause, by rank where there is one.

    What a rank raised, and how one ended that raised nothing, comes before ranks that were killed (as launchers kill
    what is left), and that before what only says that another rank is gone; for that, the cause is waited for a little.
    """
    for _ in range(5):
        time.sleep(0.5)
        watch.look()
        raised, killed, echoes = _causes(watch)
        if raised:
            break
    found: list[tuple[int | None, str]] = [*(raised or killed[:1] or echoes)]
    if watch.one:  # one process for all ranks
        found = [(None, text) for _, text in found]
    if not found:
        lines = (watch.folder / "output").read_text(encoding="utf-8", errors="replace").split("\n")
        text = next((line.strip() for line in reversed(lines) if not NOISE.match(line.strip())), "")
        found = [(None, text or "the launch ended without a word")]
    return Stop(watch.current if watch.ready else None, "error", tuple(found))


Said = list[tuple[int, str]]


def _causes(watch: Watch) -> tuple[Said, Said, Said]:
    """(rank, what became of it) of ranks that failed by themselves, that were killed (first one first), and that only
    saw another one fail."""
    raised, killed, echoes = Said(), list[tuple[int, int, str]](), Said()
    for rank in watch.ranks:
        path, end = watch.folder / f"error_{rank}", watch.ended(rank)
        if path.exists():
            text = path.read_text(encoding="utf-8")
            (echoes if CONSEQUENCE.search(text) else raised).append((rank, text))
        elif end is not None:
            text = f"was ended by {signal_name(-end[1])}" if end[1] < 0 else f"ended early, with exit code {end[1]}"
            if -end[1] in (signal.SIGKILL, signal.SIGTERM):
                killed.append((end[0], rank, text))
            else:
                raised.append((rank, text))
    return raised, [(rank, text) for _, rank, text in sorted(killed)], echoes


def signal_name(number: int) -> str:
    """Signal 11 (SIGSEGV, Segmentation fault)."""
    with contextlib.suppress(ValueError):
        name = signal.Signals(number).name
        return f"signal {number} ({name}, {signal.strsignal(number)})"
    return f"signal {number}"


def _end(process: subprocess.Popen[bytes], gently: bool) -> None:
    """End what is still running: by request first, then by force. Workers also end by themselves soon after their
    folder is gone. gently: all went well, and the launch is given time to close its library."""
    for wait, number in ((10 if gently else 0, signal.SIGTERM), (2, signal.SIGKILL)):
        try:
            process.wait(timeout=wait)
            return
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, number)  # its own session: the launcher and what it forked
    process.wait()
