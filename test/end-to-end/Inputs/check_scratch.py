# SPDX-License-Identifier: Apache-2.0
"""Two plans of a model whose scratch is that of the loss: with blocks of the loss,
those bytes are at most a share of the others.

    check_scratch.py WHOLE.json BLOCKS.json SHARE
"""
import json
import sys


def scratch(path):
    with open(path) as file:
        return max(stage["uses"]["scratch"] for stage in json.load(file)["stages"])


whole, blocks = map(scratch, sys.argv[1:3])
share = float(sys.argv[3])
print(f"{whole} and {blocks} bytes of scratch")
if not 0 < blocks <= share * whole:
    sys.exit(f"expected at most {share} of {whole} bytes of scratch, got {blocks}")
