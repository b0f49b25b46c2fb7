# SPDX-License-Identifier: Apache-2.0
"""Writes hub folders with random quantized weights: experts in MXFP4, projections
in FP8.

    quantize.py GPT_OSS_CONFIG FOLDER DEEPSEEK_CONFIG FOLDER
"""
import json
import math
import os
import random
import sys

import tensor_file


def floats(shape, scale=0.1):
    return tensor_file.tensor("F32", shape,
                              [random.uniform(-scale, scale)
                               for _ in range(math.prod(shape))])


def codes(dtype, shape, below, first=0):
    return dtype, shape, bytes(random.randrange(first, below)
                               for _ in range(math.prod(shape)))


def fp8(tensors, name, shape):
    tensors[name] = codes("F8_E4M3", shape, 0x40)
    grid = [(size + 127) // 128 for size in shape]
    tensors[name + "_scale_inv"] = floats(grid)


def mxfp4(tensors, name, matrices, rows, columns):
    groups = rows // 32
    tensors[name + "_blocks"] = codes("U8", [matrices, columns, groups, 16], 256)
    tensors[name + "_scales"] = codes("U8", [matrices, columns, groups], 125, 120)


def write(folder, config, method, tensors):
    os.makedirs(folder)
    config["quantization_config"] = {"quant_method": method}
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)
    tensor_file.write(os.path.join(folder, "model.safetensors"), tensors)


def gpt_oss(config, folder):
    config.update(hidden_size=64, intermediate_size=32, num_hidden_layers=2,
                  vocab_size=256)
    embed, inner, experts = 64, 32, config["num_local_experts"]
    heads = config["num_attention_heads"]
    kv, size = config["num_key_value_heads"], config["head_dim"]
    tensors = {"model.embed_tokens.weight": floats([256, embed]),
               "model.norm.weight": floats([embed]),
               "lm_head.weight": floats([256, embed])}
    for layer in range(2):
        at = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{at}{norm}.weight"] = floats([embed])
        tensors[at + "self_attn.sinks"] = floats([heads])
        for name, out, inside in (("q", heads * size, embed), ("k", kv * size, embed),
                                  ("v", kv * size, embed), ("o", embed, heads * size)):
            tensors[f"{at}self_attn.{name}_proj.weight"] = floats([out, inside])
            tensors[f"{at}self_attn.{name}_proj.bias"] = floats([out])
        tensors[at + "mlp.router.weight"] = floats([experts, embed])
        tensors[at + "mlp.router.bias"] = floats([experts])
        mxfp4(tensors, at + "mlp.experts.gate_up_proj", experts, embed, 2 * inner)
        mxfp4(tensors, at + "mlp.experts.down_proj", experts, inner, embed)
        tensors[at + "mlp.experts.gate_up_proj_bias"] = floats([experts, 2 * inner])
        tensors[at + "mlp.experts.down_proj_bias"] = floats([experts, embed])
    write(folder, config, "mxfp4", tensors)


def deepseek(config, folder):
    """Every matrix but embedding, head and routers in FP8."""
    golden = os.path.join(os.path.dirname(sys.argv[3]), "model.safetensors")
    tensors = {}
    for name, (_, shape, _) in tensor_file.read(golden).items():
        if name.endswith("_proj.weight") or "kv_a_proj" in name:
            fp8(tensors, name, shape)
        elif name in ("model.embed_tokens.weight", "lm_head.weight"):
            tensors[name] = floats([256, shape[1]])
        else:
            tensors[name] = floats(shape)
    config.update(vocab_size=256)
    write(folder, config, "fp8", tensors)


random.seed(5)
for build, path, folder in ((gpt_oss, *sys.argv[1:3]), (deepseek, *sys.argv[3:5])):
    with open(path) as file:
        build(json.load(file), folder)
