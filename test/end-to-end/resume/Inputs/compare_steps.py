# SPDX-License-Identifier: Apache-2.0
"""compare_steps.py EXPECTED ACTUAL COUNT TOLERANCE: compares the COUNT steps of a
run's JSON lines with those of the same numbers of another: losses within the
relative tolerance, validation losses too, learning rates exactly."""
import json
import sys


def steps(path):
    with open(path) as file:
        lines = [json.loads(line) for line in file if line.startswith("{")]
    return {line["step"]: line for line in lines if line["event"] == "step"}


expected, actual = steps(sys.argv[1]), steps(sys.argv[2])
count, tolerance = int(sys.argv[3]), float(sys.argv[4])
assert len(actual) == count, f"expected {count} steps, got {sorted(actual)}"
for number, step in actual.items():
    want = expected[number]
    assert step["learning_rate"] == want["learning_rate"], number
    for key in ("loss", "validation_loss"):
        a, b = step[key], want[key]
        assert (a is None) == (b is None), (number, key)
        assert a is None or abs(a - b) <= tolerance * abs(b), (number, key, a, b)
