# SPDX-License-Identifier: Apache-2.0
"""Copies a model's folder with other names of its tensors: NEW in the place of
OLD, where a name begins with that.

    rename_tensors.py FOLDER COPY OLD NEW
"""
import json
import os
import shutil
import struct
import sys


def main():
    folder, copy, old, new = sys.argv[1:]
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    path = os.path.join(copy, "model.safetensors")
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    renamed = {new + name.removeprefix(old) if name.startswith(old) else name: value
               for name, value in header.items()}
    assert renamed.keys() != header.keys()
    text = json.dumps(renamed).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


main()
