# SPDX-License-Identifier: Apache-2.0
"""Files of safetensors with tensors of i32, of two dimensions."""
import itertools

import tensor_file


def write(path, tensors):
    """Writes lists of rows by their names."""
    tensor_file.write(path, {
        name: tensor_file.tensor("I32", [len(rows), len(rows[0])],
                                 list(itertools.chain(*rows)))
        for name, rows in tensors.items()})


def read(path):
    """The rows of `tokens`."""
    tokens = tensor_file.read(path)["tokens"]
    length, values = tokens[1][1], tensor_file.numbers(tokens)
    return [list(values[begin:begin + length])
            for begin in range(0, len(values), length)]
