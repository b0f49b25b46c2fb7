# Usage: over-nccl.py PREFIX rota (probe | train) ARGUMENT...
#
# Runs the command with ranks as threads that share the GPU, and over the
# emulated NCCL. Their files have the same bytes.
import subprocess
import sys

prefix, *command = sys.argv[1:]
output = "--save" if command[1] == "train" else "-o"
contents = []
for ranks in ["threads", "nccl"]:
    path = f"{prefix}.{ranks}"
    subprocess.run(command + ["--ranks", ranks, output, path], check=True)
    with open(path, "rb") as file:
        contents.append(file.read())
assert contents[0] == contents[1], "other bits over NCCL"
