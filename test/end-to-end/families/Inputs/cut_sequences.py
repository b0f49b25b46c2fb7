# SPDX-License-Identifier: Apache-2.0
"""Writes two batches with the same targets that count: sequences whose last
targets do not count, and the same sequences without these.

    cut_sequences.py TOKENS COUNT MASKED SHORT

TOKENS has `tokens` [batch, sequence + 1]; the first COUNT targets count.
"""
import json
import struct
import sys


def write(path, tensors):
    header, data = {}, b""
    for name, rows in tensors.items():
        packed = b"".join(struct.pack(f"<{len(row)}i", *row) for row in rows)
        header[name] = {"dtype": "I32", "shape": [len(rows), len(rows[0])],
                        "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def main():
    path, count, masked, short = sys.argv[1:]
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        tokens = json.loads(file.read(size))["tokens"]
        batch, length = tokens["shape"]
        file.seek(8 + size + tokens["data_offsets"][0])
        rows = [struct.unpack(f"<{length}i", file.read(4 * length))
                for _ in range(batch)]
    mask = [int(i < int(count)) for i in range(length - 1)]
    write(masked, {"tokens": rows, "mask": [mask] * batch})
    write(short, {"tokens": [row[:int(count) + 1] for row in rows]})


main()
