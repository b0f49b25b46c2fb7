# SPDX-License-Identifier: Apache-2.0
"""Compares `rota generate` of golden models with the tokens of transformers.

    check_greedy.py GOLDEN_FOLDER NAME|all [OPTIONS...]
"""
import json
import os
import pathlib
import subprocess
import sys


def generate(folder, prompt, count, *options):
    output = subprocess.run(
        ["rota", "generate", folder, "--prompt-tokens",
         ",".join(map(str, prompt)), "--tokens", str(count), "--ignore-eos",
         *options],
        check=True, stdout=subprocess.PIPE, text=True).stdout
    return [int(token) for token in output.strip().split(",")]


def main():
    golden, name, *options = sys.argv[1:]
    names = [name] if name != "all" else sorted(
        path.parent.name for path in pathlib.Path(golden).glob("*/greedy.json"))
    for name in names:
        folder = os.path.join(golden, name)
        with open(os.path.join(folder, "greedy.json")) as file:
            expected = json.load(file)
        tokens = generate(folder, expected["prompt"], len(expected["tokens"]),
                          *options)
        assert tokens == expected["tokens"], (name, tokens, expected["tokens"])
    print(f"{len(names)} models have the same tokens")


if __name__ == "__main__":
    main()
