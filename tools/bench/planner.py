# SPDX-License-Identifier: Apache-2.0
"""Step times that others have published beside those that `rota plan --machine` predicts for the same layouts: rows to
which the constants of machines are fitted, then rows that no constant has seen. Words choose the rows whose names
contain one of them."""
import json
import sys

from common import ROTA, model_of_row, published, run, temporary


def print_rows(rows):
    """Predicts the rows, and prints their errors."""
    errors = []
    for row in rows:
        with temporary() as folder:
            plan = json.loads(run([ROTA, "plan", "--model", model_of_row(row, folder), "--machine", row["machine"],
                                   *row["args"].split(), "--json"]))
        errors.append(plan["step_seconds"] / row["step_seconds"] - 1)
        print(f"{row['id']:<24} {row['machine']:<16} {plan['devices']:>7} {row['step_seconds']:>8.2f} s "
              f"{plan['step_seconds']:>8.2f} s {errors[-1]:>+7.1%} {plan['mfu']:>6.1%} {plan['bytes'] / 1e9:>6.1f}", flush=True)
    if errors:
        print(f"average error {sum(map(abs, errors)) / len(errors):.2%}, largest {max(map(abs, errors)):.2%}\n")


print(f"{'row':<24} {'machine':<16} {'devices':>7} {'published':>10} {'predicted':>10} {'error':>7} {'MFU':>6} {'GB':>6}")
ROWS = [row for row in published() if len(sys.argv) == 1 or any(word in row["id"] for word in sys.argv[1:])]
print_rows([row for row in ROWS if not row.get("held_out")])
print_rows([row for row in ROWS if row.get("held_out")])
