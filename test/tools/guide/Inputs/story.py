# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of a page of tools/guide as one shell script.

story.py PAGE: in the current folder, which is empty but for what the page says
that it needs. The commands are the page's blocks of ```sh. In a page that trains,
numbers that make a run long are divided by those of SHORTENED. Each command is
printed before its output.
"""
import pathlib
import re
import subprocess
import sys

SHORTENED = {
    "steps": 100,
    "warmup-steps": 100,
    "eval-interval": 100,
    "checkpoint-interval": 100,
    "batch-size": 2,
    "sequence-length": 4,
}


def shorten(script):
    if "rota train" not in script:
        return script
    for name, divisor in SHORTENED.items():
        script = re.sub(
            rf'(--{name} |"{name}": )(\d+)',
            lambda found, by=divisor: found[1] + str(-(-int(found[2]) // by)),
            script)
    return script


page = pathlib.Path(sys.argv[1]).read_text()
blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.M | re.S)
if not blocks:
    sys.exit(f"{sys.argv[1]}: expected blocks of ```sh")
script = "set -euo pipefail\n" + shorten("".join(blocks))
sys.exit(subprocess.run(["bash", "-v", "-c", script], stderr=subprocess.STDOUT,
                        stdin=subprocess.DEVNULL).returncode)
