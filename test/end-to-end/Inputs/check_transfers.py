# SPDX-License-Identifier: Apache-2.0
"""Checks the transfers of a plan that offloads, JSON of `rota plan`."""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    plan = json.load(file)
transfers = plan["transfers"]

exposed = [t["exposed_seconds"] for t in transfers]
assert exposed == sorted(exposed, reverse=True), exposed
for t in transfers:
    assert 0 <= t["exposed_seconds"] <= t["seconds"] * (1 + 1e-9), t
    assert t["tensor"] and t["why"] and t["bytes"] > 0, t
    assert bool(t["waiter"]) == (t["exposed_seconds"] > 0), t
    assert (t["transfer"] == "copy") == (t["axes"] == ""), t
copies = [t for t in transfers if t["transfer"] == "copy"]
assert [t["tensor"] for t in copies] == ["residuals"] * 2, copies
assert copies[0]["bytes"] == copies[1]["bytes"], copies
assert any(e < t["seconds"] for e, t in zip(exposed, transfers))
for axis in plan["transfers_by_axes"]:
    own = [t for t in transfers if (t["axes"] or "host") == axis["axes"]]
    for key in ("bytes", "seconds", "exposed_seconds"):
        assert abs(sum(t[key] for t in own) - axis[key]) < 1e-9, axis
    assert abs(axis["hidden"] - 1 + axis["exposed_seconds"] / axis["seconds"]) < 1e-9
assert {t["axes"] or "host" for t in transfers} == {
    axis["axes"] for axis in plan["transfers_by_axes"]}
