# SPDX-License-Identifier: Apache-2.0
"""Compares a checkpoint with the weights of --save.

    check_checkpoint.py FOLDER STEP [WEIGHTS]

Each piece must be the tensor of its name in its file; the pieces of a tensor
must hold each of its elements once; master copies must have the bits of the
tensors in WEIGHTS. Prints the files.
"""
import itertools
import json
import math
import os
import struct
import sys


def read(path):
    """name -> (type, shape, offset in the file, bytes)."""
    data = open(path, "rb").read()
    length, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, form in header.items():
        begin, end = (8 + length + offset for offset in form["data_offsets"])
        tensors[name] = (form["dtype"], form["shape"], begin, data[begin:end])
    return tensors


def main(folder, step, weights=None):
    names = sorted(os.listdir(folder))
    manifest = json.load(open(os.path.join(folder, "manifest.json")))
    assert manifest["run"]["step"] == int(step), manifest["run"]
    files = [file["name"] for file in manifest["files"]]
    assert names == sorted(files + ["manifest.json"]), names
    for file in manifest["files"]:
        size = os.path.getsize(os.path.join(folder, file["name"]))
        assert size == file["bytes"], file
    contents = [read(os.path.join(folder, file)) for file in files]
    saved = read(weights) if weights else {}
    masters, pieces = set(), 0
    for tensor in manifest["tensors"]:
        width = {"F32": 4, "BF16": 2}[tensor["type"]]
        shape = tensor["shape"]
        whole = [None] * math.prod(shape)
        for piece in tensor["pieces"]:
            pieces += 1
            name = tensor["name"] + "@" + ",".join(map(str, piece["begin"]))
            kind, size, offset, data = contents[piece["file"]][name]
            assert (kind, size, offset) == (tensor["type"], piece["size"],
                                            piece["offset"]), name
            ranges = [range(b, b + n)
                      for b, n in zip(piece["begin"], piece["size"])]
            for i, index in enumerate(itertools.product(*ranges)):
                at = 0
                for position, extent in zip(index, shape):
                    at = at * extent + position
                assert whole[at] is None, (name, index)
                whole[at] = data[i * width:(i + 1) * width]
        assert None not in whole, tensor["name"]
        if "/" not in tensor["name"] and weights:
            assert b"".join(whole) == saved[tensor["name"]][3], tensor["name"]
            masters.add(tensor["name"])
    assert pieces == sum(len(tensors) for tensors in contents)
    assert not weights or masters == set(saved), masters
    print(" ".join(files))


main(*sys.argv[1:])
