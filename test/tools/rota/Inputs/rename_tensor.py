# SPDX-License-Identifier: Apache-2.0
"""Copies a model's folder with another name for one of its tensors.

    rename_tensor.py FOLDER COPY NAME OTHER_NAME
"""
import json
import os
import shutil
import struct
import sys


def main():
    folder, copy, name, other = sys.argv[1:]
    shutil.copytree(folder, copy)
    path = os.path.join(copy, "model.safetensors")
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    header[other] = header.pop(name)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


main()
