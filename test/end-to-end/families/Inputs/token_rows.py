# SPDX-License-Identifier: Apache-2.0
"""Files of safetensors with tensors of i32, of two dimensions."""
import json
import struct


def write(path, tensors):
    """Writes lists of rows by their names."""
    header, data = {}, b""
    for name, rows in tensors.items():
        packed = b"".join(struct.pack(f"<{len(row)}i", *row) for row in rows)
        header[name] = {"dtype": "I32", "shape": [len(rows), len(rows[0])],
                        "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read(path):
    """The rows of `tokens`."""
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        tokens = json.loads(file.read(size))["tokens"]
        batch, length = tokens["shape"]
        file.seek(8 + size + tokens["data_offsets"][0])
        return [list(struct.unpack(f"<{length}i", file.read(4 * length)))
                for _ in range(batch)]
