# SPDX-License-Identifier: Apache-2.0
"""The merged model says the answer that belongs to each question, and ends there.

    check_answers.py FOLDER
"""
import json
import subprocess
import sys

from make_files import ANSWERS

for question, answer in ANSWERS.items():
    prompt = f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    line = subprocess.run(
        ["rota", "generate", sys.argv[1] + "/merged", "--prompt", prompt, "--tokens",
         "24", "--json"], check=True, stdout=subprocess.PIPE, text=True).stdout
    text = json.loads(line)["text"]
    assert text == prompt + answer + "<|im_end|>", text
