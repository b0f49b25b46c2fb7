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


def compare(expected_path, actual_path, count, tolerance):
    expected, actual = steps(expected_path), steps(actual_path)
    assert len(actual) == count, f"expected {count} steps, got {sorted(actual)}"
    for number, step in actual.items():
        want = expected[number]
        assert step["learning_rate"] == want["learning_rate"], number
        for key in ("loss", "validation_loss"):
            a, b = step[key], want[key]
            assert (a is None) == (b is None), (number, key)
            assert a is None or abs(a - b) <= tolerance * abs(b), (number, key, a, b)


if __name__ == "__main__":
    compare(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
