# SPDX-License-Identifier: Apache-2.0
"""Compares the first and the last loss of PyTorch's line (JSON) with those of a probe's curve."""
import json
import sys

from safetensors.torch import load_file

with open(sys.argv[1]) as file:
    peer = json.load(file)
curve = load_file(sys.argv[2])["loss_curve"].tolist()
for theirs, ours in [(peer["loss_first"], curve[0]), (peer["loss_last"], curve[-1])]:
    if not abs(theirs - ours) < 1e-5 * abs(ours):
        sys.exit(f"expected a loss of {theirs}, got {ours}")
print(f"equal losses: {curve[0]}, {curve[-1]}")
