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
variant of --same gives the very bytes of that run, each of --near is equal to
one rank's to 1e-5 too. Variants are names of VARIANTS, or several: "once+split".
Prints a line for each comparison; exits with 1 at the first that fails."""
import argparse
import math

from case import OUTPUTS, Case, add_arguments, run

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
    # Nothing of the updates is exchanged in its timeline without stages.
    "one chunk": ["--repeats", "1"],
    "replicated vocabulary": ["--sharding-rules", "vocab="],
    "no sequence weights": ["--sharding-rules",
                            "vocab=tensor,heads=tensor,kv_heads=tensor,"
                            "mlp=tensor"],
    "storage by mlp": ["--sharding-rules", "storage/mlp=fsdp,storage/embed="],
    "other weights": ["--seed", "2"],
    # Processes: of one compiled program, or of `rota`, each of which compiles.
    "mpi": ["--ranks", "mpi"],
    "mpi compiling": ["--ranks", "mpi"],
}


def parse():
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    parser.add_argument("--mesh", required=True)
    parser.add_argument("--sequences", type=int, default=0)
    parser.add_argument("--flags", default="")
    parser.add_argument("--same", nargs="*", default=[])
    parser.add_argument("--near", nargs="*", default=[])
    return parser.parse_args()


class Replay:
    def __init__(self, arguments):
        self.arguments = arguments
        axes = {axis: int(size) for axis, size in
                (part.split("=") for part in arguments.mesh.split(","))}
        self.ranks = math.prod(axes.values())
        parts = math.prod(axes.get(axis, 1)
                          for axis in ("data", "fsdp", "expert"))
        self.case = Case(arguments, arguments.sequences or
                         arguments.microbatches * parts, is_divisible=True)

    def on_mesh(self, name, variant=()):
        flags = ["--mesh", self.arguments.mesh, *self.arguments.flags.split()]
        if "--repeats" not in variant:
            flags += ["--repeats", self.arguments.repeats]
        if self.arguments.pipelined:
            flags += ["--pipeline-layers", self.arguments.pipelined]
        if name == "mpi":
            return self.compiled(name, flags, variant)
        launcher = self.mpirun() if name == "mpi compiling" else []
        return self.case.probe(name, [*flags, *variant], launcher=launcher)

    def compiled(self, name, flags, variant):
        """The file that processes of the compiled program write."""
        case, trainer = self.case, self.case.path("trainer")
        run("rota", "compile", "--model", case.config, "--batch-size",
            case.sequences, "--sequence-length", case.length, "--microbatches",
            self.arguments.microbatches, "--dtype", self.arguments.dtype,
            *flags, "-o", trainer)
        run(*self.mpirun(), trainer, "probe", "--tokens", case.batch, "--steps",
            self.arguments.steps, "--threads", 1, "--write", OUTPUTS, "-o",
            case.output(name), *variant)
        return case.output(name)

    def mpirun(self):
        return ["mpirun", "--oversubscribe", "--allow-run-as-root", "-n",
                self.ranks]

    def variant(self, name):
        flags = [flag for part in name.split("+") for flag in VARIANTS[part]]
        return self.on_mesh(name, flags)

    def replay(self):
        one = self.case.sequential()
        mesh = self.on_mesh("mesh")
        self.case.demand_near(self.arguments.mesh, mesh, one)
        for name in self.arguments.same:
            self.case.demand_same(name, self.variant(name), "the mesh", mesh)
        for name in self.arguments.near:
            self.case.demand_near(name, self.variant(name), one)


if __name__ == "__main__":
    Replay(parse()).replay()
