# SPDX-License-Identifier: Apache-2.0
"""Changes the last byte of a file."""
import sys

with open(sys.argv[1], "r+b") as file:
    file.seek(-1, 2)
    last = file.read(1)[0]
    file.seek(-1, 2)
    file.write(bytes([last ^ 1]))
