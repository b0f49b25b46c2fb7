# SPDX-License-Identifier: Apache-2.0
"""Runs a command whose first, second, third ... thread the system refuses, until
it starts no more threads.

    refused.py LIBRARY FOLDER [--most N] COMMAND ARGUMENTS...

LIBRARY: RefuseThread. Prints, once each, the errors of the runs with the exit
codes. A command that succeeds prints what it prints with all threads. Another end,
or none within a minute, is an error.
"""
import os
import subprocess
import sys

SYSTEM = "Resource temporarily unavailable"


def run(command, **variables):
    return subprocess.run(command, env={**os.environ, **variables}, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60)


def told(outcome):
    """The line that names the refused thread."""
    lines = [line for line in outcome.stderr.split("\n") if SYSTEM in line]
    assert lines, outcome.stderr
    return lines[-1]


def main():
    library, folder, *command = sys.argv[1:]
    most = 1000
    if command[0] == "--most":
        most, command = int(command[1]), command[2:]
    os.makedirs(folder, exist_ok=True)
    log = os.path.join(folder, "refused")
    expected = run(command)
    assert expected.returncode == 0, expected.stderr
    seen = set()
    for number in range(1, most + 1):
        if os.path.exists(log):
            os.remove(log)
        outcome = run(command, LD_PRELOAD=library, REFUSE_THREAD=str(number),
                      REFUSE_LOG=log)
        if not os.path.exists(log):
            break
        assert outcome.returncode in (0, 1), (number, outcome)
        if outcome.returncode == 0:
            assert outcome.stdout == expected.stdout, (number, outcome.stdout)
        line = f"exit code {outcome.returncode}: {told(outcome)}"
        if line not in seen:
            print(line)
        seen.add(line)
    print(f"{number - 1 if number < most else 'at least ' + str(most)} threads")


if __name__ == "__main__":
    main()
