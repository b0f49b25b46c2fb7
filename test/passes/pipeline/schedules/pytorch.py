#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads schedules with PyTorch, and compares them with its own.

    pytorch.py WORK

`rota schedule` writes every schedule as CSV into WORK. PyTorch's parser reads
each file, and its checks of order, its insertion of sends and receives and its
simulation of these accept it. Where PyTorch has the schedule, its rows are the
same; whole backwards of dualpipev are I and W, and its pairs (OVERLAP_F_B) are
the actions in them, or with --pairs pairs of F and I, behind which W follows.
Prints a line for each; exits with 1 at the first that fails."""
import os
import subprocess
import sys
from types import SimpleNamespace

from torch.distributed.pipelining import schedules as pytorch

# Name, ranks, chunks, microbatches; those that the schedule demands win.
CASES = [("gpipe", 4, 2, 6), ("circular", 4, 2, 8), ("1f1b", 4, 1, 8),
         ("interleaved-1f1b", 4, 2, 8), ("looped-bfs", 4, 2, 6),
         ("eager-1f1b", 4, 1, 7), ("interleaved-overlap", 4, 3, 8),
         ("zb1p", 4, 1, 7), ("zb2p", 4, 1, 9), ("v-half", 4, 2, 9),
         ("v-min", 4, 2, 9)]
CASES += [("interleaved-zero-bubble", *shape)
          for shape in ((2, 2, 4), (4, 2, 8), (3, 3, 12), (4, 1, 16))]
CASES += [("zbv", *shape)
          for shape in ((2, 2, 3), (4, 2, 10), (3, 2, 3), (8, 2, 32))]
CASES += [("dualpipev", *shape)
          for shape in ((2, 2, 4), (4, 2, 10), (3, 2, 6), (8, 2, 32))]
PAIRED = [case for case in CASES
          if case[0] in ("dualpipev", "interleaved-overlap")]
V = {"zbv", "v-half", "v-min", "dualpipev"}


def rows_of_pytorch(name, ranks, chunks, microbatches, pairs):
    """The compute actions of PyTorch's own schedule; None where it has none."""
    classes = {"interleaved-zero-bubble": pytorch.ScheduleInterleavedZeroBubble,
               "zbv": pytorch.ScheduleZBVZeroBubble,
               "dualpipev": pytorch.ScheduleDualPipeV,
               "interleaved-1f1b": pytorch.ScheduleInterleaved1F1B}
    if name not in classes:
        return None
    numbers = SimpleNamespace(
        pp_group_size=ranks, n_local_stages=chunks, num_stages=ranks * chunks,
        _n_microbatches=microbatches,
        microbatches_per_round=microbatches // max(1, microbatches // ranks))
    rows = []
    for rank in range(ranks):
        row = []
        for action in classes[name]._calculate_single_rank_operations(
                numbers, rank):
            if action is not None and pairs and action.sub_actions:
                forward, backward = map(str, action.sub_actions)
                inputs, weights = backward.replace("B", "I"), backward.replace("B", "W")
                row += [f"({forward};{inputs})OVERLAP_F_B", weights]
            elif action is not None:
                for part in action.sub_actions or [action]:
                    row += texts_of(name, part)
        rows.append(row)
    return rows


def texts_of(name, action):
    text = str(action)
    whole = action.computation_type == pytorch.FULL_BACKWARD
    if name == "dualpipev" and whole:
        return [text.replace("B", "I"), text.replace("B", "W")]
    return [text]


def check(name, ranks, chunks, microbatches, path, pairs=False):
    numbers = ["--stages", ranks, "--microbatches", microbatches]
    numbers += ["--pairs"] if pairs else []
    if name not in V:
        numbers += ["--repeats", chunks]
    subprocess.run(["rota", "schedule", name, *map(str, numbers), "--format",
                    "csv", "-o", path], check=True)
    with open(path) as file:
        rows = {rank: [pytorch._Action.from_str(cell)
                       for cell in line.rstrip("\n").split(",")]
                for rank, line in enumerate(file)}
    stages = ranks * chunks
    owners = pytorch._validate_schedule(rows, ranks, stages, microbatches)
    compute = {rank: [action for action in row if action is not None]
               for rank, row in rows.items()}
    if not pairs:  # PyTorch's simulation does not know them
        # PyTorch takes the rows apart as it inserts.
        complete = pytorch._add_send_recv(
            {rank: list(row) for rank, row in compute.items()},
            lambda stage: owners[stage], stages)
        pytorch._simulate_comms_compute(complete, lambda stage: owners[stage],
                                        stages)
    own = rows_of_pytorch(name, ranks, chunks, microbatches, pairs)
    if own is None:
        return "read"
    for rank, expected in enumerate(own):
        row = [str(action) for action in compute[rank]]
        if row != expected:
            sys.exit(f"{name} of {ranks} ranks, {microbatches} microbatches, "
                     f"rank {rank}: expected PyTorch's row\n"
                     f"{','.join(expected)}, got\n{','.join(row)}")
    return "as in PyTorch"


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for case in CASES:
        file = os.path.join(sys.argv[1], "-".join(map(str, case)) + ".csv")
        print(*case, check(*case, file))
    for case in PAIRED:
        file = os.path.join(sys.argv[1], "-".join(map(str, case)) + "-pairs.csv")
        print(*case, "with pairs", check(*case, file, pairs=True))
