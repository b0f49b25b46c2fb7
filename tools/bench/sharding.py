# SPDX-License-Identifier: Apache-2.0
"""Cost of dividing weights inside the pipeline: fsdp=2, stage=2 with 2 repeats, gathered per repeat, against one
rank on the same work and cores; and how much of the gathers and reduce-scatters runs under compute.

The model is the 110m configuration, whose 12 layers 2 x 2 chunks divide."""
import os

from common import compile_trainer, model_of, random_tokens, temporary, throughput, train

SETTINGS = {
    "one rank": [],
    "fsdp=2,stage=2": ["--mesh", "fsdp=2,stage=2", "--repeats", "2", "--weight-gather", "per-repeat"],
    "stage=4": ["--mesh", "stage=4", "--repeats", "3"],
}
with temporary() as folder:
    model = model_of("110m", folder)
    data = random_tokens(folder, 32000)
    trainers = {}
    for name, arguments in SETTINGS.items():
        trainers[name] = os.path.join(folder, name.replace(" ", "-"))
        compile_trainer(["--model", model, "--batch-size", "16", "--sequence-length", "256", "--microbatches", "4",
                         *arguments], trainers[name])
    # Alternated, so that a slow minute of the machine affects all of them.
    best, moved = dict.fromkeys(SETTINGS, 0.0), {}
    for _ in range(2):
        for name, trainer in trainers.items():
            events = train(trainer, data, 3)
            best[name] = max(best[name], throughput(events))
            moved[name] = {kind: events[-1][kind] for kind in ("unshard", "reduce_grad")}
    for name, tokens in best.items():
        shares = "".join(f", {kind['hidden']:.1%} of {key} hidden" for key, kind in moved[name].items() if kind["count"])
        seconds = sum(kind["seconds"] for kind in moved[name].values())
        if seconds:
            waited = sum(kind["waited"] for kind in moved[name].values())
            shares += f", {1 - waited / seconds:.1%} of both"
        print(f"{name}: {tokens:.0f} tokens/s, {best['one rank'] / tokens:.3f} x the time of one rank{shares}")
