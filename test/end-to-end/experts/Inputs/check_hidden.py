# SPDX-License-Identifier: Apache-2.0
"""Checks how much of an axis's transfers a plan hides behind work.

    check_hidden.py PLAN.json AXIS LEAST_SHARE
"""
import json
import sys

path, axes, least = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    transfers, = (row for row in json.load(file)["transfers_by_axes"]
                  if row["axes"] == axes)
print(f"{transfers['hidden']:.1%} hidden")
if transfers["hidden"] < float(least):
    sys.exit(f"expected at least {least}")
