# SPDX-License-Identifier: Apache-2.0
"""Writes inputs of fuzz-weights to a folder: an index and a file of the tensors
that the fuzzer's model has."""
import functools
import json
import os
import struct
import sys

BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "U8": 1, "F8_E4M3": 1}


def seed(name, types, extra=None):
    shapes = {"layers.0.w": [2, 3], "layers.1.w": [2, 3], "norm": [3]}
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for (tensor, shape), type in zip(shapes.items(), types):
        size = BYTES[type] * (6 if len(shape) == 2 else 3)
        header[tensor] = {"dtype": type, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    header.update(extra or {})
    at = max([at] + [entry["data_offsets"][1] for entry in (extra or {}).values()
                     if isinstance(entry, dict)])
    text = json.dumps(header, separators=(",", ":")).encode()
    index = json.dumps({"weight_map": {tensor: "a" for tensor in shapes}}).encode()
    with open(os.path.join(sys.argv[1], name), "wb") as output:
        output.write(struct.pack("<H", len(index)) + index +
                     struct.pack("<Q", len(text)) + text + bytes(at))


seed("f32", ["F32"] * 3)
seed("mixed", ["F64", "F16", "BF16"])
seed("integers", ["U8"] * 3)
seed("empty", ["F32"] * 3, {"none": {"dtype": "I64", "shape": [0, 5], "data_offsets": [60, 60]}})
seed("deep", ["F32"] * 3, {"deep": functools.reduce(lambda inner, _: [inner], range(500))})
seed("overflow", ["F32"] * 3,
     {"huge": {"dtype": "F32", "shape": [1 << 62, 4], "data_offsets": [60, 60]}})
seed("fp8", ["F8_E4M3", "F8_E4M3", "F32"],
     {"layers.0.w_scale_inv": {"dtype": "F32", "shape": [1, 1], "data_offsets": [24, 28]},
      "layers.1.w_scale_inv": {"dtype": "BF16", "shape": [2, 1], "data_offsets": [28, 32]}})
seed("mxfp4", ["F32"] * 3,
     {"e_blocks": {"dtype": "U8", "shape": [1, 2, 1, 16], "data_offsets": [60, 92]},
      "e_scales": {"dtype": "U8", "shape": [1, 2, 1], "data_offsets": [92, 94]}})
