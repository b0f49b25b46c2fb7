# SPDX-License-Identifier: Apache-2.0
"""One case to replay: a model and a batch in a folder, results of `rota probe`,
and their comparisons. Each comparison prints a line; one that fails ends the
program with 1."""
import filecmp
import json
import os
import random
import subprocess
import sys

from batch import normal, tokens, write

TOLERANCE = {"f32": "1e-5", "bf16": "5e-3"}
SEQUENCE = {"simple": 128, "decoder": 7}
OUTPUTS = "loss,gradients,loss-curve"


def add_model_arguments(parser):
    """What Case reads of `arguments` in any case."""
    parser.add_argument("work")
    parser.add_argument("--model", choices=["simple", "decoder"], required=True)
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")


def add_arguments(parser):
    """Arguments of a case with one number of chunks and microbatches."""
    add_model_arguments(parser)
    for name in ("repeats", "microbatches"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--pipelined", type=int, default=0)


def run(*command):
    command = [str(word) for word in command]
    result = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{result.stdout}"
                 f"exit code {result.returncode}")
    return result.stdout


class Case:
    def __init__(self, arguments, sequences, is_divisible=False):
        """A batch of this many sequences. Their length is odd, or
        `is_divisible` by the axes of a mesh."""
        self.arguments = arguments
        self.sequences = sequences
        self.length = SEQUENCE[arguments.model]
        os.makedirs(arguments.work, exist_ok=True)
        inputs = os.path.join(os.path.dirname(__file__), "Inputs")
        with open(os.path.join(inputs, arguments.model + ".json")) as file:
            config = json.load(file)
        config["num_hidden_layers"] = arguments.layers
        if is_divisible:
            self.length += self.length % 2
        self.config = self.path("config.json")
        with open(self.config, "w") as file:
            json.dump(config, file)
        make, size = ((normal, config["hidden_size"])
                      if arguments.model == "simple" else
                      (tokens, config["vocab_size"]))
        self.batch = self.path("batch.safetensors")
        write(self.batch,
              make(random.Random(1), sequences, self.length, size))

    def path(self, name):
        return os.path.join(self.arguments.work, name)

    def output(self, name):
        return self.path(name.replace(" ", "-") + ".safetensors")

    def probe(self, name, flags=(), microbatches=0, launcher=()):
        """The file that `rota probe` writes with these flags."""
        out = self.output(name)
        run(*launcher, "rota", "probe", "--model", self.config, "--tokens",
            self.batch, "--microbatches",
            microbatches or self.arguments.microbatches, "--steps",
            self.arguments.steps, "--dtype", self.arguments.dtype, "--write",
            OUTPUTS, "-o", out, *flags)
        return out

    def sequential(self):
        """The single rank's file, after the interpreter has agreed with it. In
        bf16 the interpreter's attention has the roundings of f32 arithmetic,
        so it is compared with code for a processor that has no other."""
        one = compared = self.probe("one rank")
        if self.arguments.dtype == "bf16":
            compared = self.probe("one rank, f32 attention",
                                  ["--target-cpu", "x86-64-v3"])
        line = run("rota-interpret", "--model", self.config, "--tokens",
                   self.batch, "--compare", compared, "--dtype",
                   self.arguments.dtype, "--round-bf16", "--tolerance",
                   TOLERANCE[self.arguments.dtype])
        print("one rank and the interpreter:", line.strip())
        return one

    def difference(self, actual, expected):
        return subprocess.run(["compare-safetensors", actual, expected, "0"],
                              text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT).stdout

    def demand_near(self, label, actual, expected, tolerance=None):
        line = run("compare-safetensors", actual, expected,
                   tolerance or TOLERANCE[self.arguments.dtype])
        print(f"{label}:", line.strip())

    def demand_same(self, name, actual, expected_name, expected):
        if not filecmp.cmp(expected, actual, shallow=False):
            sys.exit(f"{name}: other bits than {expected_name}\n"
                     + self.difference(actual, expected))
        print(f"{name}: same bits as {expected_name}")

    def demand_other(self, name, actual, expected):
        if filecmp.cmp(expected, actual, shallow=False):
            sys.exit(f"{name}: same bits")
        print(f"{name}: other bits")
