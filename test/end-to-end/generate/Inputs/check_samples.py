# SPDX-License-Identifier: Apache-2.0
"""Samples of a training run: the same on all meshes, with the losses of a run
without samples, and the last one is what `rota generate` says of the checkpoint.

    check_samples.py MODEL OUTPUT_FOLDER
"""
import json
import os
import shutil
import subprocess
import sys

SAMPLES = ["--sample-interval", "2", "--sample-tokens", "24", "--temperature",
           "1.5", "--top-p", "0.9", "--ignore-eos"]
MESHES = ["", "--mesh stage=2 --repeats 2 --schedule circular --microbatches 4",
          "--mesh stage=2 --microbatches 4 --schedule zbv",
          "--mesh data=2,tensor=2 --microbatches 2",
          "--mesh fsdp=2,stage=2 --microbatches 2 --schedule 1f1b",
          "--mesh sequence=2,data=2 --microbatches 2",
          "--mesh context=2,sequence=2 --loss-blocks 2 --gradient-clip 0"]
PROMPT = "3,1,4,1,5"


def run(verb, *options):
    output = subprocess.run(["rota", verb, *options, "--json"], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def train(model, *options):
    lines = run("train", "--model", model, "--batch-size", "4",
                "--sequence-length", "32", "--data", "synthetic", "--steps",
                "3", "--log-interval", "1", "--learning-rate", "1e-4",
                *options)
    losses = [line["loss"] for line in lines if line["event"] == "step"]
    samples = [line for line in lines if line["event"] == "sample"]
    return losses, samples


def main():
    model, folder = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    first = None
    for mesh in MESHES:
        _, samples = train(model, "--prompt-tokens", PROMPT, *SAMPLES,
                           *mesh.split())
        assert [sample["step"] for sample in samples] == [2, 3], samples
        tokens = [sample["tokens"] for sample in samples]
        assert len(tokens[0]) == 24 and tokens[0] != tokens[1], tokens
        first = first or tokens
        assert tokens == first, (mesh, tokens, first)

    checkpoints = os.path.join(folder, "run")
    metrics = os.path.join(folder, "metrics")
    sampled, samples = train(model, "--prompt-tokens", PROMPT, *SAMPLES,
                             "--checkpoint-dir", checkpoints, "--metrics",
                             metrics)
    plain, none = train(model)
    assert sampled == plain and not none, (sampled, plain)
    with open(os.path.join(metrics, "samples.jsonl")) as file:
        assert [json.loads(line) for line in file] == samples
    [line] = run("generate", checkpoints, "--prompt-tokens", PROMPT,
                 "--tokens", "24", *SAMPLES[4:])
    assert line == samples[-1], (line, samples[-1])


main()
