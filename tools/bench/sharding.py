# SPDX-License-Identifier: Apache-2.0
"""Cost of dividing weights inside the pipeline: fsdp=2, stage=2 with 2 repeats, gathered per repeat, against one
rank on the same work and cores; and how much of the gathers and reduce-scatters runs under compute.

The model is the 110m configuration, whose 12 layers 2 x 2 chunks divide."""
from common import alternate, dtype_argument, model_of, temporary, throughput

DTYPE = dtype_argument(__doc__)
SETTINGS = {
    "one rank": [],
    "fsdp=2,stage=2": ["--mesh", "fsdp=2,stage=2", "--repeats", "2", "--weight-gather", "per-repeat"],
    "stage=4": ["--mesh", "stage=4", "--repeats", "3"],
}
with temporary() as folder:
    model = model_of("110m", folder)
    runs = alternate(SETTINGS, [*DTYPE, "--model", model, "--batch-size", "16", "--sequence-length", "256",
                                "--microbatches", "4"], folder, rounds=2)
    best = {name: max(map(throughput, events)) for name, events in runs.items()}
    moved = {name: {kind: events[-1][-1][kind] for kind in ("unshard", "reduce_grad")} for name, events in runs.items()}
    for name, tokens in best.items():
        shares = "".join(f", {kind['hidden']:.1%} of {key} hidden" for key, kind in moved[name].items() if kind["count"])
        seconds = sum(kind["seconds"] for kind in moved[name].values())
        if seconds:
            waited = sum(kind["waited"] for kind in moved[name].values())
            shares += f", {1 - waited / seconds:.1%} of both"
        print(f"{name}: {tokens:.0f} tokens/s, {best['one rank'] / tokens:.3f} x the time of one rank{shares}")
