"""Where to put two parallelism axes on a cluster, and which collectives to run there. Run: python quickstart.py"""

from smtsynth import Level, Problem, Reduction, System, show_program, simulate, solve

# 4 servers of 16 GPUs. A level's bandwidth is that of one unit's uplink, in one direction.
system = System(
    [
        Level("server", 4, bandwidth="8 GB/s", latency="20 us"),
        Level("gpu", 16, bandwidth="270 GB/s", latency="3 us"),
    ]
)

# 16-way data parallelism times 4-way sharding; 2 GiB of gradients per GPU are summed over the data axis.
problem = Problem(system, {"data": 16, "shard": 4}, Reduction(over=["data"], payload="2 GiB"))

# Every placement, best program each, with the solver's proof that no program in the model is cheaper.
best = solve(problem)
print("placement       plain AllReduce   best program")
for one in best.placements:
    print(f"{one.placement!s:15} {one.allreduce / 1e6:12.3f} ms {one.cost / 1e6:11.3f} ms  {one.status}")
print(f"Best: {best.placement} with {show_program(best.program, best.lowering.names)}")

# If the data axis has to be spread over two servers, the hierarchical program pays off:
spread = solve(problem, placement=[[2, 8], [2, 2]])
print(f"\nOn {spread.placement}, {spread.speedup:.2f}x faster than one AllReduce:")
for instruction, step in zip(spread.program, simulate(problem, spread.program, spread.placement), strict=True):
    print(f"  {show_program((instruction,), spread.lowering.names):34} {step.nanoseconds / 1e6:9.3f} ms")

# Your own program is priced by the same model.
mine = "Reduce(server, InsideGroup); AllReduce(server, Master(root)); Broadcast(server, InsideGroup)"
seconds = sum(step.nanoseconds for step in simulate(problem, mine, spread.placement)) / 1e9
print(f"\nOne leader per server instead: {1e3 * seconds:.3f} ms")
