# SPDX-License-Identifier: Apache-2.0
"""Checks `axes` of a plan against plans without an axis each:
check_divisions.py PLAN ONE_RANK AXIS=PLAN_WITHOUT_IT ..."""
import json
import math
import sys


def read(path):
    with open(path) as file:
        return json.load(file)


def close(actual, expected, what):
    if abs(actual - expected) > 0.01 * expected:
        sys.exit(f"expected {what} of about {expected}, got {actual}")


plan, one = read(sys.argv[1]), read(sys.argv[2])
ranks = math.prod(plan["mesh"].values())
close(plan["even_share"], one["operations"] / ranks, "an even share")
if one["axes"]:
    sys.exit("expected no axes of one rank")
if list(plan["axes"]) != [axis for axis, size in plan["mesh"].items() if size > 1]:
    sys.exit(f"expected the axes of the mesh, got {list(plan['axes'])}")
for argument in sys.argv[3:]:
    axis, path = argument.split("=")
    found = plan["axes"][axis]
    if found["ranks"] != plan["mesh"][axis]:
        sys.exit(f"expected {plan['mesh'][axis]} ranks of {axis}, got {found['ranks']}")
    close(found["divided"]["work"], read(path)["operations"] / plan["operations"], f"a division by {axis}")
