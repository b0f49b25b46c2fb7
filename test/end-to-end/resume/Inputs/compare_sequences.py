# SPDX-License-Identifier: Apache-2.0
"""compare_sequences.py WHOLE BATCH FIRST [PART BATCH FIRST]...: the JSON lines of
runs without learning, each with the sequences of its steps, from number FIRST
on. The mean losses of the same sequences are the same, to 1e-6."""
import json
import sys


def sums(path, batch, first):
    """The sum of the losses of the sequences before each step's end."""
    with open(path) as file:
        lines = [json.loads(line) for line in file if line.startswith("{")]
    total, at = {first: 0.0}, first
    for line in lines:
        if line["event"] == "step":
            total[at + batch] = total[at] + batch * line["loss"]
            at += batch
    return total


runs = [sums(path, int(batch), int(first))
        for path, batch, first in zip(*[iter(sys.argv[1:])] * 3)]
whole, parts = runs[0], runs[1:]
for part in parts:
    first = min(part)
    common = [end for end in part if end != first and end in whole]
    assert common, (sorted(part), sorted(whole))
    for end in common:
        expected = (whole[end] - whole[first]) / (end - first)
        actual = part[end] / (end - first)
        assert abs(actual - expected) <= 1e-6 * expected, (first, end, actual, expected)
