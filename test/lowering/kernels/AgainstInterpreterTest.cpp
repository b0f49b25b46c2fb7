// SPDX-License-Identifier: Apache-2.0
//
// Every op that has a kernel of its own, and every composite op fused into one,
// against the interpreter: odd shapes, f32 and bf16, any split of the rows.
#include "test/interpreter/GradientCheck.h"
#include "test/lowering/kernels/KernelHarness.h"
#include "test/passes/equivalence/CompositeOps.h"
#include "test/passes/equivalence/Passes.h"
#include "test/passes/equivalence/RandomFunction.h"

#include <gtest/gtest.h>

using namespace rota::interpreter;
using rota::test::KernelHarness;

namespace {

/// A function `f`; `$A` to `$H` stand for sizes, `$T` for the element type and
/// `$W` for that of what is never bf16. Integer arguments are from -1 or 0 to
/// `$C` - 1.
struct DedicatedOp {
  const char *name, *text;
  std::vector<std::vector<int64_t>> sizes;
  int64_t lowest = 0;
};

const DedicatedOp dedicatedOps[] = {
    // batch, sequence, D, heads, key heads
    {"attention_and_derivative",
     R"(
      func.func @f(%q: tensor<$Ax$Bx$Dx$Cx$T>, %k: tensor<$Ax$Bx$Ex$Cx$T>, %v: tensor<$Ax$Bx$Ex$Cx$T>, %do: tensor<$Ax$Bx$Dx$Cx$T>) -> (tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Dx$Bx$W>, tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>) {
        %o, %lse = rota.attention %q, %k, %v scale = 0.6 : (tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>) -> (tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Dx$Bx$W>)
        %dq, %dk, %dv = rota.attention_grad %do, %q, %k, %v, %o, %lse scale = 0.6 : (tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Dx$Bx$W>) -> (tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>)
        return %o, %lse, %dq, %dk, %dv : tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Dx$Bx$W>, tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>
      })",
     {{1, 1, 2, 1, 1},
      {2, 5, 4, 2, 2},
      {1, 37, 8, 6, 2},
      {2, 70, 16, 3, 1},
      {1, 131, 64, 2, 1}}},
    // batch, sequence, D, heads, key heads, D of values, window
    {"attention_with_window_sinks_and_cap",
     R"(
      func.func @f(%q: tensor<$Ax$Bx$Dx$Cx$T>, %k: tensor<$Ax$Bx$Ex$Cx$T>, %v: tensor<$Ax$Bx$Ex$Fx$T>, %do: tensor<$Ax$Bx$Dx$Fx$T>, %s: tensor<$Dx$W>) -> (tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>, tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Dx$W>) {
        %o, %lse = rota.attention %q, %k, %v sinks %s scale = 0.6 window = $G soft_cap = 1.5 : (tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Dx$W>) -> (tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>)
        %dq, %dk, %dv, %ds = rota.attention_grad %do, %q, %k, %v, %o, %lse sinks %s scale = 0.6 window = $G soft_cap = 1.5 : (tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>, tensor<$Dx$W>) -> (tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Dx$W>)
        return %o, %lse, %dq, %dk, %dv, %ds : tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>, tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Dx$W>
      })",
     {{1, 1, 2, 1, 1, 3, 1},
      {2, 37, 4, 2, 2, 4, 5},
      {1, 37, 8, 6, 2, 3, 1},
      {2, 70, 16, 3, 1, 17, 70},
      {1, 131, 64, 2, 1, 32, 40}}},
    // batch, sequence, D, heads, key heads, D of values, window
    {"attention_in_both_directions",
     R"(
      func.func @f(%q: tensor<$Ax$Bx$Dx$Cx$T>, %k: tensor<$Ax$Bx$Ex$Cx$T>, %v: tensor<$Ax$Bx$Ex$Fx$T>, %do: tensor<$Ax$Bx$Dx$Fx$T>, %s: tensor<$Dx$W>) -> (tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>, tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Dx$W>) {
        %o, %lse = rota.attention %q, %k, %v sinks %s scale = 0.6 window = $G bidirectional : (tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Dx$W>) -> (tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>)
        %dq, %dk, %dv, %ds = rota.attention_grad %do, %q, %k, %v, %o, %lse sinks %s scale = 0.6 window = $G bidirectional : (tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>, tensor<$Dx$W>) -> (tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Dx$W>)
        return %o, %lse, %dq, %dk, %dv, %ds : tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>, tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Dx$W>
      })",
     {{1, 1, 2, 1, 1, 3, 1},
      {2, 37, 4, 2, 2, 4, 5},
      {1, 37, 8, 6, 2, 3, 1},
      {2, 70, 16, 3, 1, 17, 70},
      {1, 131, 64, 2, 1, 32, 40}}},
    // batch, sequence, D, heads, key heads, D of values, window, blocks behind
    {"attention_to_blocks",
     R"(
      func.func @f(%q: tensor<$Ax$Bx$Dx$Cx$T>, %k: tensor<$Ax$Bx$Ex$Cx$T>, %v: tensor<$Ax$Bx$Ex$Fx$T>, %a: tensor<$Ax$Bx$Ex$Cx$T>, %b: tensor<$Ax$Bx$Ex$Fx$T>, %do: tensor<$Ax$Bx$Dx$Fx$T>, %s: tensor<$Dx$W>, %p: tensor<i32>) -> (tensor<$Ax$Bx$Dx$Fx$W>, tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>, tensor<$Ax$Bx$Dx$Cx$W>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>) {
        %o0, %l0 = rota.attention %q, %k, %v sinks %s scale = 0.6 window = $G soft_cap = 1.5 : (tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Dx$W>) -> (tensor<$Ax$Bx$Dx$Fx$W>, tensor<$Ax$Dx$Bx$W>)
        %o, %l = rota.attention %q, %a, %b previous %o0, %l0 position %p behind = $H scale = 0.6 window = $G soft_cap = 1.5 : (tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Ax$Bx$Dx$Fx$W>, tensor<$Ax$Dx$Bx$W>, tensor<i32>) -> (tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>)
        %dq, %dk, %dv = rota.attention_grad %do, %q, %a, %b, %o, %l position %p behind = $H scale = 0.6 window = $G soft_cap = 1.5 : (tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>, tensor<i32>) -> (tensor<$Ax$Bx$Dx$Cx$W>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>)
        return %o0, %o, %l, %dq, %dk, %dv : tensor<$Ax$Bx$Dx$Fx$W>, tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>, tensor<$Ax$Bx$Dx$Cx$W>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>
      })",
     {{1, 1, 8, 1, 1, 3, 2, 1},
      {2, 37, 8, 4, 2, 4, 50, 1},
      {1, 37, 8, 6, 2, 3, 20, 1},
      {2, 70, 16, 3, 1, 17, 1000, 2},
      {1, 131, 64, 2, 1, 32, 200, 1},
      {1, 131, 64, 2, 1, 32, 300, 2},
      {1, 40, 8, 2, 1, 8, 900, 20}}},
    // batch, sequence, D, heads, key heads, D of values, blocks behind, more:
    // one kernel for both
    {"attention_to_whole_blocks",
     R"(
      func.func @f(%q: tensor<$Ax$Bx$Dx$Cx$T>, %k: tensor<$Ax$Bx$Ex$Cx$T>, %v: tensor<$Ax$Bx$Ex$Fx$T>, %b: tensor<$Ax$Bx$Dx$Fx$W>, %m: tensor<$Ax$Dx$Bx$W>, %do: tensor<$Ax$Bx$Dx$Fx$T>, %p: tensor<i32>) -> (tensor<$Ax$Bx$Dx$Fx$W>, tensor<$Ax$Dx$Bx$W>, tensor<$Ax$Bx$Dx$Fx$W>, tensor<$Ax$Dx$Bx$W>, tensor<$Ax$Bx$Dx$Cx$W>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Ax$Bx$Dx$Cx$W>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>) {
        %o0, %l0 = rota.attention %q, %k, %v previous %b, %m position %p behind = $G scale = 0.6 : (tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Ax$Bx$Dx$Fx$W>, tensor<$Ax$Dx$Bx$W>, tensor<i32>) -> (tensor<$Ax$Bx$Dx$Fx$W>, tensor<$Ax$Dx$Bx$W>)
        %o1, %l1 = rota.attention %q, %k, %v previous %b, %m position %p behind = $H scale = 0.6 : (tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Ax$Bx$Dx$Fx$W>, tensor<$Ax$Dx$Bx$W>, tensor<i32>) -> (tensor<$Ax$Bx$Dx$Fx$W>, tensor<$Ax$Dx$Bx$W>)
        %q0, %k0, %v0 = rota.attention_grad %do, %q, %k, %v, %do, %l0 position %p behind = $G scale = 0.6 : (tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>, tensor<i32>) -> (tensor<$Ax$Bx$Dx$Cx$W>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>)
        %q1, %k1, %v1 = rota.attention_grad %do, %q, %k, %v, %do, %l1 position %p behind = $H scale = 0.6 : (tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>, tensor<i32>) -> (tensor<$Ax$Bx$Dx$Cx$W>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>)
        return %o0, %l0, %o1, %l1, %q0, %k0, %v0, %q1, %k1, %v1 : tensor<$Ax$Bx$Dx$Fx$W>, tensor<$Ax$Dx$Bx$W>, tensor<$Ax$Bx$Dx$Fx$W>, tensor<$Ax$Dx$Bx$W>, tensor<$Ax$Bx$Dx$Cx$W>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Ax$Bx$Dx$Cx$W>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>
      })",
     {{1, 1, 8, 1, 1, 3, 1, 8},
      {2, 37, 8, 4, 2, 4, 2, 9},
      {1, 131, 16, 3, 1, 17, 1, 16}}},
    // batch, sequence, D, heads, key heads, D of values; the first block sees
    // the second or not, then the other way round
    {"attention_to_half_blocks",
     R"(
      func.func @f(%q: tensor<$Ax$Bx$Dx$Cx$T>, %k: tensor<$Ax$Bx$Ex$Cx$T>, %v: tensor<$Ax$Bx$Ex$Fx$T>, %b: tensor<$Ax$Bx$Dx$Fx$W>, %m: tensor<$Ax$Dx$Bx$W>, %do: tensor<$Ax$Bx$Dx$Fx$T>, %x: tensor<i32>, %y: tensor<i32>) -> (tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>, tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>, tensor<$Ax$Bx$Dx$Cx$W>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Ax$Bx$Dx$Cx$W>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>) {
        %o0, %l0 = rota.attention %q, %k, %v previous %b, %m position %x key_position %y scale = 0.6 : (tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Ax$Bx$Dx$Fx$W>, tensor<$Ax$Dx$Bx$W>, tensor<i32>, tensor<i32>) -> (tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>)
        %o1, %l1 = rota.attention %q, %k, %v previous %b, %m position %y key_position %x scale = 0.6 : (tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Ax$Bx$Dx$Fx$W>, tensor<$Ax$Dx$Bx$W>, tensor<i32>, tensor<i32>) -> (tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>)
        %q0, %k0, %v0 = rota.attention_grad %do, %q, %k, %v, %do, %l0 position %x key_position %y scale = 0.6 : (tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>, tensor<i32>, tensor<i32>) -> (tensor<$Ax$Bx$Dx$Cx$W>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>)
        %q1, %k1, %v1 = rota.attention_grad %do, %q, %k, %v, %do, %l1 position %y key_position %x scale = 0.6 : (tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Bx$Dx$Cx$T>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>, tensor<i32>, tensor<i32>) -> (tensor<$Ax$Bx$Dx$Cx$W>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>)
        return %o0, %l0, %o1, %l1, %q0, %k0, %v0, %q1, %k1, %v1 : tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>, tensor<$Ax$Bx$Dx$Fx$T>, tensor<$Ax$Dx$Bx$W>, tensor<$Ax$Bx$Dx$Cx$W>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>, tensor<$Ax$Bx$Dx$Cx$W>, tensor<$Ax$Bx$Ex$Cx$T>, tensor<$Ax$Bx$Ex$Fx$T>
      })",
     {{1, 1, 8, 1, 1, 3}, {2, 37, 8, 4, 2, 4}, {1, 131, 16, 3, 1, 17}}},
    // batch, sequence, vocabulary
    {"cross_entropy",
     R"(
      func.func @f(%x: tensor<$Ax$Bx$Cx$T>, %t: tensor<$Ax$Bxi32>) -> (tensor<$W>, tensor<$W>, tensor<$Ax$Bx$W>) {
        %sum, %weight, %lse = rota.cross_entropy %x, %t : (tensor<$Ax$Bx$Cx$T>, tensor<$Ax$Bxi32>) -> (tensor<$W>, tensor<$W>, tensor<$Ax$Bx$W>)
        return %sum, %weight, %lse : tensor<$W>, tensor<$W>, tensor<$Ax$Bx$W>
      })",
     {{1, 1, 1}, {2, 3, 5}, {1, 7, 257}, {3, 50, 1000}},
     -1},
    {"cross_entropy_grad",
     R"(
      func.func @f(%d: tensor<$W>, %x: tensor<$Ax$Bx$Cx$T>, %t: tensor<$Ax$Bxi32>) -> tensor<$Ax$Bx$Cx$T> {
        %sum, %weight, %lse = rota.cross_entropy %x, %t : (tensor<$Ax$Bx$Cx$T>, tensor<$Ax$Bxi32>) -> (tensor<$W>, tensor<$W>, tensor<$Ax$Bx$W>)
        %dx = rota.cross_entropy_grad %d, %x, %t, %lse : (tensor<$W>, tensor<$Ax$Bx$Cx$T>, tensor<$Ax$Bxi32>, tensor<$Ax$Bx$W>) -> tensor<$Ax$Bx$Cx$T>
        return %dx : tensor<$Ax$Bx$Cx$T>
      })",
     {{1, 1, 2}, {2, 3, 5}, {1, 7, 257}, {3, 50, 1000}},
     -1},
    {"cross_entropy_grad_with_rows",
     R"(
      func.func @f(%d: tensor<$W>, %x: tensor<$Ax$Bx$Cx$T>, %t: tensor<$Ax$Bxi32>, %r: tensor<$Ax$Bx$W>) -> tensor<$Ax$Bx$Cx$T> {
        %sum, %weight, %lse = rota.cross_entropy %x, %t : (tensor<$Ax$Bx$Cx$T>, tensor<$Ax$Bxi32>) -> (tensor<$W>, tensor<$W>, tensor<$Ax$Bx$W>)
        %dx = rota.cross_entropy_grad %d, %x, %t, %lse rows %r : (tensor<$W>, tensor<$Ax$Bx$Cx$T>, tensor<$Ax$Bxi32>, tensor<$Ax$Bx$W>, tensor<$Ax$Bx$W>) -> tensor<$Ax$Bx$Cx$T>
        return %dx : tensor<$Ax$Bx$Cx$T>
      })",
     {{1, 1, 2}, {2, 3, 5}, {1, 7, 257}, {3, 50, 1000}},
     -1},
    // batch, sequence, vocabulary, embed
    {"embedding",
     R"(
      func.func @f(%t: tensor<$Ax$Bxi32>, %w: tensor<$Cx$Dx$T>) -> tensor<$Ax$Bx$Dx$T> {
        %x = rota.embedding %t, %w : (tensor<$Ax$Bxi32>, tensor<$Cx$Dx$T>) -> tensor<$Ax$Bx$Dx$T>
        return %x : tensor<$Ax$Bx$Dx$T>
      })",
     {{1, 1, 1, 1}, {2, 3, 5, 7}, {3, 40, 11, 33}}},
    {"embedding_grad",
     R"(
      func.func @f(%t: tensor<$Ax$Bxi32>, %dy: tensor<$Ax$Bx$Dx$T>) -> tensor<$Cx$Dx$W> {
        %dw = rota.embedding_grad %t, %dy : (tensor<$Ax$Bxi32>, tensor<$Ax$Bx$Dx$T>) -> tensor<$Cx$Dx$W>
        return %dw : tensor<$Cx$Dx$W>
      })",
     {{1, 1, 1, 1}, {2, 3, 5, 7}, {3, 40, 11, 33}}},
    // batch, sequence, vocabulary, embed, rows from the offset on
    {"embedding_of_a_part",
     R"(
      func.func @f(%t: tensor<$Ax$Bxi32>, %w: tensor<$Ex$Dx$T>, %o: tensor<i32>) -> tensor<$Ax$Bx$Dx$T> {
        %x = rota.embedding %t, %w offset %o : (tensor<$Ax$Bxi32>, tensor<$Ex$Dx$T>, tensor<i32>) -> tensor<$Ax$Bx$Dx$T>
        return %x : tensor<$Ax$Bx$Dx$T>
      })",
     {{1, 1, 1, 1, 1}, {2, 3, 5, 7, 2}, {3, 40, 11, 33, 4}}},
    {"embedding_grad_of_a_part",
     R"(
      func.func @f(%t: tensor<$Ax$Bxi32>, %dy: tensor<$Ax$Bx$Dx$T>, %o: tensor<i32>) -> tensor<$Ex$Dx$W> {
        %dw = rota.embedding_grad %t, %dy offset %o : (tensor<$Ax$Bxi32>, tensor<$Ax$Bx$Dx$T>, tensor<i32>) -> tensor<$Ex$Dx$W>
        return %dw : tensor<$Ex$Dx$W>
      })",
     {{1, 1, 1, 1, 1}, {2, 3, 5, 7, 2}, {3, 40, 11, 33, 4}}},
    // batch, sequence, vocabulary, columns from the offset on
    {"cross_entropy_shard",
     R"(
      func.func @f(%x: tensor<$Ax$Bx$Dx$T>, %t: tensor<$Ax$Bxi32>, %o: tensor<i32>) -> tensor<$Ax$Bx2x$W> {
        %parts = rota.cross_entropy_shard %x, %t offset %o : (tensor<$Ax$Bx$Dx$T>, tensor<$Ax$Bxi32>, tensor<i32>) -> tensor<$Ax$Bx2x$W>
        return %parts : tensor<$Ax$Bx2x$W>
      })",
     {{1, 1, 1, 1}, {2, 3, 5, 3}, {1, 7, 257, 100}, {3, 50, 1000, 257}},
     -1},
    {"cross_entropy_grad_of_a_part",
     R"(
      func.func @f(%d: tensor<$W>, %x: tensor<$Ax$Bx$Dx$T>, %t: tensor<$Ax$Bxi32>, %l: tensor<$Ax$Bx$W>, %o: tensor<i32>) -> tensor<$Ax$Bx$Dx$T> {
        %dx = rota.cross_entropy_grad %d, %x, %t, %l offset %o : (tensor<$W>, tensor<$Ax$Bx$Dx$T>, tensor<$Ax$Bxi32>, tensor<$Ax$Bx$W>, tensor<i32>) -> tensor<$Ax$Bx$Dx$T>
        return %dx : tensor<$Ax$Bx$Dx$T>
      })",
     {{1, 1, 2, 1}, {2, 3, 5, 3}, {1, 7, 257, 100}, {3, 50, 1000, 257}},
     -1},
    {"cross_entropy_grad_of_a_part_with_rows",
     R"(
      func.func @f(%d: tensor<$W>, %x: tensor<$Ax$Bx$Dx$T>, %t: tensor<$Ax$Bxi32>, %l: tensor<$Ax$Bx$W>, %o: tensor<i32>, %r: tensor<$Ax$Bx$W>) -> tensor<$Ax$Bx$Dx$T> {
        %dx = rota.cross_entropy_grad %d, %x, %t, %l offset %o rows %r : (tensor<$W>, tensor<$Ax$Bx$Dx$T>, tensor<$Ax$Bxi32>, tensor<$Ax$Bx$W>, tensor<i32>, tensor<$Ax$Bx$W>) -> tensor<$Ax$Bx$Dx$T>
        return %dx : tensor<$Ax$Bx$Dx$T>
      })",
     {{1, 1, 2, 1}, {2, 3, 5, 3}, {1, 7, 257, 100}, {3, 50, 1000, 257}},
     -1},
    // batch, sequence, vocabulary, numbers of all parts
    {"cross_entropy_merge",
     R"(
      func.func @f(%p: tensor<$Ax$Bx$Dx$W>, %t: tensor<$Ax$Bxi32>) -> (tensor<$W>, tensor<$W>, tensor<$Ax$Bx$W>) {
        %sum, %weight, %lse = rota.cross_entropy_merge %p, %t : (tensor<$Ax$Bx$Dx$W>, tensor<$Ax$Bxi32>) -> (tensor<$W>, tensor<$W>, tensor<$Ax$Bx$W>)
        return %sum, %weight, %lse : tensor<$W>, tensor<$W>, tensor<$Ax$Bx$W>
      })",
     {{1, 1, 2, 2}, {2, 3, 5, 4}, {3, 50, 1000, 16}},
     -1},
    // batch, sequence, D / 2, heads, D
    {"rope",
     R"(
      func.func @f(%x: tensor<$Ax$Bx$Dx$Ex$T>, %t: tensor<$Bx$Cx2x$W>) -> (tensor<$Ax$Bx$Dx$Ex$T>, tensor<$Ax$Bx$Dx$Ex$T>) {
        %y = rota.rope %x, %t : tensor<$Ax$Bx$Dx$Ex$T>, tensor<$Bx$Cx2x$W>
        %z = rota.rope inverse %x, %t : tensor<$Ax$Bx$Dx$Ex$T>, tensor<$Bx$Cx2x$W>
        return %y, %z : tensor<$Ax$Bx$Dx$Ex$T>, tensor<$Ax$Bx$Dx$Ex$T>
      })",
     {{1, 1, 1, 1, 2}, {2, 5, 3, 3, 6}, {1, 37, 32, 2, 64}}},
    // rows, the size along the dimension, that of each part, elements behind
    {"split_and_concat",
     R"(
      func.func @f(%x: tensor<$Ax$Bx$Ex$T>, %y: tensor<$Ax$Cx$Ex$T>, %z: tensor<$Ax$Dx$Ex$T>) -> (tensor<$Ax$Cx$Ex$T>, tensor<$Ax$Dx$Ex$T>, tensor<$Ax$Bx$Ex$T>) {
        %a, %b = rota.split %x dim = 1 : (tensor<$Ax$Bx$Ex$T>) -> (tensor<$Ax$Cx$Ex$T>, tensor<$Ax$Dx$Ex$T>)
        %c = rota.concat %y, %z dim = 1 : (tensor<$Ax$Cx$Ex$T>, tensor<$Ax$Dx$Ex$T>) -> tensor<$Ax$Bx$Ex$T>
        return %a, %b, %c : tensor<$Ax$Cx$Ex$T>, tensor<$Ax$Dx$Ex$T>, tensor<$Ax$Bx$Ex$T>
      })",
     {{1, 2, 1, 1, 1}, {2, 5, 3, 2, 7}, {37, 3, 1, 2, 64}}},
    // batch, sequence, experts, choices, groups, top groups
    {"route_and_derivative",
     R"(
      func.func @f(%z: tensor<$Ax$Bx$Cx$W>, %b: tensor<$Cx$W>, %dw: tensor<$Ax$Bx$Dx$W>) -> (tensor<$Ax$Bx$Dx$W>, tensor<$Ax$Bx$Dxi32>, tensor<$Ax$Bx$Cx$W>, tensor<$Ax$Bx$Dx$W>, tensor<$Ax$Bx$Dxi32>, tensor<$Ax$Bx$Cx$W>, tensor<$Ax$Bx$Dx$W>, tensor<$Ax$Bx$Dxi32>, tensor<$Ax$Bx$Cx$W>) {
        %w0, %e0 = rota.route %z scaling = 1.5 : (tensor<$Ax$Bx$Cx$W>) -> (tensor<$Ax$Bx$Dx$W>, tensor<$Ax$Bx$Dxi32>)
        %d0 = rota.route_grad %dw, %z, %e0 scaling = 1.5 : (tensor<$Ax$Bx$Dx$W>, tensor<$Ax$Bx$Cx$W>, tensor<$Ax$Bx$Dxi32>) -> tensor<$Ax$Bx$Cx$W>
        %w1, %e1 = rota.route %z bias %b normalize groups = $E top_groups = $F scaling = 1.0 : (tensor<$Ax$Bx$Cx$W>, tensor<$Cx$W>) -> (tensor<$Ax$Bx$Dx$W>, tensor<$Ax$Bx$Dxi32>)
        %d1 = rota.route_grad %dw, %z, %e1 normalize scaling = 1.0 : (tensor<$Ax$Bx$Dx$W>, tensor<$Ax$Bx$Cx$W>, tensor<$Ax$Bx$Dxi32>) -> tensor<$Ax$Bx$Cx$W>
        %w2, %e2 = rota.route %z bias %b sigmoid normalize groups = $E top_groups = $F scaling = 2.5 : (tensor<$Ax$Bx$Cx$W>, tensor<$Cx$W>) -> (tensor<$Ax$Bx$Dx$W>, tensor<$Ax$Bx$Dxi32>)
        %d2 = rota.route_grad %dw, %z, %e2 sigmoid normalize scaling = 2.5 : (tensor<$Ax$Bx$Dx$W>, tensor<$Ax$Bx$Cx$W>, tensor<$Ax$Bx$Dxi32>) -> tensor<$Ax$Bx$Cx$W>
        return %w0, %e0, %d0, %w1, %e1, %d1, %w2, %e2, %d2 : tensor<$Ax$Bx$Dx$W>, tensor<$Ax$Bx$Dxi32>, tensor<$Ax$Bx$Cx$W>, tensor<$Ax$Bx$Dx$W>, tensor<$Ax$Bx$Dxi32>, tensor<$Ax$Bx$Cx$W>, tensor<$Ax$Bx$Dx$W>, tensor<$Ax$Bx$Dxi32>, tensor<$Ax$Bx$Cx$W>
      })",
     {{1, 1, 1, 1, 1, 1},
      {2, 5, 6, 2, 3, 2},
      {1, 9, 4, 4, 1, 1},
      {1, 37, 40, 8, 4, 3},
      {1, 3, 128, 6, 8, 4}}},
    // batch, sequence, experts, choices, width, rows, blocks
    {"rows_of_experts",
     R"(
      func.func @f(%e: tensor<$Ax$Bx$Dxi32>, %x: tensor<$Ax$Bx$Ex$T>, %w: tensor<$Ax$Bx$Dx$W>, %b: tensor<$Cx$Ex$W>) -> (tensor<$Ax$Bx$Dxi32>, tensor<$Ax$Cxi32>, tensor<$Ax$Fx$Ex$T>, tensor<$Ax$Fx$Ex$T>, tensor<$Ax$Fx$Ex$T>, tensor<$Ax$Bx$Ex$T>, tensor<$Ax$Bx$Ex$T>, tensor<$Ax$Bx$Dx$W>, tensor<$Cx$Ex$W>) {
        %p, %c = rota.expert_places %e rows = $F blocks = $G : tensor<$Ax$Bx$Dxi32> -> tensor<$Ax$Cxi32>
        %r = rota.dispatch %x, %p : (tensor<$Ax$Bx$Ex$T>, tensor<$Ax$Bx$Dxi32>) -> tensor<$Ax$Fx$Ex$T>
        %s = rota.dispatch %x, %p weights %w : (tensor<$Ax$Bx$Ex$T>, tensor<$Ax$Bx$Dxi32>, tensor<$Ax$Bx$Dx$W>) -> tensor<$Ax$Fx$Ex$T>
        %t = rota.grouped_bias %r, %b, %c blocks = $G : tensor<$Ax$Fx$Ex$T>, tensor<$Cx$Ex$W>, tensor<$Ax$Cxi32>
        %y = rota.combine %t, %p : (tensor<$Ax$Fx$Ex$T>, tensor<$Ax$Bx$Dxi32>) -> tensor<$Ax$Bx$Ex$T>
        %z = rota.combine %t, %p weights %w : (tensor<$Ax$Fx$Ex$T>, tensor<$Ax$Bx$Dxi32>, tensor<$Ax$Bx$Dx$W>) -> tensor<$Ax$Bx$Ex$T>
        %d = rota.choice_dot %x, %t, %p : (tensor<$Ax$Bx$Ex$T>, tensor<$Ax$Fx$Ex$T>, tensor<$Ax$Bx$Dxi32>) -> tensor<$Ax$Bx$Dx$W>
        %g = rota.grouped_bias_grad %t, %c blocks = $G : (tensor<$Ax$Fx$Ex$T>, tensor<$Ax$Cxi32>) -> tensor<$Cx$Ex$W>
        return %p, %c, %r, %s, %t, %y, %z, %d, %g : tensor<$Ax$Bx$Dxi32>, tensor<$Ax$Cxi32>, tensor<$Ax$Fx$Ex$T>, tensor<$Ax$Fx$Ex$T>, tensor<$Ax$Fx$Ex$T>, tensor<$Ax$Bx$Ex$T>, tensor<$Ax$Bx$Ex$T>, tensor<$Ax$Bx$Dx$W>, tensor<$Cx$Ex$W>
      })",
     {{1, 1, 1, 1, 1, 1, 1},
      {2, 5, 3, 2, 7, 10, 1},
      {1, 37, 4, 4, 33, 600, 4},
      {3, 8, 6, 2, 130, 96, 3},
      {1, 5, 50, 1, 16, 100, 10}}},
    // batch, sequence, experts, choices, width, rows, blocks, capacity, offset
    {"rows_of_experts_that_overflow",
     R"(
      func.func @f(%e: tensor<$Ax$Bx$Dxi32>, %x: tensor<$Ax$Bx$Ex$T>, %w: tensor<$Ax$Bx$Dx$W>, %o: tensor<i32>) -> (tensor<$Ax$Bx$Dxi32>, tensor<$Ax$Cxi32>, tensor<$Ax$Bx$Dxi32>, tensor<$Ax$Cxi32>, tensor<$Ax$Fx$Ex$T>, tensor<$Ax$Fx$Ex$T>, tensor<$Ax$Bx$Ex$T>, tensor<$Ax$Bx$Dx$W>) {
        %p, %c = rota.expert_places %e rows = $F blocks = $G : tensor<$Ax$Bx$Dxi32> -> tensor<$Ax$Cxi32>
        %q, %n = rota.expert_places %e rows = $F capacity = $H : tensor<$Ax$Bx$Dxi32> -> tensor<$Ax$Cxi32>
        %r = rota.dispatch %x, %q weights %w offset %o : (tensor<$Ax$Bx$Ex$T>, tensor<$Ax$Bx$Dxi32>, tensor<$Ax$Bx$Dx$W>, tensor<i32>) -> tensor<$Ax$Fx$Ex$T>
        %s = rota.dispatch %x, %p counts %c blocks = $G : (tensor<$Ax$Bx$Ex$T>, tensor<$Ax$Bx$Dxi32>, tensor<$Ax$Cxi32>) -> tensor<$Ax$Fx$Ex$T>
        %y = rota.combine %r, %q offset %o counts %n : (tensor<$Ax$Fx$Ex$T>, tensor<$Ax$Bx$Dxi32>, tensor<i32>, tensor<$Ax$Cxi32>) -> tensor<$Ax$Bx$Ex$T>
        %d = rota.choice_dot %x, %r, %q offset %o counts %n : (tensor<$Ax$Bx$Ex$T>, tensor<$Ax$Fx$Ex$T>, tensor<$Ax$Bx$Dxi32>, tensor<i32>, tensor<$Ax$Cxi32>) -> tensor<$Ax$Bx$Dx$W>
        return %p, %c, %q, %n, %r, %s, %y, %d : tensor<$Ax$Bx$Dxi32>, tensor<$Ax$Cxi32>, tensor<$Ax$Bx$Dxi32>, tensor<$Ax$Cxi32>, tensor<$Ax$Fx$Ex$T>, tensor<$Ax$Fx$Ex$T>, tensor<$Ax$Bx$Ex$T>, tensor<$Ax$Bx$Dx$W>
      })",
     {{1, 4, 1, 1, 3, 2, 1, 1}, {2, 16, 4, 2, 5, 8, 2, 3}}},
    // batch, sequence, experts, choices, width, rows, parts, capacity, parts of
    // all sequences here, and in the longer sequences
    {"rows_of_experts_of_parts",
     R"(
      func.func @f(%e: tensor<$Ax$Bx$Dxi32>, %x: tensor<$Ax$Bx$Ex$T>, %w: tensor<$Ax$Bx$Dx$W>, %a: tensor<$Jx$Cxi32>, %o: tensor<i32>) -> (tensor<$Ax$Bx$Dxi32>, tensor<$Ix$Cxi32>, tensor<$Ax$Bx$Dxi32>, tensor<$Ix$Cxi32>, tensor<$Ax$Bx$Dxi32>, tensor<$Ix$Cxi32>, tensor<$Ix$Fx$Ex$T>, tensor<$Ix$Fx$Ex$T>, tensor<$Ax$Bx$Ex$T>, tensor<$Ax$Bx$Dx$W>) {
        %p, %c = rota.expert_places %e rows = $F parts = $G : tensor<$Ax$Bx$Dxi32> -> tensor<$Ix$Cxi32>
        %q, %n = rota.expert_places %e rows = $F capacity = $H parts = $G : tensor<$Ax$Bx$Dxi32> -> tensor<$Ix$Cxi32>
        %l, %m = rota.expert_places %e others %a offset %o rows = $F capacity = $H parts = $G : tensor<$Ax$Bx$Dxi32>, tensor<$Jx$Cxi32>, tensor<i32> -> tensor<$Ix$Cxi32>
        %r = rota.dispatch %x, %p counts %c parts = $G : (tensor<$Ax$Bx$Ex$T>, tensor<$Ax$Bx$Dxi32>, tensor<$Ix$Cxi32>) -> tensor<$Ix$Fx$Ex$T>
        %s = rota.dispatch %x, %q weights %w parts = $G : (tensor<$Ax$Bx$Ex$T>, tensor<$Ax$Bx$Dxi32>, tensor<$Ax$Bx$Dx$W>) -> tensor<$Ix$Fx$Ex$T>
        %y = rota.combine %r, %q weights %w parts = $G : (tensor<$Ix$Fx$Ex$T>, tensor<$Ax$Bx$Dxi32>, tensor<$Ax$Bx$Dx$W>) -> tensor<$Ax$Bx$Ex$T>
        %d = rota.choice_dot %x, %s, %p parts = $G : (tensor<$Ax$Bx$Ex$T>, tensor<$Ix$Fx$Ex$T>, tensor<$Ax$Bx$Dxi32>) -> tensor<$Ax$Bx$Dx$W>
        return %p, %c, %q, %n, %l, %m, %r, %s, %y, %d : tensor<$Ax$Bx$Dxi32>, tensor<$Ix$Cxi32>, tensor<$Ax$Bx$Dxi32>, tensor<$Ix$Cxi32>, tensor<$Ax$Bx$Dxi32>, tensor<$Ix$Cxi32>, tensor<$Ix$Fx$Ex$T>, tensor<$Ix$Fx$Ex$T>, tensor<$Ax$Bx$Ex$T>, tensor<$Ax$Bx$Dx$W>
      })",
     {{2, 6, 3, 2, 5, 6, 2, 2, 4, 8},
      {1, 32, 4, 3, 19, 24, 4, 7, 4, 8},
      {3, 8, 2, 1, 4, 8, 1, 3, 3, 6}}}};

