# SPDX-License-Identifier: Apache-2.0
"""Writes two batches with the same targets that count: sequences whose last
targets do not count, and the same sequences without these.

    cut_sequences.py TOKENS COUNT MASKED SHORT

TOKENS has `tokens` [batch, sequence + 1]; the first COUNT targets count.
"""
import sys

from token_rows import read, write


def main():
    path, count, masked, short = sys.argv[1:]
    rows = read(path)
    mask = [int(i < int(count)) for i in range(len(rows[0]) - 1)]
    write(masked, {"tokens": rows, "mask": [mask] * len(rows)})
    write(short, {"tokens": [row[:int(count) + 1] for row in rows]})


main()
