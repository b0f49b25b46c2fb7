# SPDX-License-Identifier: Apache-2.0
"""Two ranks that divide weights (fsdp) or batches (data) against one rank on the same work and cores, with the chunks
that the planner takes and with one chunk: time of a step, and the share of it in which transfers are exposed."""
import statistics
import sys

from common import alternate, model_of, temporary

SETTINGS = {"one rank": []}
for mesh, more in (("fsdp=2", []), ("data=2", []), ("data=2", ["--shard-optimizer"])):
    name = " ".join([mesh, *more])
    SETTINGS[name] = ["--mesh", mesh, *more]
    SETTINGS[name + ", one chunk"] = ["--mesh", mesh, *more, "--repeats", "1"]
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5

with temporary() as folder:
    model = model_of("110m", folder)
    runs = alternate(SETTINGS, ["--model", model, "--dtype", "bf16", "--batch-size", "8", "--sequence-length", "256",
                                "--microbatches", "2"], folder, ROUNDS)


def rate(name):
    """Tokens per second: the median of the rounds, of the median of the steps after the first."""
    return statistics.median(
        statistics.median(event["tokens_per_second"] for event in events if event["event"] == "step" and event["step"] > 1)
        for events in runs[name])


for name in SETTINGS:
    exposed = statistics.median(events[-1]["exposed_share"] for events in runs[name])
    print(f"{name}: {rate(name):.0f} tokens/s, {rate('one rank') / rate(name):.3f} x the time of one rank, "
          f"{exposed:.2%} of the steps' time exposed")
