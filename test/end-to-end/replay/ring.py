#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays attention, or reductions of products, around a ring against one rank.

    ring.py MODEL WORK [--dtype TYPE] [--axes context|tensor] [--exchange HOW] [--device NAME]
            --near MESH ... [--same NAME ...]

Writes a batch into WORK and runs `rota probe` of the model's folder on one rank of
CPUs in f32 and, with rings, on MESH: loss, gradients and the steps are equal to the
tolerance of f32. In bf16 they are, too, but for 5/4 of the rounding error that one
rank has in bf16. Each variant of --same gives the very bytes of the last MESH.
Prints a line for each comparison; exits with 1 at the first that fails."""
import argparse
import filecmp
import json
import os
import random
import re
import sys

from batch import tokens, write
from case import OUTPUTS, TOLERANCE, run

SEQUENCES, LENGTH, STEPS = 4, 24, 3
VARIANTS = {
    "one thread": ["--threads", "1"],
    "full": ["--remat", "full"],
    "split": ["--split-backward"],
    "gpipe": ["--schedule", "gpipe"],
    "seed": ["--seed", "7"],
    "1f1b": ["--schedule", "1f1b"],
    "mpi": ["--ranks", "mpi"],
}


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("work")
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--axes", choices=["context", "tensor"],
                        default="context")
    parser.add_argument("--exchange", choices=["ring", "balanced-ring"],
                        default="ring")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--near", nargs="+", required=True)
    parser.add_argument("--same", nargs="*", default=[], choices=VARIANTS)
    return parser.parse_args()


class Replay:
    def __init__(self, arguments):
        self.arguments = arguments
        os.makedirs(arguments.work, exist_ok=True)
        with open(os.path.join(arguments.model, "config.json")) as file:
            vocabulary = json.load(file)["vocab_size"]
        self.batch = os.path.join(arguments.work, "batch.safetensors")
        write(self.batch,
              tokens(random.Random(1), SEQUENCES, LENGTH, vocabulary))

    def probe(self, name, dtype, flags=(), launcher=()):
        """The file that `rota probe` writes with these flags."""
        out = os.path.join(self.arguments.work, name + ".safetensors")
        run(*launcher, "rota", "probe", "--model", self.arguments.model,
            "--tokens", self.batch, "--microbatches", 2,
            "--steps", STEPS, "--dtype", dtype, "--write", OUTPUTS, "-o", out, *flags)
        return out

    def on_ring(self, mesh, variant=()):
        flags = ["--mesh", mesh, "--device", self.arguments.device,
                 f"--{self.arguments.axes}-exchange", self.arguments.exchange,
                 *variant]
        if self.arguments.device == "simt":
            flags.append("--unchecked")
        dtype = self.arguments.dtype
        if "mpi" not in variant:
            return self.probe("ring", dtype, flags)
        ranks = 1
        for axis in mesh.split(","):
            ranks *= int(axis.split("=")[1])
        return self.probe("processes", dtype, flags,
                          ["mpirun", "--oversubscribe", "--allow-run-as-root",
                           "-n", ranks])

    def tolerance(self, one):
        """Of f32, or 5/4 of the worst error of one rank in another type."""
        dtype = self.arguments.dtype
        if dtype == "f32":
            return TOLERANCE[dtype]
        line = run("compare-safetensors", self.probe("rounded", dtype), one, 1)
        return 1.25 * float(re.search("error ([^ ]+)", line)[1])

    def replay(self):
        one = self.probe("one", "f32")
        tolerance = self.tolerance(one)
        for mesh in self.arguments.near:
            ring = self.on_ring(mesh)
            line = run("compare-safetensors", ring, one, tolerance)
            print(f"{mesh}:", line.strip())
        expected = os.path.join(self.arguments.work, "expected.safetensors")
        os.replace(ring, expected)
        for name in self.arguments.same:
            actual = self.on_ring(mesh, VARIANTS[name])
            if not filecmp.cmp(actual, expected, shallow=False):
                sys.exit(f"{name}: other bits than {mesh}")
            print(f"{name}: same bits")


if __name__ == "__main__":
    Replay(parse()).replay()
