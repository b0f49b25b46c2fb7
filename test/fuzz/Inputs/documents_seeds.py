# SPDX-License-Identifier: Apache-2.0
"""Writes inputs of fuzz-documents to a folder: each kind of record, each form."""
import gzip
import json
import os
import struct
import sys

GZIP, ZSTD, FIELD = 1, 2, 4
FAMILIES = 7


def seed(name, form, data, template=b""):
    with open(os.path.join(sys.argv[1], name), "wb") as output:
        output.write(bytes([form]) + struct.pack("<H", len(template)) + template + data)


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def frame(text):
    """A frame of zstd with one block that is not compressed."""
    return (struct.pack("<IBB", 0xFD2FB528, 0x20, len(text)) +
            struct.pack("<I", 1 | len(text) << 3)[:3] + text)


texts = lines({"text": "a\u00e9"}, {"text": ""}, {"a": "b"})
pairs = lines({"prompt": "2+2=", "completion": "4"})
turns = [{"role": "user", "content": " a\n"},
         {"role": "assistant", "content": "<think>\nb\n</think>\n\nc", "thinking": "d"}]
chats = lines({"messages": [{"role": "system", "content": "s"}] + turns}, {"messages": turns + turns})
seed("texts", 0, texts)
seed("field", FIELD, texts)
seed("pairs", 0, pairs)
seed("gzip", GZIP, gzip.compress(texts, mtime=0) + gzip.compress(pairs, mtime=0))
seed("zstd", ZSTD, frame(texts) + frame(pairs))
for family in range(FAMILIES):
    seed(f"chats{family}", family << 3, chats)
seed("parts", 0, lines({"messages": [{"role": "user", "content": [
    {"type": "text", "text": "a"}, {"type": "image_url"}]}], "tools": []}))
seed("tools", 0, lines({"messages": turns, "tools": [{"type": "function"}]},
                       {"messages": [{"role": "assistant", "content": None,
                                      "tool_calls": [{"id": "a"}]}]}))
seed("template", 0, chats, b"{{'<|im_start|>' + message.role + '<|im_end|>'}}")
