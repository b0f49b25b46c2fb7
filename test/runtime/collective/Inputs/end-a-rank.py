# SPDX-License-Identifier: Apache-2.0
# Starts four ranks that wait for rank 1, sends that rank a signal, and prints
# what the run says when it has ended, as it must, with an error.
#   end-a-rank.py KILL|STOP LAUNCHER... mpi-ranks
import os
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE = 60  # seconds: a run that hangs must not hang the tests

number = signal.Signals["SIG" + sys.argv[1]]
with tempfile.TemporaryDirectory() as folder:
    run = subprocess.Popen(
        [*sys.argv[2:], "die", folder],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        files = [os.path.join(folder, str(rank)) for rank in range(4)]
        end = time.monotonic() + PATIENCE
        while not all(map(os.path.exists, files)):
            if time.monotonic() > end or run.poll() is not None:
                sys.exit("expected four ranks to start")
            time.sleep(0.05)
        time.sleep(1)  # until all have told where they are
        with open(files[1]) as file:
            os.kill(int(file.read()), number)
        text, _ = run.communicate(timeout=PATIENCE)
    finally:
        run.kill()
print(text)
if run.returncode == 0:
    sys.exit("expected an error, got exit code 0")
