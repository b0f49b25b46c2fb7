# SPDX-License-Identifier: Apache-2.0
# expect.py CODE TEXT COMMAND...: the command exits with CODE and one line of its
# errors has TEXT; no line names the op or the folder that a flag is not about.
import subprocess
import sys

code, text, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
run = subprocess.run(command, capture_output=True, text=True)
errors = [line for line in run.stderr.splitlines() if "error: " in line]
if run.returncode != code or not any(text in line for line in errors):
    sys.exit(f"expected exit code {code} and an error with: {text}\n"
             f"got {run.returncode}: {run.stderr}")
for line in errors:
    if line.startswith("error: '") and " op " in line.split(": ")[1]:
        sys.exit("expected no name of an op: " + line)
