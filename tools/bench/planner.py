# SPDX-License-Identifier: Apache-2.0
"""Step times that others have published beside those that `rota plan --machine` predicts for the same layouts. Words
choose the rows whose names contain one of them."""
import json
import os
import sys

from common import ROOT, ROTA, model_of, run, temporary

ROWS = json.load(open(os.path.join(ROOT, "tools", "bench", "published.json")))["rows"]


def model_of_row(row, folder):
    """The configuration of a row's own, or one of the repository with another number of layers."""
    if isinstance(row["model"], str):
        return model_of(row["model"], folder, **({"num_hidden_layers": row["layers"]} if "layers" in row else {}))
    path = os.path.join(folder, "config.json")
    json.dump(row["model"], open(path, "w"))
    return path


errors = []
print(f"{'row':<24} {'machine':<16} {'devices':>7} {'published':>10} {'predicted':>10} {'error':>7} {'MFU':>6} {'GB':>6}")
for row in ROWS:
    if len(sys.argv) > 1 and not any(word in row["id"] for word in sys.argv[1:]):
        continue
    with temporary() as folder:
        plan = json.loads(run([ROTA, "plan", "--model", model_of_row(row, folder), "--machine", row["machine"],
                               *row["args"].split(), "--json"]))
    errors.append(plan["step_seconds"] / row["step_seconds"] - 1)
    print(f"{row['id']:<24} {row['machine']:<16} {plan['devices']:>7} {row['step_seconds']:>8.2f} s "
          f"{plan['step_seconds']:>8.2f} s {errors[-1]:>+7.1%} {plan['mfu']:>6.1%} {plan['bytes'] / 1e9:>6.1f}", flush=True)
print(f"average error {sum(map(abs, errors)) / len(errors):.2%}, largest {max(map(abs, errors)):.2%}")
