# SPDX-License-Identifier: Apache-2.0
"""Checks that outputs of `rota eval --json` have one loss, and the last another.

    same_loss.py OUTPUT... OTHER"""
import json
import sys


def loss(path):
    with open(path) as file:
        return next(line["loss"] for line in map(json.loads, file)
                    if line["event"] == "eval")


*equal, other = [loss(path) for path in sys.argv[1:]]
assert max(equal) - min(equal) < 1e-5 * equal[0], equal
assert abs(other - equal[0]) > 1e-3 * equal[0], (equal, other)
