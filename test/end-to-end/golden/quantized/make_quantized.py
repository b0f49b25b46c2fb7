#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes quantized weights as hubs publish them, and what transformers makes of them.

    pip install torch transformers safetensors
    python make_quantized.py  # writes into the folder beside it

model.safetensors has FP8 in blocks (every finite code, several blocks along each
dimension, a matrix for each of two experts) and MXFP4 (every code, the smallest
and a large exponent), beside tensors that are not quantized. f32.safetensors and
bf16.safetensors have what transformers reads out of it in these types.

Made with torch 2.15 and transformers 5.24.
"""
import os

import torch
from safetensors.torch import save_file
from transformers.integrations.finegrained_fp8 import Fp8Dequantize
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

HERE = os.path.dirname(os.path.abspath(__file__))
FP8 = {  # shape of the weights, shape of their scales
    "codes.weight": ((2, 127), (1, 1)),
    "rows.weight": ((256, 3), (2, 1)),
    "columns.weight": ((3, 384), (1, 3)),
    "experts.weight": ((2, 5, 256), (2, 1, 2)),
    "small_blocks.weight": ((8, 12), (2, 3)),
}
MXFP4 = {"mlp.experts.gate_up_proj": (2, 3, 2), "mlp.experts.down_proj": (1, 5, 1)}


def fp8_codes(shape):
    finite = [code for code in range(256) if code & 0x7F != 0x7F]
    count = torch.Size(shape).numel()
    codes = torch.tensor((finite * (count // len(finite) + 1))[:count])
    if count > len(finite):
        codes = codes[torch.randperm(count)]
    return codes.to(torch.uint8).reshape(shape).view(torch.float8_e4m3fn)


def main():
    torch.manual_seed(1)
    published, wide, narrow = {}, {}, {}

    def add(name, make):
        wide[name], narrow[name] = make(torch.float32), make(torch.bfloat16)

    dequantize = Fp8Dequantize(None)._dequantize_one
    for name, (shape, grid) in FP8.items():
        weight, scales = fp8_codes(shape), torch.rand(grid) * 3e-3
        published[name], published[name + "_scale_inv"] = weight, scales
        add(name, lambda dtype: dequantize(weight, scales, output_dtype=dtype))
    for name, shape in MXFP4.items():
        blocks = torch.randint(0, 256, (*shape, 16), dtype=torch.uint8)
        scales = torch.randint(110, 130, shape, dtype=torch.uint8)
        scales.view(-1)[:2] = torch.tensor([0, 250], dtype=torch.uint8)
        published[name + "_blocks"], published[name + "_scales"] = blocks, scales
        add(name, lambda dtype: convert_moe_packed_tensors(blocks, scales, dtype=dtype))
    for name, dtype in {"norm.weight": torch.bfloat16, "bias": torch.float32}.items():
        plain = torch.randn(4).to(dtype)
        published[name] = plain
        add(name, plain.to)
    for name, tensors in {"model": published, "f32": wide, "bf16": narrow}.items():
        save_file({key: value.contiguous() for key, value in tensors.items()},
                  os.path.join(HERE, name + ".safetensors"))


main()
