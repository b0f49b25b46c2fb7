# SPDX-License-Identifier: Apache-2.0
"""Copies a model's folder, without PREFIX in the names of its tensors.

    strip_names.py FOLDER COPY PREFIX
"""
import json
import os
import shutil
import struct
import sys


def main():
    folder, copy, prefix = sys.argv[1:]
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    path = os.path.join(copy, "model.safetensors")
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    stripped = {name.removeprefix(prefix): value
                for name, value in header.items()}
    assert stripped.keys() != header.keys()
    text = json.dumps(stripped).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


main()
