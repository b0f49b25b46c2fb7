#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a trace of two chunks as a trainer would, of known times.

    write_trace.py OUTPUT KIND=MILLISECONDS ...

The first step is slow. In the others an action takes its kind's time, but one of
each kind, and 0.5 ms pass between two steps. With LATE=MILLISECONDS the second
chunk is so much later, and the first one does not wait for it between steps."""
import json
import sys

times = dict(argument.split("=") for argument in sys.argv[2:])
late = 1e3 * float(times.pop("LATE", 0))
events, now = [], 0.0
for run in range(4):
    for kind, milliseconds in times.items():
        for chunk in (0, 1):
            for microbatch in range(3):
                factor = 100 if run == 0 else 7 if microbatch == run - 1 else 1
                length = 1e3 * factor * float(milliseconds)
                events.append({"name": f"{chunk}{kind}{microbatch}", "ph": "X",
                               "cat": "training", "pid": 0, "tid": chunk,
                               "ts": now + chunk * late, "dur": length, "args": {"run": run}})
                now += length
    now += 500
with open(sys.argv[1], "w") as file:
    json.dump({"traceEvents": events}, file)
