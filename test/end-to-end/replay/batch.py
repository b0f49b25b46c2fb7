# SPDX-License-Identifier: Apache-2.0
"""Batches for `rota probe`, and the safetensors file that holds one.

    batch.py tokens OUT BATCH SEQUENCE VOCABULARY
    batch.py normal OUT BATCH SEQUENCE WIDTH
"""
import json
import math
import random
import struct
import sys


def write(path, tensors):
    """tensors: name -> (type, shape, bytes)."""
    header, offset = {}, 0
    for name, (kind, shape, data) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape,
                        "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            out.write(data)


def tokens(source, batch, sequence, vocabulary):
    """Uniform tokens; one more than the sequence, for the targets."""
    shape = [batch, sequence + 1]
    values = [int(source.random() * vocabulary) for _ in range(math.prod(shape))]
    return {"tokens": ("I32", shape, struct.pack(f"<{len(values)}i", *values))}


def normal(source, batch, sequence, width):
    """Inputs and targets of the standard normal distribution."""
    shape = [batch, sequence, width]
    tensors = {}
    for name in ("inputs", "targets"):
        values = [source.gauss(0, 1) for _ in range(math.prod(shape))]
        data = struct.pack(f"<{len(values)}f", *values)
        tensors[name] = ("F32", shape, data)
    return tensors


def main():
    kind, path, *sizes = sys.argv[1:]
    make = {"tokens": tokens, "normal": normal}[kind]
    write(path, make(random.Random(1), *map(int, sizes)))


if __name__ == "__main__":
    main()
