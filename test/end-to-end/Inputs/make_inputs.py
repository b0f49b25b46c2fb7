# SPDX-License-Identifier: Apache-2.0
"""Writes the inputs of the end-to-end tests beside this file: tokens for the
hand-written models of models/examples, and vectors for models without them."""
import pathlib
import random

import tensor_file


def write(name, tensors):
    tensor_file.write(pathlib.Path(__file__).with_name(name),
                      {key: tensor_file.tensor(*value)
                       for key, value in tensors.items()})


random.seed(5)
# 16 sequences of 32 tokens and the one after.
write("tokens.safetensors",
      {"tokens": ("I32", [16, 33], [random.randrange(256) for _ in range(16 * 33)])})
# 16 sequences of 4 vectors of 28.
count = 16 * 4 * 28
write("vectors.safetensors",
      {key: ("F32", [16, 4, 28], [random.gauss(0, 1) for _ in range(count)])
       for key in ("inputs", "targets")})
tokens = [random.randrange(256) for _ in range(16 * 33)]
# Sequences with half of the targets that do not count, among them the whole
# second sequence; and with none that counts.
write("masked.safetensors",
      {"tokens": ("I32", [16, 33], tokens),
       "mask": ("I32", [16, 32],
                [int(i // 32 != 1 and random.random() < 0.5)
                 for i in range(16 * 32)])})
write("uncounted.safetensors",
      {"tokens": ("I32", [16, 33], tokens), "mask": ("I32", [16, 32], [0] * 16 * 32)})