/// Values for the arguments: exact in their types, tokens below `end`.
std::vector<Tensor> makeArguments(mlir::func::FuncOp function, int64_t lowest,
                                  int64_t end) {
  Random random(23);
  std::vector<Tensor> arguments;
  for (mlir::Type type : function.getArgumentTypes()) {
    auto tensorType = llvm::cast<mlir::RankedTensorType>(type);
    bool isInteger = tensorType.getElementType().isInteger();
    Tensor tensor = isInteger
                        ? random.integers(tensorType.getShape(), end - lowest)
                        : random.uniform(tensorType.getShape(), -1, 1);
    for (double &element : tensor.elements)
      if (isInteger)
        element += double(lowest);
      else
        element = tensorType.getElementType().isBF16() ? roundToBF16(element)
                                                       : float(element);
    arguments.push_back(std::move(tensor));
  }
  return arguments;
}

/// Half a unit in the last place of bf16 is 2^-9 of a value; a value that an op
/// rounds before it is used again adds as much.
double toleranceOf(llvm::StringRef type) {
  return type == "bf16" ? 0x1p-7 : 1e-5;
}

/// Runs the kernels of what `f` has become in pieces and compares.
void compare(TestModule &module, llvm::ArrayRef<Tensor> arguments,
             llvm::ArrayRef<Tensor> expected, double tolerance,
             std::optional<rota::lowering::PairProducts> pairs = {}) {
  auto harness = KernelHarness::compile(module.function("f"), {}, {}, pairs);
  ASSERT_TRUE(harness) << module.takeDiagnostics();
  std::vector<Tensor> whole = harness->run(arguments);
  ASSERT_EQ(whole.size(), expected.size());
  for (size_t i = 0; i < whole.size(); ++i)
    EXPECT_LT(relativeError(whole[i], expected[i]), tolerance)
        << "result " << i;
  std::vector<Tensor> pieces = harness->run(arguments, 3);
  for (size_t i = 0; i < whole.size(); ++i)
    EXPECT_EQ(pieces[i].elements, whole[i].elements)
        << "result " << i << " depends on the split";
}

