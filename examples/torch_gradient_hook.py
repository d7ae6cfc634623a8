"""A gradient hook for PyTorch's data-parallel training that runs a synthesized program in place of all_reduce.

Two nodes of two devices, played by four processes over gloo: solve, write the best program as Python, register it as
DistributedDataParallel's communication hook, and train the same small model with and without it.

    pip install 'smtsynth[torch]'
    python examples/torch_gradient_hook.py
"""

import importlib.util
import tempfile
from pathlib import Path

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    from torch.nn.parallel import DistributedDataParallel
except ImportError:
    raise SystemExit("this example needs torch: pip install 'smtsynth[torch]'") from None

RANKS, STEPS = 4, 2


def synthesize() -> str:
    """The cheapest program for gradients of 64 MiB over all four devices, as the text of a Python module."""
    from smtsynth import Level, Problem, Reduction, System, lower, show_program, solve
    from smtsynth.export.goals import script_of
    from smtsynth.export.torch_program import torch_text

    system = System([Level("node", 2, "8 GB/s", "20 us"), Level("gpu", 2, "200 GB/s", "3 us")])
    problem = Problem(system, {"data": RANKS}, Reduction(["data"], "64 MiB"))
    solution = solve(problem, [[2, 2]])
    lowering = lower(problem, [[2, 2]])
    print(f"{solution.status}: {show_program(solution.program, lowering.names)}")
    return torch_text(script_of(problem, lowering, solution.program))


def average(state, bucket):
    """The hook: the bucket's mean over the ranks, where the built-in hook puts it."""
    program, groups = state
    gradients = bucket.buffer().div_(dist.get_world_size())
    program.all_reduce(gradients, groups)
    done = torch.futures.Future()
    done.set_result(gradients)
    return done


def train(rank: int, hook=None) -> torch.Tensor:
    """All parameters after a few steps on this rank's own data. Small whole numbers, so that every sum is exact."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randint(-2, 3, parameter.shape))
    parallel = DistributedDataParallel(model)
    if hook is not None:
        parallel.register_comm_hook(*hook)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=2**-6)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(STEPS):
        inputs = torch.randint(-3, 4, (4, 7), generator=generator).double()
        optimizer.zero_grad()
        parallel(inputs).square().sum().backward()
        optimizer.step()
    return torch.nn.utils.parameters_to_vector(parallel.parameters()).detach()


def worker(rank: int, folder: str) -> None:
    """One rank: train both ways and compare."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=RANKS)
    spec = importlib.util.spec_from_file_location("synthesized", f"{folder}/synthesized.py")
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    plain = train(rank)
    ours = train(rank, hook=((program, program.make_groups()), average))
    assert torch.equal(plain, ours), (plain - ours).abs().max()
    if rank == 0:
        print(f"{STEPS} steps on {RANKS} ranks: all {len(ours)} parameters equal those of plain all_reduce")
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "synthesized.py").write_text(synthesize())
        torch.optim.SGD([torch.zeros(1)], lr=1)  # loads what optimizers need, once and not in every fork
        mp.start_processes(worker, args=(folder,), nprocs=RANKS, start_method="fork")
