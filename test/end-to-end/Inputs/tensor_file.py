# SPDX-License-Identifier: Apache-2.0
"""Files of safetensors. A tensor is its type, its shape and its bytes."""
import json
import struct

CODES = {"F32": "f", "F64": "d", "I32": "i"}


def tensor(kind, shape, values):
    """A tensor of numbers."""
    return kind, shape, struct.pack(f"<{len(values)}{CODES[kind]}", *values)


def numbers(tensor):
    """The numbers of a tensor."""
    kind, _, data = tensor
    return struct.unpack(f"<{len(data) // struct.calcsize(CODES[kind])}{CODES[kind]}",
                         data)


def write(path, tensors):
    """Writes tensors by their names."""
    header, offset = {}, 0
    for name, (kind, shape, data) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape,
                        "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            file.write(data)


def read(path):
    """The tensors of a file by their names."""
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"],
                   data[slice(*entry["data_offsets"])])
            for name, entry in header.items()}
