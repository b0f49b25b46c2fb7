# SPDX-License-Identifier: Apache-2.0
"""Step times of random configurations on this host beside those that `rota plan` predicts for the machine that `rota machine
measure` writes: families, meshes of threads, schedules, policies of rematerialization, both types. A host's speed may drift
by more than predictions err, so each configuration is trained for some seconds before and after the host is measured. The
measured time is the median of the steps of both runs, without the first two of each, beside the least, which other programs
change less."""
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
parser.add_argument("machine", nargs="?", help="the file that `rota machine measure -o` wrote, for all configurations")
parser.add_argument("--configurations", type=int, default=20)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--run-seconds", type=float, default=8, help="of each of a configuration's two runs, as predicted")
parser.add_argument("--seconds", type=float, default=1e9, help="no configuration begins after this time")
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
    if "stage=1" not in mesh and "stage" in mesh:
        schedule, repeats = choose.choice(SCHEDULES)
        arguments += ["--schedule", schedule, "--repeats", str(repeats), "--microbatches", str(choose.choice([4, 8]))]
    return choose.choice(list(FAMILIES)), arguments


def measured_machine():
    """The text of the file of this host as it is now."""
    with temporary() as folder:
        path = os.path.join(folder, "here.json")
        run([ROTA, "machine", "measure", "-o", path])
        return open(path).read()


def predict(arguments, machine):
    """Seconds of a step on the machine of that text."""
    with temporary() as folder:
        path = os.path.join(folder, "here.json")
        with open(path, "w") as file:
            file.write(machine)
        return json.loads(run([ROTA, "plan", *arguments, "--machine", path, "--json"]))["step_seconds"]


def steps(trainer, tokens, count, tokens_of_step):
    """Seconds of each step after the first two."""
    return [tokens_of_step / event["tokens_per_second"] for event in train(trainer, tokens, count, ["--eval-interval", "0"])
            if event["event"] == "step" and event["step"] > 2]


choose = random.Random(options.seed)
given = open(options.machine).read() if options.machine else None
machine = given or measured_machine()
errors = []
begin = os.times().elapsed
print(f"{'measured':>9} {'least':>9} {'predicted':>9} {'error':>7}  configuration")
while len(errors) < options.configurations and os.times().elapsed - begin < options.seconds:
    family, arguments = draw(choose)
    with temporary() as folder:
        model = model_of(family, folder, **FAMILIES[family])
        arguments = ["--model", model, *arguments]
        if subprocess.run([ROTA, "plan", *arguments], capture_output=True).returncode:
            continue  # a mesh that does not divide the model, a schedule that takes other microbatches
        trainer, tokens = os.path.join(folder, "trainer"), random_tokens(folder, 2048)
        compile_trainer(arguments, trainer)
        count = 2 + math.ceil(options.run_seconds / predict(arguments, machine))
        size = math.prod(int(arguments[arguments.index(flag) + 1]) for flag in ("--batch-size", "--sequence-length"))
        seconds = steps(trainer, tokens, count, size)
        if not given:
            machine = measured_machine()
        predicted = predict(arguments, machine)
        seconds += steps(trainer, tokens, count, size)
    measured = statistics.median(seconds)
    errors.append(predicted / measured - 1)
    print(f"{1e3 * measured:>6.0f} ms {1e3 * min(seconds):>6.0f} ms {1e3 * predicted:>6.0f} ms {errors[-1]:>+7.1%}  {family} {' '.join(arguments[2:])}",
          flush=True)
if not errors:
    sys.exit("no configuration was measured")
print(f"average error {statistics.mean(map(abs, errors)):.1%}, largest {max(map(abs, errors)):.1%}")
