# SPDX-License-Identifier: Apache-2.0
"""Two ranks that divide weights (fsdp) or batches (data) against one rank on the same work and cores, with the chunks
that the planner takes and with one chunk: time of a step, and the share of it in which transfers are exposed."""
import os
import statistics
import sys

from common import compile_trainer, model_of, random_tokens, temporary, train

SETTINGS = {"one rank": []}
for mesh, more in (("fsdp=2", []), ("data=2", []), ("data=2", ["--shard-optimizer"])):
    name = " ".join([mesh, *more])
    SETTINGS[name] = ["--mesh", mesh, *more]
    SETTINGS[name + ", one chunk"] = ["--mesh", mesh, *more, "--repeats", "1"]
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5

with temporary() as folder:
    model = model_of("110m", folder)
    data = random_tokens(folder, 32000)
    trainers = {}
    for name, arguments in SETTINGS.items():
        trainers[name] = os.path.join(folder, str(len(trainers)))
        compile_trainer(["--model", model, "--dtype", "bf16", "--batch-size", "8", "--sequence-length", "256",
                         "--microbatches", "2", *arguments], trainers[name])
    rates, exposed = {name: [] for name in SETTINGS}, {name: [] for name in SETTINGS}
    # Alternated, so that a slow minute of the machine affects all of them.
    for _ in range(ROUNDS):
        for name, trainer in trainers.items():
            events = train(trainer, data, 3)
            rates[name].append(statistics.median(
                event["tokens_per_second"] for event in events if event["event"] == "step" and event["step"] > 1))
            exposed[name].append(events[-1]["exposed_share"])
    one = statistics.median(rates["one rank"])
    for name in SETTINGS:
        rate = statistics.median(rates[name])
        print(f"{name}: {rate:.0f} tokens/s, {one / rate:.3f} x the time of one rank, "
              f"{statistics.median(exposed[name]):.2%} of the steps' time exposed")
