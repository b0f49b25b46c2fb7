# SPDX-License-Identifier: Apache-2.0
"""Compares the bytes of tensors of two safetensors files.

  check_subset.py SOME ALL PATTERN...    SOME has the tensors of ALL without those
      that a pattern is a part of the name of, and the same bytes
  check_subset.py --same OLD NEW PATTERN...   tensors with a pattern in their name
      have the same bytes, all others do not"""
import sys

from tensor_file import read

arguments = sys.argv[1:]
same = arguments[0] == "--same"
if same:
    arguments.pop(0)
first, second, *patterns = arguments
first, second = read(first), read(second)
picked = {name for name in second if any(p in name for p in patterns)}
assert picked and picked != set(second), picked
if same:
    assert set(first) == set(second)
    equal = {name for name in second if first[name] == second[name]}
    assert equal == picked, equal ^ picked
else:
    assert set(first) == set(second) - picked, set(first) ^ (set(second) - picked)
    wrong = [name for name in first if first[name] != second[name]]
    assert not wrong, wrong
