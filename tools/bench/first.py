# SPDX-License-Identifier: Apache-2.0
"""The first step of a run beside the later ones, and what comes before it.

Usage: first.py [--models 110m,gpt2] [--dtype f32|bf16|both] [--rounds 3] [--against ROTA]; prints, as means of the
rounds, the first step by a later one, the time from the start of the process to the end of the first step by a later
step, and page faults. With another build's `rota`, its trainers run in turn with these, and the ratio of the times to
the end of the first step is printed, too."""
import argparse
import json
import os
import subprocess
import time

from common import ROTA, compile_trainer, model_of, random_tokens, temporary, train_command

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--models", default="110m")
parser.add_argument("--dtype", choices=["f32", "bf16", "both"], default="both")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--against", help="the rota of another build")
options = parser.parse_args()

BATCH, SEQUENCE = 4, 512


def measure(trainer, data):
    """Seconds of the first step, of the fastest later one and to the end of the first; page faults, CPU seconds."""
    start = time.perf_counter()
    command = train_command(trainer, data, options.steps, ["--threads", str(options.threads)])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    steps, end = [], 0.0
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "step":
            steps.append(BATCH * SEQUENCE / event["tokens_per_second"])
            end = end or time.perf_counter() - start
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, command
    return {"first": steps[0], "later": min(steps[1:]), "end": end, "faults": usage.ru_minflt,
            "user": usage.ru_utime, "system": usage.ru_stime}


def compare(name, dtype, folder):
    """Prints a model's lines."""
    model = model_of(name, folder)
    data = random_tokens(folder, 32000)
    builds = {"here": ROTA, **({"against": options.against} if options.against else {})}
    for build, rota in builds.items():
        compile_trainer(["--model", model, "--batch-size", str(BATCH), "--sequence-length", str(SEQUENCE), "--dtype",
                         dtype], os.path.join(folder, build), rota)
    runs = {build: [] for build in builds}
    for _ in range(options.rounds):
        for build in builds:
            runs[build].append(measure(os.path.join(folder, build), data))
    means = {build: {key: sum(each[key] for each in all) / len(all) for key in all[0]} for build, all in runs.items()}
    for build, mean in means.items():
        print(f"{name} {dtype} {build}: first step {mean['first'] / mean['later']:.3f} x a later one, end of the first "
              f"step after {mean['end'] / mean['later']:.3f} x, {mean['faults']:.0f} page faults, CPU seconds "
              f"{mean['user']:.1f} user, {mean['system']:.2f} system", flush=True)
    if options.against:
        print(f"{name} {dtype}: to the end of the first step {means['here']['end'] / means['against']['end']:.3f} x")


with temporary() as folder:
    for name in options.models.split(","):
        for dtype in ["f32", "bf16"] if options.dtype == "both" else [options.dtype]:
            compare(name, dtype, folder)
