# SPDX-License-Identifier: Apache-2.0
"""Expects that each KEY=VALUE in a golden model's config.json moves its loss.

    flip_key.py GOLDEN_FOLDER SCRATCH_FOLDER KEY=VALUE...

VALUE is JSON; KEY may be OUTER.INNER.
"""
import json
import os
import shutil
import struct
import subprocess
import sys


def scalar(path, name):
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        begin, end = header[name]["data_offsets"]
        file.seek(8 + size + begin)
        kind = {"F32": "<f", "F64": "<d"}[header[name]["dtype"]]
        return struct.unpack(kind, file.read(end - begin))[0]


def main():
    golden, scratch, *flips = sys.argv[1:]
    expected = scalar(os.path.join(golden, "golden.safetensors"), "loss")
    for flip in flips:
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.copytree(golden, scratch)
        path = os.path.join(scratch, "config.json")
        with open(path) as file:
            config = json.load(file)
        key, value = flip.split("=", 1)
        *outer, last = key.split(".")
        inner = config
        for name in outer:
            inner = inner[name]
        inner[last] = json.loads(value)
        with open(path, "w") as file:
            json.dump(config, file)
        out = os.path.join(scratch, "out.safetensors")
        subprocess.run(["rota", "probe", os.path.join(scratch, "run.json"),
                        "--model", scratch, "--tokens",
                        os.path.join(scratch, "tokens.safetensors"),
                        "--steps", "1", "-o", out],
                       check=True, stdout=subprocess.DEVNULL)
        loss = scalar(out, "loss")
        print(flip, "moves the loss by", loss - expected)
        if not abs(loss - expected) > 2e-5:  # rounding moves it by 1e-6
            sys.exit(f"{flip}: expected another loss than {expected}")


main()
