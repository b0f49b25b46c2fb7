# SPDX-License-Identifier: Apache-2.0
"""Step times of schedules on 4 ranks that share this machine's cores, and their ratios to those that `rota plan --measured`
simulates with costs of one traced run: models of 8 and of 16 layers (or --layers N,...). Costs are those of a split backward
(I, W); B is their sum. The median of the steps after the first two."""
import argparse
import json
import os
import statistics
import sys

from common import ROTA, compile_trainer, model_of, random_tokens, run, temporary, train

STEPS, BATCH, SEQUENCE, MICROBATCHES = 10, 16, 256, 16
ONE_CHUNK = ["gpipe", "1f1b", "eager-1f1b", "zb1p", "zb2p"]
TWO_CHUNKS = ["circular", "looped-bfs", "interleaved-1f1b", "interleaved-overlap", "interleaved-zero-bubble", "zbv", "v-half",
              "v-min", "dualpipev"]
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--layers", default="8,16", help="of the models, separated by commas")
options = parser.parse_args()
cores = str(len(os.sched_getaffinity(0)))


def seconds(events):
    rates = [e["tokens_per_second"] for e in events if e["event"] == "step" and e["step"] > 2]
    return BATCH * SEQUENCE / statistics.median(rates)


def measure(arguments, folder, tokens, more=()):
    trainer = os.path.join(folder, "trainer")
    compile_trainer(arguments, trainer)
    return seconds(train(trainer, tokens, STEPS, ["--threads", cores, "--eval-interval", "0", *more]))


with temporary() as folder:
    worst = 1.0
    for layers in map(int, options.layers.split(",")):
        model = model_of("tiny", folder, num_hidden_layers=layers)
        tokens = random_tokens(folder, json.load(open(model))["vocab_size"])
        shape = ["--model", model, "--mesh", "stage=4", "--batch-size", str(BATCH), "--sequence-length", str(SEQUENCE),
                 "--microbatches", str(MICROBATCHES)]
        for chunks, traced, schedules in (1, "zb1p", ONE_CHUNK), (2, "interleaved-zero-bubble", TWO_CHUNKS):
            trace = os.path.join(folder, "trace.json")
            own = [*shape, "--repeats", str(chunks)]
            measure([*own, "--schedule", traced], folder, tokens, ["--trace", trace])
            for schedule in schedules:
                arguments = [*own, "--schedule", schedule]
                real = measure(arguments, folder, tokens)
                plan = json.loads(run([ROTA, "plan", *arguments, "--measured", trace, "--cores", cores, "--json"]))
                ratio = real / plan["measured"]["step_seconds"]
                worst = max(worst, ratio, 1 / ratio)
                print(f"{layers:2} layers, {chunks} chunks, {schedule:24} {1e3 * real:8.1f} ms, {ratio:.3f} x the planned")
                sys.stdout.flush()
    print(f"largest ratio either way {worst:.3f}")
