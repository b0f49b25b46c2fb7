# SPDX-License-Identifier: Apache-2.0
"""Whether two outputs of `rota plan --json` have the same plan."""
import json
import sys

plans = [json.load(open(path)) for path in sys.argv[1:]]
for plan in plans:
    for name in ("model", "schedule"):  # a name, or the path of a file
        del plan[name]
different = [key for key in plans[0] if plans[0][key] != plans[1].get(key)]
sys.exit(f"different: {', '.join(different)}" if different else 0)
