# SPDX-License-Identifier: Apache-2.0
"""Writes two batches of the same documents: two in each sequence, and each in a
sequence of its own.

    pack_documents.py TOKENS LENGTH END PACKED ALONE [all]

TOKENS has `tokens` [batch, sequence + 1], of which the first LENGTH + 1 of each
row become two documents. The first one ends with the token END, whose target, of
the second document, does not count, unless `all` count in PACKED.
"""
import sys

from token_rows import read, write


def main():
    path, length, end, packed, alone, *every = sys.argv[1:]
    length, end = int(length), int(end)
    both, masks, ones, masks_of_ones = [], [], [], []
    for number, row in enumerate(read(path)):
        row = [token + (token == end) for token in row[:length + 1]]
        first = 1 + number % (length - 1)  # tokens of the first document
        row[first - 1] = end
        both.append(row)
        masks.append([int(i != first - 1) for i in range(length)])
        for begin, after, counted in ((0, first, first - 1),
                                      (first, length + 1, length - first)):
            document = row[begin:after]
            ones.append(document + [0] * (length + 1 - len(document)))
            masks_of_ones.append([int(i < counted) for i in range(length)])
    write(packed, {"tokens": both} if every else {"tokens": both, "mask": masks})
    write(alone, {"tokens": ones, "mask": masks_of_ones})


main()
