# SPDX-License-Identifier: Apache-2.0
"""Ends with an error where the first or last loss of PyTorch's line (JSON) is not that of a probe's curve."""
import json
import sys

from safetensors.torch import load_file

with open(sys.argv[1]) as file:
    peer = json.load(file)
curve = load_file(sys.argv[2])["loss_curve"].tolist()
for theirs, ours in [(peer["loss_first"], curve[0]), (peer["loss_last"], curve[-1])]:
    if not abs(theirs - ours) < 1e-5 * abs(ours):
        sys.exit(f"expected a loss of {theirs}, got {ours}")
