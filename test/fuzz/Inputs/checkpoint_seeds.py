# SPDX-License-Identifier: Apache-2.0
"""Writes inputs of fuzz-checkpoint to a folder: manifests of one tensor, cut in
several ways, of the bytes 0 to 95."""
import json
import os
import struct
import sys

# XXH3 of bytes [begin, end).
HASHES = {(0, 48): "57433c648f7d24c9", (48, 96): "b020fbcce7e7f3b0",
          (0, 96): "278a3e12ea046dfb", (0, 32): "3523581fe96e4c05",
          (32, 96): "2602d484a3a3a1a3"}


def seed(name, type, shape, pieces):
    manifest = {
        "format": "rota checkpoint", "version": 2,
        "run": {"step": 3, "sequences": 24, "values": {"scale": [1.5, "7ff0000000000000"]}},
        "identity": {"data": "x"}, "config": "{}",
        "files": [{"name": "rank-0.safetensors", "bytes": 96}],
        "tensors": [{"name": "w", "type": type, "shape": shape, "pieces": [
            {"file": 0, "offset": span[0], "begin": begin, "size": size, "hash": HASHES[span]}
            for span, begin, size in pieces]}]}
    text = json.dumps(manifest, separators=(",", ":")).encode()
    with open(os.path.join(sys.argv[1], name), "wb") as output:
        output.write(struct.pack("<H", len(text)) + text + bytes(range(96)))


seed("whole", "F32", [4, 6], [((0, 96), [0, 0], [4, 6])])
seed("rows", "F32", [4, 6], [((0, 48), [0, 0], [2, 6]), ((48, 96), [2, 0], [2, 6])])
seed("columns", "F32", [4, 6], [((32, 96), [0, 2], [4, 4]), ((0, 32), [0, 0], [4, 2])])
seed("bf16", "BF16", [3, 4, 4], [((0, 32), [0, 0, 0], [1, 4, 4]), ((32, 96), [1, 0, 0], [2, 4, 4])])
seed("bytes", "U8", [96], [((0, 96), [0], [96])])