using Parameter = std::tuple<size_t, const char *>;
class DedicatedKernels : public testing::TestWithParam<Parameter> {};

TEST_P(DedicatedKernels, EqualTheInterpreter) {
  auto [index, type] = GetParam();
  const DedicatedOp &op = dedicatedOps[index];
  for (const std::vector<int64_t> &sizes : op.sizes) {
    std::string text, wide = "f32";
    for (const char *c = op.text; *c; ++c) {
      if (*c != '$')
        text += *c;
      else if (*++c == 'T' || *c == 'W')
        text += *c == 'T' ? type : wide;
      else
        text += std::to_string(sizes.at(*c - 'A'));
    }
    TestModule module(text);
    ASSERT_TRUE(bool(module)) << module.takeDiagnostics();
    auto arguments = makeArguments(module.function("f"), op.lowest, sizes[2]);
    auto expected = runFunction(module.function("f"), arguments,
                                Options{/*roundBF16=*/true});
    ASSERT_TRUE(succeeded(expected)) << module.takeDiagnostics();
    SCOPED_TRACE(testing::PrintToString(sizes));
    compare(module, arguments, *expected, toleranceOf(type));
    if (llvm::StringRef(op.name).starts_with("attention") &&
        llvm::StringRef(type) == "bf16" && sizes == op.sizes.back())
      for (auto pairs : {rota::lowering::PairProducts::Emulated,
                         rota::lowering::PairProducts::EmulatedTiles})
        compare(module, arguments, *expected, toleranceOf(type), pairs);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ops, DedicatedKernels,
    testing::Combine(testing::Range(size_t(0), std::size(dedicatedOps)),
                     testing::Values("f32", "bf16")),
    [](const testing::TestParamInfo<Parameter> &info) {
      return std::string(dedicatedOps[std::get<0>(info.param)].name) + "_" +
             std::get<1>(info.param);
    });

class FusedKernels : public testing::TestWithParam<Parameter> {};

TEST_P(FusedKernels, EqualTheInterpreter) {
  auto [index, type] = GetParam();
  for (auto [rows, columns] : {std::pair{1, 1}, {3, 7}, {37, 33}, {130, 100}}) {
    TestModule module(
        compositeText(compositeOps()[index], rows, columns, type));
    ASSERT_TRUE(bool(module)) << module.takeDiagnostics();
    auto arguments = compositeArguments(module.function("f"));
    auto expected = runFunction(module.function("f"), arguments,
                                Options{/*roundBF16=*/true});
    ASSERT_TRUE(succeeded(expected)) << module.takeDiagnostics();
    ASSERT_TRUE(succeeded(runPasses(module, "decompose,form-kernels")))
        << module.takeDiagnostics();
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    compare(module, arguments, *expected, toleranceOf(type));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ops, FusedKernels,
    testing::Combine(testing::Range(size_t(0), compositeOps().size()),
                     testing::Values("f32", "bf16")),
    [](const testing::TestParamInfo<Parameter> &info) {
      return std::string(compositeOps()[std::get<0>(info.param)].name) + "_" +
             std::get<1>(info.param);
    });

/// The derivative of a maximum: its shares where elements are equal.
TEST(MaximumKernels, EqualTheInterpreter) {
  for (std::string type : {"f32", "bf16"}) {
    std::string x = "tensor<9x5x" + type + ">", y = "tensor<9x" + type + ">";
    TestModule module("func.func @maximum(%x: " + x + ") -> " + y +
                      " {\n%y = rota.reduce max %x dims [1] : " + x + " -> " +
                      y + "\nreturn %y : " + y + "\n}\n");
    ASSERT_TRUE(bool(module)) << module.takeDiagnostics();
    llvm::SmallVector<unsigned> results;
    auto gradient =
        buildVjp(module.function("maximum"), "f", {true}, {true}, results);
    ASSERT_TRUE(succeeded(gradient)) << module.takeDiagnostics();
    Random random(7);
    std::vector<Tensor> arguments = {random.integers({9, 5}, 3),
                                     random.integers({9}, 7)};
    auto expected = runFunction(*gradient, arguments, Options{true});
    ASSERT_TRUE(succeeded(expected)) << module.takeDiagnostics();
    double sum = 0;
    for (double element : expected->front().elements)
      sum += element;
    double whole = 0;
    for (double element : arguments[1].elements)
      whole += element;
    EXPECT_NEAR(sum, whole, 0.01 * whole) << "the shares of a cotangent";
    ASSERT_TRUE(succeeded(runPasses(module, "canonicalize,cse,form-kernels")))
        << module.takeDiagnostics();
    compare(module, arguments, *expected, toleranceOf(type));
  }
}

/// Random functions, as far as every op of theirs has a kernel: a maximum over
/// rows that nothing fuses has none.
TEST(RandomKernels, EqualTheInterpreter) {
  unsigned count = 0;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    TestModule module(randomFunction(seed, 4 + seed % 12, 5, 33, "f32"));
    ASSERT_TRUE(bool(module)) << module.takeDiagnostics();
    auto arguments = makeArguments(module.function("f"), 0, 1);
    auto expected = runFunction(module.function("f"), arguments);
    ASSERT_TRUE(succeeded(expected)) << module.takeDiagnostics();
    ASSERT_TRUE(succeeded(runPasses(module, "canonicalize,cse,form-kernels")))
        << module.takeDiagnostics();
    bool hasKernels = true;
    for (mlir::Operation &op :
         module.function("f").getBody().front().without_terminator())
      hasKernels &= llvm::isa<mlir::rota::LaunchOp>(op);
    if (!hasKernels)
      continue;
    ++count;
    SCOPED_TRACE("seed " + std::to_string(seed));
    compare(module, arguments, *expected, 1e-5);
  }
  EXPECT_GT(count, 10u);
}

} // namespace
