# SPDX-License-Identifier: Apache-2.0
"""Step times that others have published beside those that `rota plan --machine` predicts for the same layouts. Words
choose the rows whose names contain one of them."""
import json
import sys

from common import ROTA, model_of_row, published, run, temporary

errors = []
print(f"{'row':<24} {'machine':<16} {'devices':>7} {'published':>10} {'predicted':>10} {'error':>7} {'MFU':>6} {'GB':>6}")
for row in published():
    if len(sys.argv) > 1 and not any(word in row["id"] for word in sys.argv[1:]):
        continue
    with temporary() as folder:
        plan = json.loads(run([ROTA, "plan", "--model", model_of_row(row, folder), "--machine", row["machine"],
                               *row["args"].split(), "--json"]))
    errors.append(plan["step_seconds"] / row["step_seconds"] - 1)
    print(f"{row['id']:<24} {row['machine']:<16} {plan['devices']:>7} {row['step_seconds']:>8.2f} s "
          f"{plan['step_seconds']:>8.2f} s {errors[-1]:>+7.1%} {plan['mfu']:>6.1%} {plan['bytes'] / 1e9:>6.1f}", flush=True)
print(f"average error {sum(map(abs, errors)) / len(errors):.2%}, largest {max(map(abs, errors)):.2%}")
