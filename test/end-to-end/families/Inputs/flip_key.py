# SPDX-License-Identifier: Apache-2.0
"""Expects that each FLIP of a golden model's config.json moves its loss.

    flip_key.py GOLDEN_FOLDER SCRATCH_FOLDER FLIP... [initial FLIP...]

A FLIP is KEY=VALUE, or several with ';' between where one alone changes
nothing. VALUE is JSON; KEY may be OUTER.INNER. Behind `initial` are flips after
which the file's weights no longer fit: losses of initial weights are compared,
which are equal where nobody reads the key. A flip may leave keys that nobody
reads any more, such as those of another kind of rotary embedding.
"""
import json
import os
import shutil
import subprocess
import sys

import tensor_file


def scalar(path, name):
    value, = tensor_file.numbers(tensor_file.read(path)[name])
    return value


def set_key(config, pair):
    key, value = pair.split("=", 1)
    *outer, last = key.split(".")
    for name in outer:
        config = config[name]
    config[last] = json.loads(value)


def loss(golden, scratch, flip, is_initial):
    """The loss with the keys of `flip` set."""
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(golden, scratch)
    if is_initial:
        os.remove(os.path.join(scratch, "model.safetensors"))
    path = os.path.join(scratch, "config.json")
    with open(path) as file:
        config = json.load(file)
    for pair in filter(None, flip.split(";")):
        set_key(config, pair)
    with open(path, "w") as file:
        json.dump(config, file)
    out = os.path.join(scratch, "out.safetensors")
    weights = [] if is_initial else ["--weights", os.path.join(
        scratch, "model.safetensors")]
    subprocess.run(["rota-interpret", "--model", scratch, *weights,
                    "--allow-unknown-keys", "--only-loss", "--tokens",
                    os.path.join(scratch, "tokens.safetensors"), "-o", out],
                   check=True)
    return scalar(out, "loss")


def main():
    golden, scratch, *flips = sys.argv[1:]
    expected = scalar(os.path.join(golden, "golden.safetensors"), "loss")
    is_initial = False
    for flip in flips:
        if flip == "initial":
            is_initial = True
            expected = loss(golden, scratch, "", is_initial)
            continue
        moved = loss(golden, scratch, flip, is_initial) - expected
        print(flip, "moves the loss by", moved)
        if not abs(moved) > 2e-5:  # rounding moves it by 1e-6
            sys.exit(f"{flip}: expected another loss than {expected}")


main()
