# SPDX-License-Identifier: Apache-2.0
"""Writes two batches of the same documents: two in each sequence, and each in a
sequence of its own.

    pack_documents.py TOKENS LENGTH END PACKED ALONE [all]

TOKENS has `tokens` [batch, sequence + 1], of which the first LENGTH + 1 of each
row become two documents. The first one ends with the token END, whose target, of
the second document, does not count, unless `all` count in PACKED.
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


def read(path):
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        tokens = json.loads(file.read(size))["tokens"]
        batch, length = tokens["shape"]
        file.seek(8 + size + tokens["data_offsets"][0])
        return [list(struct.unpack(f"<{length}i", file.read(4 * length)))
                for _ in range(batch)]


def main():
    path, length, end, packed, alone, *every = sys.argv[1:]
    length, end = int(length), int(end)
    both, masks, ones, masks_of_ones = [], [], [], []
    for number, row in enumerate(read(path)):
        row = [token + (token == end) for token in row[:length + 1]]
        first = 1 + number % (length - 1)  # tokens of the first document
        row[first - 1] = end
        both.append(row)
        masks.append([int(i != first - 1) for i in range(length)])
        for begin, after, counted in ((0, first, first - 1),
                                      (first, length + 1, length - first)):
            document = row[begin:after]
            ones.append(document + [0] * (length + 1 - len(document)))
            masks_of_ones.append([int(i < counted) for i in range(length)])
    write(packed, {"tokens": both} if every else {"tokens": both, "mask": masks})
    write(alone, {"tokens": ones, "mask": masks_of_ones})


main()
