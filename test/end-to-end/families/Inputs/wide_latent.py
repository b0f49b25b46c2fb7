# SPDX-License-Identifier: Apache-2.0
"""Writes a model with latent attention whose narrow products are worth dividing
along tokens, and tokens for it.

    wide_latent.py CONFIG OUTPUT_FOLDER TOKENS

CONFIG is the config.json of a small model, whose sizes become larger.
"""
import json
import os
import random
import sys

import tensor_file

SIZES = {"hidden_size": 256, "q_lora_rank": 160, "kv_lora_rank": 128,
         "qk_rope_head_dim": 16, "qk_nope_head_dim": 16, "v_head_dim": 16,
         "intermediate_size": 256, "moe_intermediate_size": 64,
         "num_hidden_layers": 2, "initializer_range": 0.05}
ROWS, LENGTH = 2, 513


def main():
    config, folder, tokens = sys.argv[1:]
    with open(config, encoding="utf-8") as file:
        model = json.load(file) | SIZES
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "config.json"), "w",
              encoding="utf-8") as file:
        json.dump(model, file)
    draw = random.Random(3)
    tensor_file.write(tokens, {"tokens": tensor_file.tensor(
        "I32", [ROWS, LENGTH], [draw.randrange(model["vocab_size"])
                                for _ in range(ROWS * LENGTH)])})


main()
