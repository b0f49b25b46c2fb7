# SPDX-License-Identifier: Apache-2.0
"""Batches for `rota probe`, in files of safetensors.

    batch.py tokens OUT BATCH SEQUENCE VOCABULARY
    batch.py normal OUT BATCH SEQUENCE WIDTH
"""
import math
import random
import sys

from tensor_file import tensor, write


def tokens(source, batch, sequence, vocabulary):
    """Uniform tokens; one more than the sequence, for the targets."""
    shape = [batch, sequence + 1]
    values = [int(source.random() * vocabulary) for _ in range(math.prod(shape))]
    return {"tokens": tensor("I32", shape, values)}


def normal(source, batch, sequence, width):
    """Inputs and targets of the standard normal distribution."""
    shape = [batch, sequence, width]
    return {name: tensor("F32", shape, [source.gauss(0, 1)
                                        for _ in range(math.prod(shape))])
            for name in ("inputs", "targets")}


def main():
    kind, path, *sizes = sys.argv[1:]
    make = {"tokens": tokens, "normal": normal}[kind]
    write(path, make(random.Random(1), *map(int, sizes)))


if __name__ == "__main__":
    main()
