# SPDX-License-Identifier: Apache-2.0
"""Moves a run from one division over ranks to the next, each time by a checkpoint,
and compares its losses with those of an uninterrupted run on one rank.

usage: chain.py FOLDER ARGUMENTS... (of `rota train`, without a mesh)"""
import subprocess
import sys

from compare_steps import compare

MOVES = [
    "--mesh stage=4 --repeats 2",
    "--mesh fsdp=2,stage=2",
    "--mesh data=2,context=2,tensor=2 --shard-optimizer",
    "",
    "--mesh stage=4 --repeats 2 --schedule interleaved-1f1b",
]
STEPS, INTERVAL = 10, 2

folder, arguments = sys.argv[1], sys.argv[2:]


def run(name, *more):
    with open(f"{folder}/{name}.log", "w") as log:
        subprocess.run(
            ["rota", "train", *arguments, "--steps", str(STEPS),
             "--checkpoint-interval", str(INTERVAL), "--keep-last", "9",
             "--log-interval", "1", "--json",
             "--checkpoint-dir", f"{folder}/{name}", *more],
            stdout=log, check=True)


run("one")
for number, move in enumerate(MOVES):
    done = number * INTERVAL
    resume = ["--resume", f"{folder}/{number - 1}/step-{done:010}"] if done else []
    run(str(number), *move.split(), *resume)
    compare(f"{folder}/one.log", f"{folder}/{number}.log", STEPS - done, 1e-6)
print(f"{len(MOVES)} divisions have the losses of one rank")
