# SPDX-License-Identifier: Apache-2.0
"""Checks that a run launches in a step what the plan lists: JSON of `rota plan`
and of `rota train`."""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    plan = json.load(file)
with open(sys.argv[2], encoding="utf-8") as file:
    end = json.loads(file.read().splitlines()[-1])
assert end["event"] == "end", end
rows = plan["kernels"]
assert plan["launches"] == sum(row["launches"] for row in rows), rows
assert len({row["kernel"] for row in rows}) == len(rows), rows
assert plan["launches"] == end["step_launches"], (rows, end["step_launches"])
for row in rows:
    assert row["launches"] > 0 and row["bytes"] >= 0, row
