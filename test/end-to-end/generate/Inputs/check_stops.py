# SPDX-License-Identifier: Apache-2.0
"""A continuation ends with the first end token: that of generation_config.json, of
config.json or of the flag; in training too, on a pipeline and after a resume.

    check_stops.py GOLDEN_FOLDER OUTPUT_FOLDER
"""
import json
import os
import shutil
import subprocess
import sys


def run(verb, *options):
    output = subprocess.run(["rota", verb, *options, "--json"], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    lines = [json.loads(line) for line in output.splitlines()]
    return [line["tokens"] for line in lines if line["event"] == "sample"]


def write(folder, name, **keys):
    path = os.path.join(folder, name)
    config = json.load(open(path)) if os.path.exists(path) else {}
    config.update(keys)
    with open(path, "w") as file:
        json.dump(config, file)


def main():
    golden, folder = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    hub = os.path.join(folder, "hub")
    os.makedirs(hub)
    for name in ("config.json", "model.safetensors"):
        shutil.copy(os.path.join(golden, name), hub)
    with open(os.path.join(golden, "greedy.json")) as file:
        greedy = json.load(file)
    whole = greedy["tokens"][:30]
    prompt = ["--prompt-tokens", ",".join(map(str, greedy["prompt"]))]
    first, second = whole[0], next(t for t in whole if t not in whole[:2])
    until = whole[:whole.index(second) + 1]

    def generate(model, *options):
        [tokens] = run("generate", model, *prompt, "--tokens", "30", *options)
        return tokens

    def train(*options):
        return run("train", "--model", hub, "--data", "synthetic", "--batch-size",
                   "2", "--sequence-length", "48", "--eval-fraction", "0",
                   "--learning-rate", "1e-12", *prompt, "--sample-tokens", "30",
                   "--sample-interval", "1", *options)

    assert generate(hub) == whole  # the end token of the configuration is not in it
    write(hub, "config.json", eos_token_id=second)
    assert generate(hub) == until
    assert generate(hub, "--ignore-eos") == whole
    assert generate(hub, "--stop-tokens", str(first)) == [first]
    assert generate(hub, "--ignore-eos", "--stop-tokens", f"60,{second}") == until
    write(hub, "generation_config.json", eos_token_id=[60, first])
    assert generate(hub) == [first]
    write(hub, "generation_config.json", eos_token_id=[1000, second])
    assert generate(hub, "--mesh", "stage=2") == until

    steps = ["--steps", "3", "--mesh", "stage=2", "--microbatches", "2",
             "--checkpoint-dir", os.path.join(folder, "run")]
    assert train(*steps, "--stop-after", "1") == [until]
    assert train(*steps) == [until] * 2
    assert train("--steps", "1", "--ignore-eos") == [whole]
    # A checkpoint has the configuration alone.
    assert generate(os.path.join(folder, "run")) == until


main()
