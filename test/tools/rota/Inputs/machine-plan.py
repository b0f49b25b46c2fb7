# SPDX-License-Identifier: Apache-2.0
"""Checks that the numbers of a plan on a machine follow from each other."""
import json
import math
import sys

plan = json.load(open(sys.argv[1]))
close = lambda a, b: math.isclose(a, b, rel_tol=1e-9)
assert plan["machine"] == "h100-sxm-80gb" and plan["devices"] == 8
assert plan["tokens"] == 8 * 4096 and plan["device_bytes"] == 85.5e9
assert plan["bytes"] == max(stage["bytes"] for stage in plan["stages"])
assert close(plan["tokens_per_second"], plan["tokens"] / plan["step_seconds"])
assert close(plan["mfu"], plan["flops_per_token"] * plan["tokens_per_second"] / (8 * 989.4e12))
assert plan["mfu"] < plan["mfu_all_pairs"] < 1.2 * plan["mfu"]
step = plan["step"]
assert close(plan["step_seconds"], step["timeline_seconds"] + step["exchange_seconds"] + step["update_seconds"])
run, checkpoints = plan["run"], plan["checkpoints"]
assert close(run["seconds"], 1e12 / plan["tokens_per_second"] / checkpoints["goodput"])
assert close(run["device_hours"], run["seconds"] / 3600 * 8) and close(run["cost"], 2.5 * run["device_hours"])
# Masters and two moments in f32.
assert close(checkpoints["seconds"], 12 * plan["parameters"] / 1e10)
