# SPDX-License-Identifier: Apache-2.0
"""Step times of random configurations on this host beside those that `rota plan` predicts for the machine that `rota machine
measure` writes: families, meshes of threads, schedules, policies of rematerialization, both types. Neighbours of a virtual
machine slow it down for seconds and for minutes, by more than predictions err. So the host is measured before
each configuration trains for some seconds, in several rounds. The measured time is the median of the rounds' median steps, the
predicted one the median over the rounds' machines. Beside each stands its range over the rounds, what the host did; a second
error compares the quickest of the rounds, which neighbours change less. Trainers are compiled for the first machine, and a ring
is asked for by name, so that all predictions are of the same programs."""
import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys

from common import ROTA, compile_trainer, model_of, random_tokens, run, temporary, train

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--configurations", type=int, default=20)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--rounds", type=int, default=3, help="of eight minutes each, with 20 configurations")
parser.add_argument("--measure", type=int, default=15, help="seconds in which the host is measured")
parser.add_argument("--seconds", type=int, default=6, help="that a configuration trains in a round")
options = parser.parse_args()

SMALL = {"hidden_size": 256, "intermediate_size": 704, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
         "num_hidden_layers": 8, "vocab_size": 2048, "max_position_embeddings": 1024}
FAMILIES = {
    "tiny": {"vocab_size": 2048},
    "tiny-moe": {"vocab_size": 2048},
    "llama-3.1-8b": SMALL,
    "qwen3-8b": SMALL,
    "olmo-2-7b": SMALL | {"num_key_value_heads": 4},
    "gpt2": {"n_embd": 256, "n_head": 4, "n_layer": 8, "n_inner": 1024, "vocab_size": 2048},
}
MESHES = ["stage=1", "data=2", "fsdp=2", "tensor=2", "sequence=2", "context=2", "stage=2", "stage=4", "data=2,stage=2",
          "fsdp=2,stage=2", "tensor=2,stage=2"]
SCHEDULES = [("gpipe", 1), ("1f1b", 1), ("zb1p", 1), ("circular", 2), ("interleaved-1f1b", 2), ("zbv", 2)]


def draw(choose):
    """A configuration: the name of its model, and the arguments of rota."""
    mesh = choose.choice(MESHES)
    batch = choose.choice([8, 16])
    arguments = ["--mesh", mesh, "--batch-size", str(batch), "--sequence-length", str(choose.choice([128, 256])),
                 "--dtype", choose.choice(["f32", "bf16"]), "--remat", choose.choice(["none", "minimal", "full"])]
    if "context" in mesh:
        arguments += ["--context-exchange", "ring"]
    if "stage=1" not in mesh and "stage" in mesh:
        schedule, repeats = choose.choice(SCHEDULES)
        arguments += ["--schedule", schedule, "--repeats", str(repeats), "--microbatches", str(choose.choice([4, 8]))]
    return choose.choice(list(FAMILIES)), arguments


class Configuration:
    """A configuration that the planner takes, its trainer, and its times by round."""

    def __init__(self, family, arguments, folder):
        os.mkdir(folder)
        self.name = " ".join([family, *arguments])
        self.arguments = ["--model", model_of(family, folder, **FAMILIES[family]), *arguments]
        self.trainer = os.path.join(folder, "trainer")
        self.measured, self.predicted = [], []

    def is_valid(self):
        """Whether the mesh divides the model and the schedule takes that many microbatches."""
        return subprocess.run([ROTA, "plan", *self.arguments], capture_output=True).returncode == 0

    def measure(self, tokens):
        """Adds the median of the steps after the first two, in seconds."""
        size = math.prod(int(self.arguments[self.arguments.index(flag) + 1]) for flag in ("--batch-size", "--sequence-length"))
        events = train(self.trainer, tokens, 1 << 20, ["--eval-interval", "0", "--time-limit", str(options.seconds)])
        self.measured.append(statistics.median(size / event["tokens_per_second"] for event in events
                                               if event["event"] == "step" and event["step"] > 2))

    def predict(self, machine):
        """Adds the seconds of a step on the machine of that file."""
        self.predicted.append(json.loads(run([ROTA, "plan", *self.arguments, "--machine", machine, "--json"]))["step_seconds"])


def measure_host(machine):
    run([ROTA, "machine", "measure", "--seconds", str(options.measure), "-o", machine])


def draw_all(folder, machine):
    """Configurations with their trainers compiled for that machine."""
    choose, drawn, tried = random.Random(options.seed), [], 0
    while len(drawn) < options.configurations:
        configuration = Configuration(*draw(choose), os.path.join(folder, str(tried)))
        tried += 1
        if configuration.is_valid():
            compile_trainer([*configuration.arguments, "--machine", machine], configuration.trainer)
            drawn.append(configuration)
    return drawn


def cells(seconds):
    """The median and the range of times, in ms."""
    return f"{1e3 * statistics.median(seconds):>6.0f} {1e3 * min(seconds):>5.0f} to {1e3 * max(seconds):<5.0f}"


with temporary() as folder:
    tokens, machine = random_tokens(folder, 2048), os.path.join(folder, "here.json")
    measure_host(machine)
    configurations = draw_all(folder, machine)
    for number in range(options.rounds):
        for configuration in configurations:
            print(f"round {number + 1} of {options.rounds}: {configuration.name}", file=sys.stderr, flush=True)
            measure_host(machine)
            configuration.predict(machine)
            configuration.measure(tokens)
print(f"{'measured, ms':>20} {'predicted, ms':>20} {'error':>7} {'quickest':>8}  configuration")
errors = {"median": [], "quickest round": []}
for each in configurations:
    for found, pick in zip(errors.values(), (statistics.median, min)):
        found.append(pick(each.predicted) / pick(each.measured) - 1)
    median, quickest = (found[-1] for found in errors.values())
    print(f"{cells(each.measured)} {cells(each.predicted)} {median:>+7.1%} {quickest:>+8.1%}  {each.name}")
for name, each in errors.items():
    print(f"{name}: average error {statistics.mean(map(abs, each)):.1%}, {statistics.mean(each):+.1%} with its sign, largest "
          f"{max(map(abs, each)):.1%}")
