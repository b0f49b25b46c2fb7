# SPDX-License-Identifier: Apache-2.0
"""Step times of random configurations on this host beside those that `rota plan` predicts for the machine that `rota machine
measure` writes: families, meshes of threads, schedules, policies of rematerialization, both types. A host's speed may drift
by more than predictions err, so each configuration is trained and the host is measured in turn, for some seconds each: one
process sleeps while the other works. The measured time is the median of the steps after the first two. Beside it stands the
quickest tenth of the steps, which neighbours change less, and its error: the prediction times the pace of the quickest tenth of
the measurement, as a share of the median pace."""
import argparse
import json
import math
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time

from common import ROTA, compile_trainer, model_of, random_tokens, run, temporary, train_command

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("machine", nargs="?", help="the file that `rota machine measure -o` wrote, for all configurations")
parser.add_argument("--configurations", type=int, default=20)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--turn", type=float, default=1, help="seconds of a turn, at least six steps")
parser.add_argument("--measure", default="80", help="seconds in which the host is measured, of which the trainer has half")
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


def measured_machine(turn, between):
    """The text of the file of this host as it is now, and the pace of the quickest tenth of the measurement as a share of the
    median pace. Calls `between` after each `turn` seconds, while nothing is measured."""
    with temporary() as folder:
        path = os.path.join(folder, "here.json")
        command = [ROTA, "machine", "measure", "-o", path, "--seconds", options.measure]
        with open(path + ".log", "w") as log, subprocess.Popen(command, stderr=log) as process:
            while process.poll() is None:
                time.sleep(turn)
                process.send_signal(signal.SIGSTOP)
                between()
                process.send_signal(signal.SIGCONT)
        if process.returncode:
            sys.exit(f"{' '.join(command)} failed")
        pace = re.search(r"quickest tenth .* (\d+) %", open(path + ".log").read())
        return open(path).read(), int(pace[1]) / 100


def predict(arguments, machine):
    """Seconds of a step on the machine of that text."""
    with temporary() as folder:
        path = os.path.join(folder, "here.json")
        with open(path, "w") as file:
            file.write(machine)
        return json.loads(run([ROTA, "plan", *arguments, "--machine", path, "--json"]))["step_seconds"]


def step_seconds(path, tokens_of_step):
    """Seconds of each step after the first two of a trainer that prints to that file."""
    events = [json.loads(line) for line in open(path) if line.endswith("}\n")]
    return [tokens_of_step / event["tokens_per_second"] for event in events if event["event"] == "step" and event["step"] > 2]


def measure(trainer, tokens, tokens_of_step):
    """Seconds of each step after the first two, and what measured_machine returns, both measured in turn."""
    path = trainer + ".steps"
    with open(path, "w") as output, subprocess.Popen(train_command(trainer, tokens, 1 << 20, ["--eval-interval", "0"]),
                                                     stdout=output) as process:
        def run_for_a_turn():
            process.send_signal(signal.SIGCONT)
            time.sleep(turn)
            process.send_signal(signal.SIGSTOP)
        try:
            while not step_seconds(path, tokens_of_step) and process.poll() is None:
                time.sleep(0.5)
            turn = max(options.turn, 6 * statistics.median(step_seconds(path, tokens_of_step) or [0]))
            run_for_a_turn()
            machine = given or measured_machine(turn, run_for_a_turn)
            run_for_a_turn()
        finally:
            process.kill()
    if process.returncode != -signal.SIGKILL:
        sys.exit(f"{trainer} ended with {process.returncode}")
    seconds = step_seconds(path, tokens_of_step)
    # Without the steps that slept while the host was measured, for some seconds.
    return [each for each in seconds if each < 3 * statistics.median(seconds)], machine


choose = random.Random(options.seed)
given = (open(options.machine).read(), 1) if options.machine else None
errors, quick_errors = [], []
begin = os.times().elapsed
print(f"{'measured':>9} {'predicted':>9} {'error':>7} {'quickest':>9} {'predicted':>9} {'error':>7}  configuration")
while len(errors) < options.configurations and os.times().elapsed - begin < options.seconds:
    family, arguments = draw(choose)
    with temporary() as folder:
        model = model_of(family, folder, **FAMILIES[family])
        arguments = ["--model", model, *arguments]
        if subprocess.run([ROTA, "plan", *arguments], capture_output=True).returncode:
            continue  # a mesh that does not divide the model, a schedule that takes other microbatches
        trainer, tokens = os.path.join(folder, "trainer"), random_tokens(folder, 2048)
        compile_trainer(arguments, trainer)
        size = math.prod(int(arguments[arguments.index(flag) + 1]) for flag in ("--batch-size", "--sequence-length"))
        seconds, (machine, quickest) = measure(trainer, tokens, size)
        predicted = predict(arguments, machine)
    measured, quick = statistics.median(seconds), sorted(seconds)[len(seconds) // 10]
    errors.append(predicted / measured - 1)
    quick_errors.append(predicted * quickest / quick - 1)
    print(f"{1e3 * measured:>6.0f} ms {1e3 * predicted:>6.0f} ms {errors[-1]:>+7.1%} {1e3 * quick:>6.0f} ms "
          f"{1e3 * predicted * quickest:>6.0f} ms {quick_errors[-1]:>+7.1%}  {family} {' '.join(arguments[2:])}", flush=True)
if not errors:
    sys.exit("no configuration was measured")
for name, each in ("median", errors), ("quickest tenth", quick_errors):
    print(f"{name}: average error {statistics.mean(map(abs, each)):.1%}, {statistics.mean(each):+.1%} with its sign, largest "
          f"{max(map(abs, each)):.1%}")
