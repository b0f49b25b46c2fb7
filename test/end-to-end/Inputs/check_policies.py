# SPDX-License-Identifier: Apache-2.0
"""Compares the plans `PREFIX.POLICY`, JSON of `rota plan` under each POLICY,
with the rows that the first of them has for all policies."""
import json
import sys

prefix, *policies = sys.argv[1:]
plans = {}
for policy in policies:
    with open(f"{prefix}.{policy}", encoding="utf-8") as file:
        plans[policy] = json.load(file)


def most(plan, read):
    return max(read(stage) for stage in plan["stages"])


for policy, plan in plans.items():
    row = next(r for r in plans[policies[0]]["policies"]
               if r["policy"] == policy)
    assert [r["policy"] for r in plan["policies"] if r["chosen"]] == [policy]
    assert row["peak_bytes"] == most(plan, lambda s: s["bytes"]), policy
    assert row["host_bytes"] == most(plan, lambda s: s["host_bytes"]), policy
    assert row["activation_bytes"] == most(
        plan, lambda s: s["uses"]["activations"]), policy
    assert (row["host_bytes"] > 0) == bool(row["offloaded"]), policy
    assert (row["recomputed"] > 0) == (policy != "none"), policy

peaks = [plans[p]["policies"][0]["peak_bytes"] for p in policies]
assert len(set(peaks)) == 1, "all plans compare the same policies"
