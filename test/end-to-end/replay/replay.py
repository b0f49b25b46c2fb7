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
that tolerance, and the other schedules' have its bytes. With --reordered,
timelines follow that take gradients in descending microbatch order: loss and
gradients equal the others' to 1e-6, in other bits. Prints a line for each
comparison; exits with 1 at the first that fails."""
import argparse
import os
import random

from case import Case, add_arguments, run
from orders import Shape, random_rows, write_rows


def parse():
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    parser.add_argument("--stages", type=int, required=True)
    parser.add_argument("--accumulate", type=int, default=0)
    parser.add_argument("--remat", nargs="*", default=[])
    parser.add_argument("--reordered", action="store_true")
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
    run("rota", "schedule", names[-1], "--stages", case.stages, "--repeats",
        case.repeats, "--microbatches", case.microbatches, "--format", "csv",
        "-o", path)
    yield names[-1] + " as a file", ["--schedule", path]

    shape = Shape(case.stages, case.repeats, case.microbatches)
    source = random.Random(case.stages * 100 + case.microbatches)
    path = write_rows(os.path.join(work, "random.csv"),
                      random_rows(shape, source))
    yield "random order", ["--schedule", path]


def descending(case, kinds):
    """LoopedBFS of torch.distributed.pipelining: forwards ascend, backwards of
    each kind descend."""
    rows = []
    for rank in range(case.stages):
        chunks = [r * case.stages + rank for r in range(case.repeats)]
        row = [f"{c}F{m}" for c in chunks for m in range(case.microbatches)]
        for chunk in reversed(chunks):
            for kind in kinds:
                row += [f"{chunk}{kind}{m}"
                        for m in reversed(range(case.microbatches))]
        rows.append(row)
    return rows


class Replay:
    def __init__(self, arguments):
        self.arguments = arguments
        self.case = Case(arguments,
                         max(arguments.microbatches, arguments.accumulate))

    def sequential(self):
        """The single rank's file, after comparing it."""
        one = self.case.sequential()
        more = self.arguments.accumulate
        if more:
            other = self.case.probe("accumulated", microbatches=more)
            self.case.demand_near(
                f"{more} and {self.arguments.microbatches} microbatches",
                other, one)
        return one

    def replay(self):
        one = self.sequential()
        same = "one rank"
        pipeline = ["--mesh", f"stage={self.arguments.stages}", "--repeats",
                    self.arguments.repeats, "--pipeline-layers",
                    self.arguments.pipelined]
        for name, flags in schedules(self.arguments, self.arguments.work):
            other = self.case.probe(name, [*pipeline, *flags])
            if self.arguments.pipelined and same == "one rank":
                self.case.demand_near(f"{name} and one rank", other, one)
                one, same = other, name
            self.case.demand_same(name, other, same, one)
        if self.arguments.reordered:
            self.reorder(pipeline, same, one)
        # The comparison can fail: other weights give other bits.
        other = self.case.probe("other weights", ["--seed", "2"])
        self.case.demand_other("other weights", other, one)

    def reorder(self, pipeline, same, one):
        for kinds in ("B", "IW"):
            path = write_rows(self.case.path(f"descending-{kinds}.csv"),
                              descending(self.arguments, kinds))
            name = f"descending {kinds}"
            other = self.case.probe(name, [*pipeline, "--schedule", path])
            self.case.demand_near(f"{name} and {same}", other, one, "1e-6")
            self.case.demand_other(name, other, one)


if __name__ == "__main__":
    Replay(parse()).replay()
