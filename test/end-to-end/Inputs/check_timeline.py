#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the timeline of `rota plan --json`.

    check_timeline.py PLAN.json STREAM...

Its streams are those; actions of a stream do not overlap; each half of a pair has
the times of the other; values arrive before they are read; the last action ends
with the step of the chosen policy."""
import json
import sys

with open(sys.argv[1]) as file:
    plan = json.load(file)
rows = plan["timeline"]
assert len(rows) == len(plan["stages"]) == plan["mesh"].get("stage", 1)
streams = {}
for number, row in enumerate(rows):
    assert row["stage"] == number
    for action in row["actions"]:
        streams.setdefault(action["stream"], {}).setdefault(number, []).append(action)
        microbatch = action.get("microbatch", "")
        assert action["action"] == f"{action['chunk']}{action['kind']}{microbatch}"
        assert action["begin"] <= action["end"], action
assert sorted(streams) == sorted(sys.argv[2:]), sorted(streams)

ends = {}
for stream, stages in streams.items():
    for actions in stages.values():
        for before, after in zip(actions, actions[1:]):
            assert before["end"] <= after["begin"] * (1 + 1e-8), (before, after)
        for action in actions:
            ends[action["action"]] = action["end"]
for stages in streams.get("pair", {}).items():
    number, actions = stages
    firsts = [(a["begin"], a["end"]) for a in streams["compute"][number]]
    for action in actions:
        assert (action["begin"], action["end"]) in firsts, action
for row in rows:
    for action in row["actions"]:
        received = action["action"].replace("F", "RECV_F").replace("B", "RECV_B")
        if action["kind"] in ("F", "B") and received in ends:
            assert ends[received] <= action["begin"] * (1 + 1e-8), action

(chosen,) = [policy for policy in plan["policies"] if policy["chosen"]]
last = max(action["end"] for row in rows for action in row["actions"])
assert abs(last / chosen["step_seconds"] - 1) < 1e-8, (last, chosen["step_seconds"])
