# SPDX-License-Identifier: Apache-2.0
"""PyTorch's causal attention on a GPU: the peer of Rota's. Reads [[batch, sequence, heads, size], ...] as JSON from
its argument and prints [[forward, backward seconds, backend], ...], of cuDNN and flash attention the faster one in
forward and backward together."""
import json
import statistics
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}


def seconds(call):
    """The median of nine groups of calls by events."""
    for _ in range(3):
        call()
    samples = []
    for _ in range(9):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(4):
            call()
        end.record()
        end.synchronize()
        samples.append(begin.elapsed_time(end) * 1e-3 / 4)
    return statistics.median(samples)


def measure(shape, backend):
    batch, sequence, heads, size = shape
    q, k, v = (torch.randn(batch, heads, sequence, size, device="cuda", dtype=torch.bfloat16, requires_grad=True)
               for _ in range(3))
    with sdpa_kernel(backend):
        def attend():
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        output = attend()
        cotangent = torch.randn_like(output)
        return (seconds(attend),
                seconds(lambda: torch.autograd.grad(output, (q, k, v), cotangent, retain_graph=True)))


def ranked(shape):
    """(forward seconds, backward seconds, backend) of those that run, the fastest first."""
    found = []
    for name, backend in BACKENDS.items():
        try:
            found.append((*measure(shape, backend), name))
        except RuntimeError as error:
            print(f"{name}: {error}", file=sys.stderr)
    return sorted(found, key=lambda times: times[0] + times[1])


if __name__ == "__main__":
    print(json.dumps([next(iter(ranked(shape)), None) for shape in json.loads(sys.argv[1])]))
