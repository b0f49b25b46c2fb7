# SPDX-License-Identifier: Apache-2.0
# Prints the mlir examples of a generated reference, separated for
# --split-input-file: the documentation's examples are tests.
import re
import sys

blocks = [block for path in sys.argv[1:]
          for block in re.findall(r"```mlir\n(.*?)```", open(path).read(), re.S)]
if not blocks:
    sys.exit("no examples in " + " ".join(sys.argv[1:]))
print("\n// -----\n".join(blocks))
