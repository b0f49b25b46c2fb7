#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays the table of pipelines: each case's `rota probe` writes the same bits as
one rank on equally many microbatches (loss, every gradient, three steps), and the
reference interpreter's loss and gradients to 1e-5:

    replay.py simple|decoder FOLDER

FOLDER is for temporary files. `rota`, `compare-safetensors` and `rota-interpret`
are found in PATH. Prints each comparison; the exit code says whether all held.
"""
import filecmp
import json
import os
import random
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "golden")

# Stages, layers, repeats, microbatches, more.
REPLAY = [
    ("non-circular", 4, 4, 1, 4, ""),
    ("circular, minimum microbatches: direct hand-over", 4, 8, 2, 4, ""),
    ("circular, extra microbatches: circular storage", 4, 8, 2, 8, ""),
    ("delayed forwarding", 4, 8, 2, 8, "--delay 2"),
    ("four repeats", 2, 8, 4, 8, ""),
    ("four repeats, four stages", 4, 16, 4, 8, ""),
    ("deep: two layers in a chunk", 4, 32, 4, 8, ""),
    ("deep, not circular: eight layers in a chunk", 4, 32, 1, 8, ""),
    ("long repeat chain", 2, 32, 16, 4, ""),
]


class Failure(Exception):
    pass


def run(*command):
    """Runs a command; its output is shown when it fails."""
    result = subprocess.run(command, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode:
        raise Failure(f"{' '.join(command)}\n{result.stdout}")
    return result.stdout.strip()


def probe(output, *flags):
    run("rota", "probe", *flags, "-o", output)
    return output


def require_same_bits(actual, expected):
    if not filecmp.cmp(actual, expected, shallow=False):
        raise Failure(run("compare-safetensors", actual, expected, "0"))


def write_inputs(path, shape):
    """`inputs` and `targets` from N(0, 1) in f32."""
    count = shape[0] * shape[1] * shape[2]
    draw = random.Random(1)
    header, data = {}, b""
    for name in ("inputs", "targets"):
        values = struct.pack(f"<{count}f",
                             *(draw.gauss(0, 1) for _ in range(count)))
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def check_replay(folder, config, tokens):
    for title, stages, layers, repeats, microbatches, more in REPLAY:
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump({**config, "num_hidden_layers": layers}, file)
        flags = ["--model", folder, "--tokens", tokens, "--steps", "3",
                 "--learning-rate", "1e-3", "--microbatches", str(microbatches),
                 "--write", "loss,gradients,loss-curve"]
        sequential = probe(os.path.join(folder, "sequential"), *flags)
        actual = probe(os.path.join(folder, "other"), *flags, "--mesh",
                       f"stage={stages}", "--repeats", str(repeats),
                       *more.split())
        require_same_bits(actual, sequential)
        said = run("rota-interpret", "--model", folder, "--tokens", tokens,
                   "--microbatches", str(microbatches), "--compare", actual,
                   "--tolerance", "1e-5")
        print(f"{title}: the bits of one rank; interpreter: {said}", flush=True)


def check_simple(folder):
    """y = x W, W [28, 28], sequences of 128."""
    tokens = os.path.join(folder, "inputs")
    write_inputs(tokens, [8, 128, 28])
    check_replay(folder, {"model_type": "simple", "hidden_size": 28}, tokens)


def check_decoder(folder):
    """Llama's decoder layer in the sizes of golden/grouped."""
    with open(os.path.join(GOLDEN, "grouped", "config.json")) as file:
        config = json.load(file)
    check_replay(folder, config,
                 os.path.join(GOLDEN, "grouped", "tokens.safetensors"))


CHECKS = {
    "simple": check_simple,
    "decoder": check_decoder,
}


def main():
    name, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    try:
        CHECKS[name](folder)
    except Failure as failure:
        print(f"FAILED: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
