# SPDX-License-Identifier: Apache-2.0
"""Two evaluations of one model: the losses differ by rounding."""
import json
import sys


def loss(path):
    with open(path) as file:
        return json.load(file)["loss"]


first, second = map(loss, sys.argv[1:])
if abs(first - second) > 1e-6 * first:
    sys.exit(f"expected the loss {first}, got {second}")
