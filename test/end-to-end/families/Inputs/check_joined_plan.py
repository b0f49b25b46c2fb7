# SPDX-License-Identifier: Apache-2.0
"""Checks that four ranks divide the work of one, by the JSON of `rota plan`, and
that no transfer gathers joined parameters or what is made of them.

    check_joined_plan.py ONE.json FOUR.json...
"""
import json
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def work(plan):
    """Seconds of a step's chunks, without the transfers inside of them."""
    chosen, = [policy for policy in plan["policies"] if policy["chosen"]]
    inside = [t["exposed_seconds"] for t in plan["transfers"]
              if not t["why"].startswith("a gradient")]
    return sum(chunk["seconds"] for chunk in chosen["chunks"]) - sum(inside)


one = read(sys.argv[1])
for path in sys.argv[2:]:
    four = read(path)
    assert four["parameters"] == one["parameters"]
    quotient = work(one) / work(four)
    assert 3.9 < quotient < 4.02, (path, quotient)
    for transfer in four["transfers"]:
        assert "x3x" not in transfer["tensor"], transfer
        assert "c_attn" not in transfer["tensor"] or \
            "tensor" not in transfer["axes"], transfer
        assert "attention" not in transfer["why"], transfer
