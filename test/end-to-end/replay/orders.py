# SPDX-License-Identifier: Apache-2.0
"""Random timelines, as rows of a schedule's file: again and again, a random
rank does a random action that is ready."""
from dataclasses import dataclass


@dataclass
class Shape:
    stages: int
    repeats: int
    microbatches: int
    placement: str = "loop"

    def rank_of(self, chunk):
        turn, place = divmod(chunk, self.stages)
        is_back = self.placement == "v" and turn % 2 == 1
        return self.stages - 1 - place if is_back else place


def random_rows(shape, source, is_split=False, is_ascending=True):
    """Rows of F and B, or of F, I and W. With `is_ascending` gradients are added
    in the order of microbatches: each chunk's B or W, and chunk 0's B or I, which
    add to the embedding."""
    last = shape.stages * shape.repeats - 1
    back = "I" if is_split else "B"
    done, rows = set(), [[] for _ in range(shape.stages)]

    def needs(kind, chunk, microbatch):
        if kind == "F":
            return {("F", chunk - 1, microbatch)} if chunk else set()
        if kind == "W":
            return {("I", chunk, microbatch)}
        needed = {("F", chunk, microbatch)}
        if chunk < last:
            needed.add((back, chunk + 1, microbatch))
        return needed

    def is_ready(kind, chunk, microbatch):
        adds = kind in "BW" or (kind == "I" and chunk == 0)
        is_turn = not (is_ascending and adds and microbatch) or (
            kind, chunk, microbatch - 1) in done
        return is_turn and needs(kind, chunk, microbatch) <= done

    todo = [(kind, chunk, microbatch)
            for kind in ("FIW" if is_split else "FB")
            for chunk in range(last + 1)
            for microbatch in range(shape.microbatches)]
    while todo:
        ready = [action for action in todo if is_ready(*action)]
        kind = source.choice(sorted({action[0] for action in ready}))
        action = source.choice([a for a in ready if a[0] == kind])
        todo.remove(action)
        done.add(action)
        _, chunk, microbatch = action
        rows[shape.rank_of(chunk)].append(f"{chunk}{kind}{microbatch}")
    return rows


def write_rows(path, rows):
    with open(path, "w") as file:
        for row in rows:
            file.write(",".join(row) + "\n")
    return path
