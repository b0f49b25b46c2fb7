# SPDX-License-Identifier: Apache-2.0
"""Checks how a mesh divides the work and the activations of a model: those of
one rank over those of a rank of the mesh, as `rota plan` has them.

    check_division.py CONFIG MESH LEAST_WORK LEAST_ACTIVATIONS
"""
import json
import subprocess
import sys


def plan(config, options):
    text = subprocess.run(["rota", "plan", "--model", config, "--json",
                           "--batch-size", "4", "--microbatches", "1",
                           "--sequence-length", "4096", "--dtype", "bf16",
                           *options], check=True, stdout=subprocess.PIPE).stdout
    result = json.loads(text)
    chosen, = (p for p in result["policies"] if p["chosen"])
    # Gradients are summed after the seconds of the stage.
    exposed = sum(t["exposed_seconds"] for t in result["transfers"]
                  if "a gradient, summed" not in t["why"])
    return {"work": chosen["stages"][0]["seconds"] - exposed,
            "activations": chosen["activation_bytes"]}


def main():
    config, mesh, *least = sys.argv[1:]
    one = plan(config, [])
    own = plan(config, ["--mesh", mesh, "--context-exchange", "auto"])
    for what, bound in zip(("work", "activations"), least):
        share = one[what] / own[what]
        print(f"{mesh}: {what} divided by {share:.2f}")
        if share < float(bound):
            sys.exit(f"expected at least {bound}")


main()
