# SPDX-License-Identifier: Apache-2.0
"""Copies a model's folder with other names of its tensors: NEW in the place of
OLD, where a name begins with that.

    rename_tensors.py FOLDER COPY OLD NEW
"""
import os
import shutil
import sys

import tensor_file


def main():
    folder, copy, old, new = sys.argv[1:]
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    path = os.path.join(copy, "model.safetensors")
    tensors = tensor_file.read(path)
    renamed = {new + name.removeprefix(old) if name.startswith(old) else name: value
               for name, value in tensors.items()}
    assert renamed.keys() != tensors.keys()
    tensor_file.write(path, renamed)


main()
