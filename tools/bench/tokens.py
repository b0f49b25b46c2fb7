#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rota tokenize against the Python packages tokenizers and sentencepiece.

    pip install tokenizers sentencepiece
    tools/bench/tokens.py TOKENIZER... [--text FILE] [--threads N]

Each TOKENIZER is a folder with tokenizer.json or tokenizer.model. Without --text
it makes 10 MB of code, several scripts, emoji, broken UTF-8 and long runs of
spaces. For each it prints whether the tokens of the whole text are equal, whether
rota detokenize gives the decoded text, and, in one run on this machine, MB/s of
both on N threads with their ratio. tokenizers gets the text in documents of 64 KiB
(encode_batch_fast, which computes no offsets), since it has one thread for each
document; its time does not contain the reading of files or the writing of tokens,
which rota's time does. Exit code 1 when tokens or texts differ."""
import argparse
import glob
import json
import os
import random
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
ROTA = os.path.join(ROOT, "build/bin/rota")
BLOCKS = [(0x41, 0x7a), (0xc0, 0x24f), (0x370, 0x3ff), (0x400, 0x4ff),
          (0x5d0, 0x5ea), (0x620, 0x6ff), (0x900, 0x97f), (0xe00, 0xe5b),
          (0x3040, 0x30ff), (0x4e00, 0x9fff), (0xac00, 0xd7a3), (0x300, 0x36f),
          (0x1f300, 0x1faff), (0x2000, 0x2bff), (0x20000, 0x2a6df), (0, 0xffff)]
EMOJI = ["👨‍👩‍👧‍👦", "🇩🇪", "👍🏽", "❤️", "🏳️‍🌈", "1️⃣"]


def word(source):
    block = source.choice(BLOCKS)
    return "".join(chr(c) for c in (source.randint(*block) for _ in
                                    range(source.randint(1, 9)))
                   if not 0xd800 <= c <= 0xdfff)


def piece(source, code):
    kind = source.random()
    if kind < .05:
        text = source.choice(code)
        begin = source.randrange(len(text))
        return text[begin:begin + 4000]
    if kind < .1:
        return bytes(source.choice([source.randrange(256), 0xe2, 0xf0, 0xed,
                                    0xa0]) for _ in range(30))
    if kind < .2:
        text = " " * source.randint(1, 300) + word(source) + "\n"
    elif kind < .3:
        text = "".join(source.choices(EMOJI, k=8)) + "\n" * source.randint(1, 9)
    elif kind < .35:
        text = source.choice("aA=-_.的 ") * source.randint(1, 400)
    else:
        text = " ".join(word(source) for _ in range(15)) + "\n"
    return text.encode()


def mixed_text(size):
    source = random.Random(7)
    code = []
    for path in sorted(glob.glob(os.path.join(ROOT, "runtime/**/*.cpp"),
                                 recursive=True)):
        with open(path, "rb") as file:
            code.append(file.read())
    parts, total = [], 0
    while total < size:
        parts.append(piece(source, code))
        total += len(parts[-1])
    return b"".join(parts)


def documents_of(text):
    return [text[at:at + 65536] for at in range(0, len(text), 65536)]


def package(folder):
    """Functions: the tokens of a text, the text of tokens, seconds of a batch."""
    path = os.path.join(folder, "tokenizer.json")
    if os.path.exists(path):
        import tokenizers
        tokenizer = tokenizers.Tokenizer.from_file(path)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return (lambda text: tokenizer.encode(
                    text, add_special_tokens=False).ids,
                lambda ids: tokenizer.decode(ids, skip_special_tokens=False),
                lambda texts, threads: tokenizer.encode_batch_fast(
                    texts, add_special_tokens=False))
    import sentencepiece
    processor = sentencepiece.SentencePieceProcessor(
        os.path.join(folder, "tokenizer.model"))
    return (processor.encode, processor.decode,
            lambda texts, threads: processor.encode(texts, num_threads=threads))


def read_tokens(path):
    import array
    with open(path, "rb") as file:
        content = file.read()
    end = 10 + int.from_bytes(content[8:10], "little")
    kind = "H" if b"<u2" in content[:end] else "I"
    return array.array(kind, content[end:]).tolist()


def compare(folder, path, text, threads, workplace):
    encode, decode, batch = package(folder)
    output = os.path.join(workplace, "tokens.npy")
    command = [ROTA, "tokenize", path, "--tokenizer", folder, "--end-token", "none", "-o", output,
               "--special-tokens", "none", "--threads", str(threads), "--json"]
    rota = min(json.loads(subprocess.run(command, check=True,
                                         capture_output=True).stdout)["seconds"]
               for _ in range(3))
    documents = documents_of(text)
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        batch(documents, threads)
        seconds.append(time.perf_counter() - begin)
    tokens = encode(text)
    same = read_tokens(output) == tokens
    decoded = subprocess.run([ROTA, "detokenize", output, "--tokenizer", folder],
                             check=True, capture_output=True).stdout
    back = decoded.decode() == decode(tokens)
    size = os.path.getsize(path) / 1e6
    print(f"{os.path.basename(os.path.normpath(folder)):20} "
          f"{len(tokens):>10} tokens {'equal' if same else 'DIFFER':>7} "
          f"text {'equal' if back else 'DIFFERS':>7}  rota {size / rota:7.2f} "
          f"MB/s  package {size / min(seconds):7.2f} MB/s  ratio "
          f"{min(seconds) / rota:5.2f}", flush=True)
    return same and back


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tokenizers", nargs="+")
    parser.add_argument("--text")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--bytes", type=int, default=10_000_000)
    options = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = str(options.threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    with tempfile.TemporaryDirectory() as workplace:
        path = options.text
        if not path:
            path = os.path.join(workplace, "mixed.txt")
            with open(path, "wb") as file:
                file.write(mixed_text(options.bytes))
        with open(path, "rb") as file:
            text = file.read().decode("utf-8", errors="replace")
        results = [compare(folder, path, text, options.threads, workplace)
                   for folder in options.tokenizers]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
