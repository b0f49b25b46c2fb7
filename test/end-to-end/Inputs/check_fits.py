#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the output of `rota plan --json --memory SIZE` for a plan over its memory.

    check_fits.py EXCESS.json ASKED.json COMMAND...

ASKED is the same plan without a bound. The excess and the largest uses are those
of its fullest stage; an alternative with another mesh or schedule has the bytes of
the plan that COMMAND makes with its options."""
import json
import subprocess
import sys

with open(sys.argv[1]) as file:
    excess = json.load(file)
with open(sys.argv[2]) as file:
    asked = json.load(file)

bound = excess["memory_bytes"]
peaks = [stage["bytes"] for stage in asked["stages"]]
assert [stage["bytes"] for stage in excess["stages"]] == peaks
assert [stage["excess_bytes"] for stage in excess["stages"]] == \
    [max(0, bytes - bound) for bytes in peaks]
assert peaks[excess["largest_stage"]] == max(peaks)
assert sum(use["bytes"] for use in excess["largest_uses"]) == max(peaks)
sizes = [use["bytes"] for use in excess["largest_uses"]]
assert sizes == sorted(sizes, reverse=True)

fits = excess["fits"]
assert fits and "nearest" not in excess
assert [one["step_seconds"] for one in fits] == sorted(one["step_seconds"] for one in fits)
names = {name for one in fits for name in one["options"]}
assert {"remat", "schedule", "shard-optimizer", "mesh"} <= names, names
for one in fits:
    assert one["bytes"] <= bound, one
    if not {"mesh", "schedule"} & set(one["options"]):
        continue
    command = list(sys.argv[3:])
    for name, value in one["options"].items():
        if f"--{name}" in command:
            at = command.index(f"--{name}")
            del command[at:at + 2]
        command += [f"--{name}"] if value is True else [f"--{name}", value]
    command += ["--json", "--memory", str(bound)]
    plan = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    assert max(stage["bytes"] for stage in plan["stages"]) == one["bytes"], (command, one)
