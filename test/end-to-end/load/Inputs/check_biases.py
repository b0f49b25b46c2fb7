# SPDX-License-Identifier: Apache-2.0
"""check_biases.py RATE STEPS FIRST OTHER...: the biases of choices in FIRST are
sums of at most STEPS terms RATE or -RATE, not all zero, and those of each OTHER
are the same bits. RATE is a power of two, so that sums are exact."""
import json
import struct
import sys


def biases(path):
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    found = {}
    for name, tensor in header.items():
        if name.endswith("e_score_correction_bias"):
            begin, end = tensor["data_offsets"]
            found[name] = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    return found


rate, steps, first, *others = sys.argv[1:]
rate, steps = float(rate), int(steps)
expected = biases(first)
if not expected:
    sys.exit("expected biases, got none")
for name, values in expected.items():
    terms = [value / rate for value in values]
    if any(term != round(term) or abs(term) > steps for term in terms):
        sys.exit(f"{name}: expected sums of {steps} terms {rate}, got {values}")
    if not any(terms):
        sys.exit(f"{name}: expected biases that moved, got zeros")
for other in others:
    if biases(other) != expected:
        sys.exit(f"{other}: expected the biases {expected}, got {biases(other)}")
