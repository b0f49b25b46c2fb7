#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that `rota plan --json --remat auto --memory BYTES` chose for chunks.

    check_chunks.py PLAN.json BYTES

Every rank fits; chunks of a stage differ; each chunk has the bytes and the time of
the same chunk under that policy for all; no policy for all that fits has as short
a step."""
import json
import sys

with open(sys.argv[1]) as file:
    plan = json.load(file)
bound = int(sys.argv[2])
rows = {row["policy"]: row for row in plan["policies"]}
(chosen,) = [row for row in plan["policies"] if row["chosen"]]
remat = plan["remat"]
assert remat["policy"] == chosen["policy"]
assert remat["step_seconds"] == chosen["step_seconds"]

peaks = [stage["bytes"] for stage in plan["stages"]]
assert max(peaks) <= bound, (peaks, bound)
assert [stage["bytes"] for stage in remat["stages"]] == peaks
for number, chunk in enumerate(remat["chunks"]):
    row = rows[chunk["policy"]]["chunks"][number]
    for key in ("stage", "bytes", "seconds"):
        assert chunk[key] == row[key], (number, key)
    least = min(row["chunks"][number]["seconds"] for row in rows.values())
    assert chunk["least_seconds"] == least
kinds = {}
for chunk in remat["chunks"]:
    kinds.setdefault(chunk["stage"], set()).add(chunk["policy"])
assert max(map(len, kinds.values())) > 1, kinds
assert "chunk" in chosen["policy"]

for name, row in rows.items():
    if name != chosen["policy"] and all(s["bytes"] <= bound for s in row["stages"]):
        assert row["step_seconds"] > chosen["step_seconds"], name
assert rows["none"]["step_seconds"] < chosen["step_seconds"]
