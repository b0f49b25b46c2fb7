# SPDX-License-Identifier: Apache-2.0
"""Cost of a pipeline of 4 ranks, 2 repeats and 8 microbatches against one rank on the same work and cores.

The model is the 110m configuration with 16 layers, which 4 x 2 chunks divide."""
from common import alternate, dtype_argument, model_of, temporary, throughput

DTYPE = dtype_argument(__doc__)
SETTINGS = {
    "one rank": [],
    "circular": ["--mesh", "stage=4", "--schedule", "circular", "--repeats", "2"],
    "interleaved-1f1b": ["--mesh", "stage=4", "--schedule", "interleaved-1f1b", "--repeats", "2"],
}
with temporary() as folder:
    model = model_of("110m", folder, num_hidden_layers=16)
    runs = alternate(SETTINGS, [*DTYPE, "--model", model, "--batch-size", "8", "--sequence-length", "256", "--microbatches",
                                "8"], folder, rounds=2)
    best = {name: max(map(throughput, events)) for name, events in runs.items()}
    for name, tokens in best.items():
        print(f"{name}: {tokens:.0f} tokens/s, {best['one rank'] / tokens:.3f} x the time of one rank")
