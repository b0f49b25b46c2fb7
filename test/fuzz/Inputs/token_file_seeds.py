# SPDX-License-Identifier: Apache-2.0
"""Writes an input of fuzz-token-file for each form of token file to a folder."""
import os
import struct
import sys

INDEX, MASK, WIDE, NO_TYPE = 8, 16, 32, 7


def seed(name, tokens, form=NO_TYPE, index=b"", mask=b""):
    files = b"".join(struct.pack("<H", len(file)) + file for file in (index, mask))
    with open(os.path.join(sys.argv[1], name), "wb") as output:
        output.write(bytes([form]) + files + tokens)


def llmc(magic, version, tokens, unit):
    return struct.pack("<256i", magic, version, len(tokens) // unit, *[0] * 253) + tokens


def numpy(version, descr, count, tokens):
    text = b"{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }\n" % (descr, count)
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + tokens


def megatron(code, unit, lengths, modes=b""):
    offsets = [unit * sum(lengths[:i]) for i in range(len(lengths))]
    documents = [0, len(lengths)]
    return (b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, len(lengths), len(documents)) +
            struct.pack(f"<{len(lengths)}i", *lengths) + struct.pack(f"<{len(offsets)}q", *offsets) +
            struct.pack("<2q", *documents) + modes)


narrow = struct.pack("<4H", 1, 2, 3, 4)
seed("bytes", b"text")
seed("uint16", narrow, 1)
seed("int64", struct.pack("<2q", 5, -1), 4)
seed("gpt2", llmc(20240520, 1, narrow, 2))
seed("llama3", llmc(20240801, 7, struct.pack("<2I", 1, 39999), 4), NO_TYPE | WIDE)
seed("numpy1", numpy(1, b"<u2", 4, narrow))
seed("numpy2", numpy(2, b"<i4", 2, narrow))
seed("megatron", narrow, NO_TYPE | INDEX, megatron(8, 2, [1, 0, 3]))
seed("modes", narrow, NO_TYPE | INDEX, megatron(4, 4, [2], b"\1"))
seed("mask", b"text", NO_TYPE | MASK, mask=b"\0\1\0\1")
