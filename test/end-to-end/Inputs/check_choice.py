#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the choice of `rota plan --json --remat auto --memory BYTES`.

    check_choice.py PLAN.json BYTES

Every rank fits; each stage has the bytes of the same stage under that policy for
all; no policy for all that fits has a shorter step, and one that does not fit
has."""
import json
import sys

with open(sys.argv[1]) as file:
    plan = json.load(file)
bound = int(sys.argv[2])
rows = {row["policy"]: row for row in plan["policies"]}
(chosen,) = [row for row in plan["policies"] if row["chosen"]]
base, *others = chosen["policy"].split(";")
policies = [base] * len(plan["stages"])
for other in others:
    stage, policy = other.split(":")
    policies[int(stage)] = policy

peaks = [stage["bytes"] for stage in plan["stages"]]
assert max(peaks) <= bound, (peaks, bound)
assert len(set(policies)) > 1, policies
for stage, policy in enumerate(policies):
    assert rows[policy]["stages"][stage]["bytes"] == peaks[stage], stage

fits = {name: all(stage["bytes"] <= bound for stage in row["stages"])
        for name, row in rows.items()}
for name, row in rows.items():
    if fits[name]:
        assert row["step_seconds"] >= chosen["step_seconds"], name
assert not fits["none"] and fits["save_out_proj"]
assert rows["none"]["step_seconds"] < chosen["step_seconds"]
