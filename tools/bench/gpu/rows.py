# SPDX-License-Identifier: Apache-2.0
"""The single kernels and products that the GPU benchmark measures: sizes, code, and work."""


def tensor(*shape):
    """tensor(2, 3, "f32") as MLIR writes it."""
    return "tensor<" + "x".join(map(str, shape)) + ">"


def function(operands, body, results):
    """A function @f of the operands' types; its body names them %0, %1, ... and its results %r."""
    names = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(operands))
    count = f":{len(results)}" if len(results) > 1 else ""
    values = ", ".join(f"%r#{i}" if count else "%r" for i in range(len(results)))
    kinds = ", ".join(results)
    return (f"func.func @f({names}) -> ({kinds}) {{\n  %r{count} = {body}\n"
            f"  return {values} : {kinds}\n}}\n")


def operation(name, operands, attributes, results):
    """A rota op with a functional type as that function."""
    uses = ", ".join(f"%a{i}" for i in range(len(operands)))
    into = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return function(operands, f"rota.{name} {uses}{attributes} : ({', '.join(operands)}) -> {into}", results)


def attention(batch, sequence, heads, size):
    """The code of forward and derivative, and the floating-point operations of the causal half of each: 2 and 5
    products of queries with keys or values, 2 x size operations for each pair."""
    q = tensor(batch, sequence, heads, size, "bf16")
    line = tensor(batch, heads, sequence, "f32")
    scale = f" scale = {size ** -0.5}"
    product = 2.0 * size * batch * heads * sequence * (sequence + 1) / 2
    return ((operation("attention", [q, q, q], scale, [q, line]), 2 * product),
            (operation("attention_grad", [q, q, q, q, q, line], scale, [q, q, q]), 5 * product))


def row_kernels(rows, width, hidden, vocabulary):
    """(name, code, function, bytes that are read or written at least once) of the kernels between products."""
    x, g = tensor(rows, width, "bf16"), tensor(width, "bf16")
    wide = tensor(rows, hidden, "bf16")
    logits, targets = tensor(1, rows, vocabulary, "bf16"), tensor(1, rows, "i32")
    line, scalar = tensor(1, rows, "f32"), "tensor<f32>"
    epsilon = " epsilon = 1.0e-05"
    parameter = tensor(hidden, width, "f32")
    narrow = tensor(hidden, width, "bf16")
    update = (f"rota.param @w : {parameter} axes [\"mlp\", \"embed\"] init #rota.constant<value = 1.0>\n"
              f"func.func @read() -> {narrow} {{\n  %w = rota.read @w : {narrow}\n  return %w : {narrow}\n}}\n")
    size = 2 * rows * width
    return [
        ("RMS norm", function([x, g], f"rota.rms_norm %a0, %a1{epsilon} : {x}, {g}", [x]), "f", 2 * size),
        ("its derivative", operation("rms_norm_grad", [x, x, g], epsilon, [x, tensor(width, "f32")]), "f", 3 * size),
        ("gated activation", function([wide, wide], f"rota.activation silu %a0, %a1 : {wide}", [wide]), "f", 6 * rows * hidden),
        ("its derivative", function([wide, wide, wide], f"rota.activation_grad silu %a0, %a1, %a2 : ({wide}, {wide}, {wide}) -> ({wide}, {wide})", [wide, wide]),
         "f", 10 * rows * hidden),
        ("cross-entropy", operation("cross_entropy", [logits, targets], "", [scalar, scalar, line]), "f",
         2 * rows * vocabulary),
        ("its derivative", operation("cross_entropy_grad", [scalar, logits, targets, line], "", [logits]), "f",
         4 * rows * vocabulary),
        # Reads weight, gradient and two moments, writes these (the gradient as zeros) and the bf16 weight.
        ("AdamW", update, "update_0", 34 * hidden * width),
    ]


def products(rows, width, hidden, vocabulary):
    """(name, m, n, k, transposed a, transposed b, accumulated) of a model's products."""
    listed = []
    for name, n, k in [("projection", width, width), ("gate, up", hidden, width), ("down", width, hidden),
                       ("vocabulary", vocabulary, width)]:
        listed += [(f"{name}, forward", rows, n, k, 0, 1, 0), (f"{name}, input gradient", rows, k, n, 0, 0, 0),
                   (f"{name}, weight gradient", n, k, rows, 1, 0, 1)]
    return listed
