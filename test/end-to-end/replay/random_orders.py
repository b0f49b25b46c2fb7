#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains in random orders, against the sequential run.

    random_orders.py WORK --model simple|decoder --layers N --seed S --count N
                          [--remat POLICY ...]

Each order is a timeline of random stages, chunks, microbatches, placement, kinds
of backward and remat policy. `rota schedule` verifies it, with the messages that
are added. Where it remarks no gradients that are added in another order than
that of ascending microbatches, the results have the bytes of the one rank's of
as many microbatches; where it does, they equal them to 1e-6. Exits with 1 at the
first that fails, whose file of rows stays in WORK. The variables ROTA_TEST_CASES
and ROTA_TEST_SEED replace N and S."""
import argparse
import filecmp
import os
import random
import sys

from case import Case, add_model_arguments, run
from orders import Shape, random_rows, write_rows

MICROBATCHES = (1, 2, 3, 4, 6)
REMARK = "gradients are added in another order"


def parse():
    parser = argparse.ArgumentParser()
    add_model_arguments(parser)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--remat", nargs="*", default=[])
    arguments = parser.parse_args()
    arguments.seed = int(os.environ.get("ROTA_TEST_SEED", arguments.seed))
    arguments.count = int(os.environ.get("ROTA_TEST_CASES", arguments.count))
    return arguments


class RandomOrders:
    def __init__(self, arguments):
        self.arguments = arguments
        self.case = Case(arguments, 12)
        self.source = random.Random(arguments.seed)
        self.one = {m: self.case.probe(f"one rank {m}", microbatches=m)
                    for m in MICROBATCHES}
        self.counts = dict.fromkeys(("same", "reordered", "other"), 0)

    def shape(self):
        most = self.arguments.layers
        stages = self.source.randint(1, min(5, most))
        repeats = self.source.randint(1, min(4, most // stages))
        return Shape(stages, repeats, self.source.choice(MICROBATCHES),
                     self.source.choice(("loop", "v")))

    def run_one(self, index):
        shape = self.shape()
        is_ascending = self.source.random() < 0.7
        rows = random_rows(shape, self.source, self.source.random() < 0.5,
                           is_ascending)
        path = write_rows(self.case.path(f"order-{index}.csv"), rows)
        said = run("rota", "schedule", path, "--stages", shape.stages, "--repeats",
                   shape.repeats, "--placement", shape.placement,
                   "--communication")
        is_reordered = REMARK in said
        if is_reordered and is_ascending:
            sys.exit(f"{path}: a remark on ascending gradients\n{said}")
        out = self.case.probe(
            "order", ["--mesh", f"stage={shape.stages}", "--repeats",
                      shape.repeats, "--placement", shape.placement,
                      "--schedule", path, "--remat",
                      self.source.choice(["none", *self.arguments.remat])],
            microbatches=shape.microbatches)
        self.compare(path, out, self.one[shape.microbatches], is_reordered)

    def compare(self, path, out, one, is_reordered):
        if filecmp.cmp(one, out, shallow=False):
            self.counts["same"] += 1
        elif not is_reordered:
            sys.exit(f"{path}: other bits than one rank\n"
                     + self.case.difference(out, one))
        else:
            self.counts["other"] += 1
            run("compare-safetensors", out, one, "1e-6")
        self.counts["reordered"] += is_reordered


if __name__ == "__main__":
    arguments = parse()
    orders = RandomOrders(arguments)
    for index in range(arguments.count):
        orders.run_one(index)
    print("{same} with the bits of one rank, {other} of {reordered} reordered "
          "with others".format(**orders.counts))
