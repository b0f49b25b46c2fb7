#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays one case on a mesh: divided and pipelined against the sequential run.

    sharded.py WORK --model simple|decoder --mesh AXIS=N,... --layers N
                    --repeats R --microbatches M [--steps N] [--dtype TYPE]
                    [--sequences N] [--pipelined N] [--flags FLAG ...]
                    [--same NAME ...] [--near NAME ...]

Writes the batch and the model's configuration into WORK and runs `rota probe` on
one rank, whose loss and gradients equal the reference interpreter's, and then on
the mesh with FLAGS: losses and every gradient equal to 1e-5 (5e-3 in bf16). Each
variant of --same gives the very bytes of that run, each of --near the same to
1e-5. Variants are names of VARIANTS. Prints a line for each comparison; exits
with 1 at the first that fails."""
import argparse
import filecmp
import json
import os
import random
import subprocess
import sys

from batch import normal, tokens, write
from replay import SEQUENCE, TOLERANCE, run

VARIANTS = {
    "gpipe": ["--schedule", "gpipe"],
    "1f1b": ["--schedule", "1f1b"],
    "interleaved": ["--schedule", "interleaved-1f1b"],
    "delayed": ["--schedule", "circular", "--delay", "2"],
    "split": ["--split-backward"],
    "full": ["--remat", "full"],
    "minimal": ["--remat", "minimal"],
    "offloaded": ["--remat", "minimal_offloaded"],
    "once": ["--weight-gather", "once"],
    "per-repeat": ["--weight-gather", "per-repeat"],
    "window": ["--weight-gather", "per-repeat", "--window", "3"],
    "one window": ["--weight-gather", "per-repeat", "--window", "1"],
    "per-iteration": ["--weight-gather", "per-iteration"],
    "zero": ["--shard-optimizer"],
    "one thread": ["--threads", "1"],
    "mpi": ["--ranks", "mpi"],
}


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("work")
    parser.add_argument("--model", choices=["simple", "decoder"], required=True)
    parser.add_argument("--mesh", required=True)
    for name in ("layers", "repeats", "microbatches"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--sequences", type=int, default=0)
    parser.add_argument("--pipelined", type=int, default=0)
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--flags", default="")
    parser.add_argument("--same", nargs="*", default=[])
    parser.add_argument("--near", nargs="*", default=[])
    return parser.parse_args()


class Replay:
    def __init__(self, case):
        self.case = case
        self.tolerance = TOLERANCE[case.dtype]
        os.makedirs(case.work, exist_ok=True)
        axes = dict(part.split("=") for part in case.mesh.split(","))
        self.ranks = 1
        for size in axes.values():
            self.ranks *= int(size)
        parts = int(axes.get("data", 1)) * int(axes.get("fsdp", 1))
        inputs = os.path.join(os.path.dirname(__file__), "Inputs")
        with open(os.path.join(inputs, case.model + ".json")) as file:
            config = json.load(file)
        config["num_hidden_layers"] = case.layers
        if "vocab_size" in config:
            config["vocab_size"] = 64  # what axes divide
        self.config = self.path("config.json")
        with open(self.config, "w") as file:
            json.dump(config, file)
        make, size = ((normal, config["hidden_size"])
                      if case.model == "simple" else
                      (tokens, config["vocab_size"]))
        sequences = case.sequences or case.microbatches * parts
        # Something for every axis that divides the sequence to divide.
        length = SEQUENCE[case.model] + SEQUENCE[case.model] % 2
        self.batch = self.path("batch.safetensors")
        write(self.batch, make(random.Random(1), sequences, length, size))

    def path(self, name):
        return os.path.join(self.case.work, name)

    def probe(self, name, flags, launcher=()):
        out = self.path(name.replace(" ", "-") + ".safetensors")
        run(*launcher, "rota", "probe", "--model", self.config, "--tokens",
            self.batch, "--microbatches", self.case.microbatches, "--steps",
            self.case.steps, "--dtype", self.case.dtype, "--write",
            "loss,gradients,loss-curve", "-o", out, *flags)
        return out

    def on_mesh(self, name, variant=()):
        launcher = []
        if "mpi" in variant:
            launcher = ["mpirun", "--oversubscribe", "--allow-run-as-root",
                        "-n", self.ranks]
        flags = ["--mesh", self.case.mesh, "--repeats", self.case.repeats,
                 *self.case.flags.split(), *variant]
        if self.case.pipelined:
            flags += ["--pipeline-layers", self.case.pipelined]
        return self.probe(name, flags, launcher)

    def replay(self):
        one = self.probe("one rank", [])
        line = run("rota-interpret", "--model", self.config, "--tokens",
                   self.batch, "--compare", one, "--dtype", self.case.dtype,
                   "--round-bf16", "--tolerance", self.tolerance)
        print("one rank and the interpreter:", line.strip())
        mesh = self.on_mesh("mesh")
        line = run("compare-safetensors", mesh, one, self.tolerance)
        print(f"{self.case.mesh}:", line.strip())
        for name in self.case.same:
            other = self.on_mesh(name, VARIANTS[name])
            if not filecmp.cmp(mesh, other, shallow=False):
                difference = subprocess.run(
                    ["compare-safetensors", other, mesh, "0"], text=True,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                sys.exit(f"{name}: other bits\n" + difference.stdout)
            print(f"{name}: same bits")
        for name in self.case.near:
            other = self.on_mesh(name, VARIANTS[name])
            line = run("compare-safetensors", other, one, self.tolerance)
            print(f"{name}: {line.strip()}")


if __name__ == "__main__":
    Replay(parse()).replay()
