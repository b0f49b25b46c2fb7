# SPDX-License-Identifier: Apache-2.0
"""compare_losses.py ONE SAME NEAR WORSE: the loss of evaluations is that of ONE
to the bit, to 1e-6, or higher."""
import json
import sys

one, same, near, worse = (json.load(open(path))["loss"] for path in sys.argv[1:])
assert same == one, (same, one)
assert abs(near - one) <= 1e-6 * one, (near, one)
assert worse > one, (worse, one)
