# SPDX-License-Identifier: Apache-2.0
"""Cost of a pipeline of 4 ranks, 2 repeats and 8 microbatches against one rank on the same work and cores.

The model is the 110m configuration with 16 layers, which 4 x 2 chunks divide."""
import os

from common import compile_trainer, model_of, random_tokens, temporary, throughput, train

SETTINGS = {
    "one rank": [],
    "circular": ["--mesh", "stage=4", "--schedule", "circular", "--repeats", "2"],
    "interleaved-1f1b": ["--mesh", "stage=4", "--schedule", "interleaved-1f1b", "--repeats", "2"],
}
with temporary() as folder:
    model = model_of("110m", folder, num_hidden_layers=16)
    data = random_tokens(folder, 32000)
    trainers = {}
    for name, arguments in SETTINGS.items():
        trainers[name] = os.path.join(folder, name.replace(" ", "-"))
        compile_trainer(["--model", model, "--batch-size", "8", "--sequence-length", "256", "--microbatches", "8",
                         *arguments], trainers[name])
    # Alternated, so that a slow minute of the machine affects all of them.
    best = dict.fromkeys(SETTINGS, 0.0)
    for _ in range(2):
        for name, trainer in trainers.items():
            best[name] = max(best[name], throughput(train(trainer, data, 3)))
    for name, tokens in best.items():
        print(f"{name}: {tokens:.0f} tokens/s, {best['one rank'] / tokens:.3f} x the time of one rank")
