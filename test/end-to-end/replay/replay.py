#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays one case: pipelines of a model against the sequential run of it.

    replay.py WORK --model simple|decoder --stages S --layers N --repeats R
                   --microbatches M [--accumulate M2] [--steps N]
                   [--remat POLICY ...] [--dtype TYPE] [--pipelined N]

Writes the batch and the model's configuration into WORK and runs `rota probe`
on one rank, then under every schedule that fits, the last of them under each
remat policy too, and in a random order. Loss and gradients on one rank equal the
reference interpreter's, and those of the same batch cut into M2 microbatches, to
1e-5 (5e-3 in bf16); every other file has the bytes of the one rank's. With
--pipelined, only that many layers are divided among the stages; all stages sum
gradients of the others, so the first schedule's file equals the one rank's to
that tolerance, and the other schedules' have its bytes. Prints a line for each
comparison; exits with 1 at the first that fails."""
import argparse
import filecmp
import json
import os
import random
import subprocess
import sys

from batch import normal, tokens, write

TOLERANCE = {"f32": "1e-5", "bf16": "5e-3"}
SEQUENCE = {"simple": 128, "decoder": 7}


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    parser.add_argument("--model", choices=["simple", "decoder"], required=True)
    for name in ("stages", "layers", "repeats", "microbatches"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--accumulate", type=int, default=0)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--pipelined", type=int, default=0)
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--remat", nargs="*", default=[])
    return parser.parse_args()


def schedules(case, work):
    """Names and flags of the schedules that the case's numbers allow."""
    names = ["gpipe"]
    if case.microbatches % case.stages == 0:
        names.append("circular")
        if case.repeats > 1:
            names.append("interleaved-1f1b")
    if case.repeats == 1:
        names.append("1f1b")
    for name in names:
        yield name, ["--schedule", name]
        yield name + " split", ["--schedule", name, "--split-backward"]
    if case.microbatches >= 2 * case.stages:
        yield "circular delayed", ["--schedule", "circular", "--delay", "2"]
    for policy in case.remat:
        yield "remat " + policy, ["--schedule", names[-1], "--remat", policy]
    path = os.path.join(work, "schedule.csv")
    run("rota", "schedule", names[-1], "--ranks", case.stages, "--chunks",
        case.repeats, "--microbatches", case.microbatches, "--format", "csv",
        "-o", path)
    yield names[-1] + " as a file", ["--schedule", path]

    path = os.path.join(work, "random.csv")
    with open(path, "w") as file:
        for row in random_timeline(case):
            file.write(",".join(row) + "\n")
    yield "random order", ["--schedule", path]


def random_timeline(case):
    """Rows of a timeline in an order that nobody would choose: again and again
    some rank does something that it can, backwards of a chunk in ascending
    order."""
    source = random.Random(case.stages * 100 + case.microbatches)
    last = case.stages * case.repeats - 1
    done, rows = set(), [[] for _ in range(case.stages)]

    def is_ready(kind, chunk, microbatch):
        if kind == "F":
            return chunk == 0 or ("F", chunk - 1, microbatch) in done
        behind = ("F", chunk, microbatch) if chunk == last else (
            "B", chunk + 1, microbatch)
        return ({behind, ("F", chunk, microbatch)} <= done and
                (microbatch == 0 or ("B", chunk, microbatch - 1) in done))

    todo = [(kind, chunk, microbatch) for kind in "FB"
            for chunk in range(last + 1)
            for microbatch in range(case.microbatches)]
    while todo:
        ready = [a for a in todo if is_ready(*a)]
        kind = source.choice(sorted({a[0] for a in ready}))
        action = source.choice([a for a in ready if a[0] == kind])
        todo.remove(action)
        done.add(action)
        _, chunk, microbatch = action
        rows[chunk % case.stages].append(f"{chunk}{kind}{microbatch}")
    return rows


def run(*command):
    command = [str(word) for word in command]
    result = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{result.stdout}"
                 f"exit code {result.returncode}")
    return result.stdout


class Replay:
    def __init__(self, case):
        self.case = case
        os.makedirs(case.work, exist_ok=True)
        self.config = self.path("config.json")
        self.batch = self.path("batch.safetensors")
        inputs = os.path.join(os.path.dirname(__file__), "Inputs")
        with open(os.path.join(inputs, case.model + ".json")) as file:
            config = json.load(file)
        config["num_hidden_layers"] = case.layers
        with open(self.config, "w") as file:
            json.dump(config, file)
        sequences = max(case.microbatches, case.accumulate)
        make, size = ((normal, config["hidden_size"])
                      if case.model == "simple" else
                      (tokens, config["vocab_size"]))
        write(self.batch, make(random.Random(1), sequences,
                               SEQUENCE[case.model], size))

    def path(self, name):
        return os.path.join(self.case.work, name)

    def probe(self, name, stages, repeats, microbatches, flags=()):
        out = self.path(name.replace(" ", "-") + ".safetensors")
        run("rota", "probe", "--model", self.config, "--tokens", self.batch,
            "--mesh", f"stage={stages}", "--repeats", repeats,
            "--microbatches", microbatches, "--steps", self.case.steps,
            "--dtype", self.case.dtype,
            "--write", "loss,gradients,loss-curve", "-o", out, *flags)
        return out

    def sequential(self):
        """The single rank's file, after comparing it."""
        one = self.probe("one rank", 1, 1, self.case.microbatches)
        line = run("rota-interpret", "--model", self.config, "--tokens",
                   self.batch, "--compare", one, "--dtype", self.case.dtype,
                   "--round-bf16", "--tolerance", TOLERANCE[self.case.dtype])
        print("one rank and the interpreter:", line.strip())
        if self.case.accumulate:
            other = self.probe("accumulated", 1, 1, self.case.accumulate)
            line = run("compare-safetensors", other, one,
                       TOLERANCE[self.case.dtype])
            print(f"{self.case.accumulate} and {self.case.microbatches} "
                  "microbatches:", line.strip())
        return one

    def replay(self):
        one = self.sequential()
        same = "one rank"
        for name, flags in schedules(self.case, self.case.work):
            other = self.probe(name, self.case.stages, self.case.repeats,
                               self.case.microbatches,
                               [*flags, "--pipeline-layers",
                                self.case.pipelined])
            if self.case.pipelined and same == "one rank":
                line = run("compare-safetensors", other, one,
                           TOLERANCE[self.case.dtype])
                print(f"{name} and one rank:", line.strip())
                one, same = other, name
            if not filecmp.cmp(one, other, shallow=False):
                difference = subprocess.run(
                    ["compare-safetensors", other, one, "0"], text=True,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                sys.exit(f"{name}: other bits than {same}\n"
                         + difference.stdout)
            print(f"{name}: same bits as {same}")
        # The comparison can fail: other weights give other bits.
        other = self.probe("other weights", 1, 1, self.case.microbatches,
                           ["--seed", "2"])
        if filecmp.cmp(one, other, shallow=False):
            sys.exit("other weights: same bits")
        print("other weights: other bits")


if __name__ == "__main__":
    Replay(parse()).replay()
