# SPDX-License-Identifier: Apache-2.0
"""check_biases.py RATE STEPS FIRST OTHER...: the biases of choices in FIRST are
sums of at most STEPS terms RATE or -RATE, not all zero, and those of each OTHER
are the same bits. RATE is a power of two, so that sums are exact."""
import sys

import tensor_file


def biases(path):
    return {name: tensor_file.numbers(tensor)
            for name, tensor in tensor_file.read(path).items()
            if name.endswith("e_score_correction_bias")}


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
