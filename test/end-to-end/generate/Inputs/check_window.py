# SPDX-License-Identifier: Apache-2.0
"""A text that is longer than the window: each token is that after its last
tokens alone.

    check_window.py GOLDEN_FOLDER
"""
import sys

from check_greedy import generate

WINDOW, PROMPT, COUNT = 12, [3, 1, 4, 1, 5, 9, 2, 6], 16
DRAWS = ["--sequence-length", str(WINDOW), "--temperature", "0"]


def main():
    folder = sys.argv[1]
    text = PROMPT + generate(folder, PROMPT, COUNT, *DRAWS)
    for end in (WINDOW - 1, WINDOW, WINDOW + 1, len(text) - 1):
        window = text[max(0, end - WINDOW):end]
        assert generate(folder, window, 1, *DRAWS) == [text[end]], end


main()
