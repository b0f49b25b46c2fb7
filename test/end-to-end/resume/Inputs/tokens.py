# SPDX-License-Identifier: Apache-2.0
"""Writes 2000 uint16 tokens below 40 to a file."""
import struct
import sys

with open(sys.argv[1], "wb") as output:
    output.write(struct.pack("<2000H", *((7 * i * i + 3 * i) % 40 for i in range(2000))))
