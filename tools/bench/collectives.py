# SPDX-License-Identifier: Apache-2.0
"""All-gather and reduce-scatter of 64 MB: between threads against memcpy, between processes against MPI's own."""
import os

from common import ROOT, run

BENCH = os.path.join(ROOT, "build", "bin", "bench-collectives")
print(run([BENCH]), end="")
for ranks in 2, 4:
    # Alternated, so that a slow minute of the machine affects both.
    best = {}
    for _ in range(3):
        for mode in "mpi-own", "mpi":
            times = run(["mpirun", "--oversubscribe", "--allow-run-as-root", "-n", str(ranks), BENCH, mode])
            for name, time in zip(("all-gather", "reduce-scatter"), map(float, times.split())):
                best[mode, name] = min(time, best.get((mode, name), time))
    for name in "all-gather", "reduce-scatter":
        ours, own = best["mpi", name], best["mpi-own", name]
        print(f"{name:14} over {ranks} processes: {ours:6.1f} ms, {own / ours:.2f} x the speed of MPI's own")
