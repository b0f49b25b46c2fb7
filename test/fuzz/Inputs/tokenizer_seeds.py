# SPDX-License-Identifier: Apache-2.0
"""Writes seeds for fuzz-tokenizer into a folder: the tokenizers of the tests,
cut to a few tokens, and small ones with each step of tokenizer.json."""
import json
import os
import struct
import sys

folder, inputs = sys.argv[1:]
TEXT = "the mod\u00e9l, <s> don't 12 \u6771\u4eac  \U0001f44d\n".encode()
count = 0


def write(kind, tokenizer):
    global count
    with open(os.path.join(folder, f"seed{count:02}"), "wb") as file:
        file.write(bytes([kind]) + struct.pack("<H", len(tokenizer)) +
                   tokenizer + TEXT)
    count += 1


def hub(**parts):
    model = {"type": "BPE", "vocab": {"<unk>": 0, "t": 1, "h": 2, "th": 3,
                                      "<0x0A>": 4, "\u2581": 5},
             "merges": ["t h"], "unk_token": "<unk>", "byte_fallback": True}
    token = {"id": 6, "content": "<s>", "single_word": False, "lstrip": True,
             "rstrip": True, "normalized": False, "special": True}
    file = {"version": "1.0", "added_tokens": [token], "normalizer": None,
            "pre_tokenizer": None, "post_processor": None, "decoder": None,
            "model": model} | parts
    write(0, json.dumps(file).encode())


for case in sorted(os.listdir(inputs)):
    path = os.path.join(inputs, case, "tokenizer")
    if os.path.exists(path + ".json"):
        with open(path + ".json") as source:
            tokenizer = json.load(source)
        model = tokenizer["model"]
        if model["type"] == "Unigram":
            model["vocab"] = model["vocab"][:30] + model["vocab"][-30:]
        elif "merges" in model:
            model["merges"] = model["merges"][:20]
            kept = {part for merge in model["merges"]
                    for part in [*merge, "".join(merge)]}
            model["vocab"] = {text: token for text, token
                              in model["vocab"].items()
                              if token < 30 or text in kept}
        write(0, json.dumps(tokenizer).encode())
    else:
        with open(path + ".model", "rb") as source:
            write(1, source.read())
for normalizer in [
        {"type": "Strip", "strip_left": True, "strip_right": True},
        {"type": "Replace", "pattern": {"Regex": "[a-e]+|\\bx{,3}(?m:.)"},
         "content": "\u00e9"},
        {"type": "Prepend", "prepend": "\u2581"}, {"type": "ByteLevel"}]:
    hub(normalizer=normalizer)
for split in [
        {"type": "Split", "pattern": {"String": " "}, "invert": True,
         "behavior": "MergedWithNext"},
        {"type": "Split", "invert": False, "behavior": "Contiguous",
         "pattern": {"Regex": "(?i:'s)|[^\\r\\n\\p{L}]?\\p{L}+|\\s+(?!\\S)"}},
        {"type": "CharDelimiterSplit", "delimiter": "e"},
        {"type": "FixedLength", "length": 3}]:
    hub(pre_tokenizer=split)
for decoder in [
        {"type": "CTC", "pad_token": "t", "word_delimiter_token": "|",
         "cleanup": True},
        {"type": "BPEDecoder", "suffix": "</w>"},
        {"type": "Sequence", "decoders": [
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 1}]}]:
    hub(decoder=decoder)
hub(post_processor={"type": "TemplateProcessing", "single": [
    {"SpecialToken": {"id": "<s>", "type_id": 0}},
    {"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {
        "<s>": {"id": "<s>", "ids": [6], "tokens": ["<s>"]}}})
