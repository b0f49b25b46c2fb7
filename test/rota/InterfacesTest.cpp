// SPDX-License-Identifier: Apache-2.0
//
// Sharding rules and costs of ops. A rule is written as text: factors are
// letters in order, `letters` of a dimension stand together, dimensions are
// separated by dots: "ab.c" has a first dimension of two factors.
#include "ir/rota/Rota.h"

#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::rota;

namespace {

struct Case {
  const char *name;
  const char *arguments, *op;
  const char *rule; // operands and results, sizes, then ! whole or # numbered
  double flops, bytesRead, bytesWritten;
};

std::string textOf(const FactorRule::Dimensions &dimensions) {
  std::string text;
  for (const auto &dimension : dimensions) {
    text += text.empty() ? "" : ".";
    if (dimension.empty())
      text += "1";
    for (int64_t factor : dimension)
      text += char('a' + factor);
  }
  return text;
}

std::string textOf(const FactorRule &rule) {
  auto join = [](ArrayRef<FactorRule::Dimensions> list) {
    return llvm::join(
        llvm::map_range(list, [](auto &value) { return textOf(value); }), ",");
  };
  std::string text = join(rule.operands) + "->" + join(rule.results);
  for (auto [index, size] : llvm::enumerate(rule.sizes))
    text +=
        " " + std::string(1, char('a' + index)) + "=" + std::to_string(size);
  for (int64_t factor : rule.indivisible)
    text += std::string(" ") + char('a' + factor) +
            (llvm::is_contained(rule.numbered, factor) ? "#" : "!");
  return text;
}

/// A letter missing in the results is reduced over.
const Case cases[] = {
    {"einsum", "%x: tensor<2x4x8xbf16>, %w: tensor<16x8xbf16>",
     R"(rota.einsum "bsk,nk->bsn" %x, %w : (tensor<2x4x8xbf16>, tensor<16x8xbf16>) -> tensor<2x4x16xf32>)",
     "a.b.c,d.c->a.b.d a=2 b=4 c=8 d=16", 2 * 2 * 4 * 8 * 16,
     2 * (2 * 4 * 8 + 16 * 8), 4 * 2 * 4 * 16},
    {"reshape splits", "%x: tensor<2x12xf32>",
     "rota.reshape %x : tensor<2x12xf32> -> tensor<2x3x4xf32>",
     "a.bc->a.b.c a=2 b=3 c=4", 0, 0, 0},
    {"reshape merges", "%x: tensor<2x3x4xf32>",
     "rota.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>",
     "a.b.c->ab.c a=2 b=3 c=4", 0, 0, 0},
    {"reshape across a boundary", "%x: tensor<6x4xf32>",
     "rota.reshape %x : tensor<6x4xf32> -> tensor<4x6xf32>",
     "ab.e->ac.d a=2 b=3 c=2 d=6 e=4 b! c! d! e!", 0, 0, 0},
    {"reshape of ones", "%x: tensor<1x4x1xf32>",
     "rota.reshape %x : tensor<1x4x1xf32> -> tensor<4xf32>", "1.a.1->a a=4", 0,
     0, 0},
    {"reduce", "%x: tensor<2x4x8xf32>",
     "rota.reduce sum %x dims [1] : tensor<2x4x8xf32> -> tensor<2x8xf32>",
     "a.b.c->a.c a=2 b=4 c=8", 64, 256, 64},
    {"broadcast", "%x: tensor<8xf32>",
     "rota.broadcast %x dims [1] : tensor<8xf32> -> tensor<4x8xf32>",
     "b->a.b a=4 b=8", 0, 32, 128},
    {"rms_norm", "%x: tensor<4x8xf32>, %g: tensor<8xf32>",
     "rota.rms_norm %x, %g epsilon = 1.0e-05 : tensor<4x8xf32>, tensor<8xf32>",
     "a.b,b->a.b a=4 b=8 b!", 128, 128 + 32, 128},
    {"rms_norm_grad", "%x: tensor<4x8xf32>, %g: tensor<8xf32>",
     "rota.rms_norm_grad %x, %x, %g epsilon = 1.0e-05 : (tensor<4x8xf32>, "
     "tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)",
     "a.b,a.b,b->a.b,b a=4 b=8 b!", 11 * 32, 2 * 128 + 32, 128 + 32},
    {"gated activation", "%x: tensor<4x8xf32>",
     "rota.activation silu %x, %x : tensor<4x8xf32>", "a.b,a.b->a.b a=4 b=8",
     5 * 32, 256, 128},
    {"activation_grad", "%x: tensor<4x8xf32>",
     "rota.activation_grad silu %x, %x, %x : (tensor<4x8xf32>, "
     "tensor<4x8xf32>, "
     "tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)",
     "a.b,a.b,a.b->a.b,a.b a=4 b=8", 12 * 32, 3 * 128, 256},
    {"activation", "%x: tensor<4x8xf32>",
     "rota.activation gelu_tanh %x : tensor<4x8xf32>", "a.b->a.b a=4 b=8",
     8 * 32, 128, 128},
    {"centered rms_norm", "%x: tensor<4x8xf32>, %g: tensor<8xf32>",
     "rota.rms_norm centered %x, %g epsilon = 1.0e-05 : tensor<4x8xf32>, "
     "tensor<8xf32>",
     "a.b,b->a.b a=4 b=8 b!", 6 * 32, 128 + 32, 128},
    {"split", "%x: tensor<4x8xf32>",
     "rota.split %x dim = 1 : (tensor<4x8xf32>) -> (tensor<4x5xf32>, "
     "tensor<4x3xf32>)",
     "a.b->a.c,a.d a=4 b=8 c=5 d=3 b! c! d!", 0, 128, 128},
    {"concat", "%x: tensor<4x8xf32>",
     "rota.concat %x, %x dim = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> "
     "tensor<8x8xf32>",
     "c.b,d.b->a.b a=8 b=8 c=4 d=4 a! c! d!", 0, 256, 256},
    {"rotary_table", "",
     "rota.rotary_table frequencies [1.0, 0.1] scale = 1.0 : "
     "tensor<16x2x2xf32>",
     "->a.b.c a=16 b=2 c=2 a! b! c!", 0, 0, 0},
    {"rope with a table of the sequence",
     "%x: tensor<2x16x3x4xf32>, %t: tensor<16x2x2xf32>",
     "rota.rope %x, %t : tensor<2x16x3x4xf32>, tensor<16x2x2xf32>",
     "a.b.c.d,b.e.f->a.b.c.d a=2 b=16 c=3 d=4 e=2 f=2 d! e! f!", 3 * 384,
     4 * 384 + 4 * 64, 4 * 384},
    {"rope with a longer table",
     "%x: tensor<2x16x3x4xf32>, %t: tensor<32x2x2xf32>",
     "rota.rope %x, %t : tensor<2x16x3x4xf32>, tensor<32x2x2xf32>",
     "a.b.c.d,e.f.g->a.b.c.d a=2 b=16 c=3 d=4 e=32 f=2 g=2 b! d! e! f! g!",
     3 * 384, 4 * 384 + 4 * 128, 4 * 384},
    {"attention", "%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>",
     "rota.attention %q, %k, %k scale = 0.35 : (tensor<2x16x4x8xf32>, "
     "tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x4x8xf32>, "
     "tensor<2x4x16xf32>)",
     "a.b.cd.e,a.b.c.e,a.b.c.f->a.b.cd.f,a.cd.b a=2 b=16 c=2 d=2 e=8 f=8 b! e! "
     "f!",
     2 * 4 * 136 * (4 * 8 + 5), 4 * (1024 + 512 + 512), 4 * (1024 + 128)},
    {"attention with sinks, window and cap, values of another size",
     "%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, "
     "%v: tensor<2x16x2x6xf32>, %s: tensor<4xf32>",
     "rota.attention %q, %k, %v sinks %s scale = 0.35 window = 5 soft_cap = "
     "20.0 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, "
     "tensor<2x16x2x6xf32>, tensor<4xf32>) -> (tensor<2x16x4x6xf32>, "
     "tensor<2x4x16xf32>)",
     "a.b.cd.e,a.b.c.e,a.b.c.f,cd->a.b.cd.f,a.cd.b a=2 b=16 c=2 d=2 e=8 f=6 b! "
     "e! f!",
     2 * 4 * ((1 + 2 + 3 + 4 + 12 * 5) * (2 * 8 + 2 * 6 + 5 + 2) + 16 * 3),
     4 * (1024 + 512 + 384 + 4), 4 * (768 + 128)},
    {"attention in both directions", "%q: tensor<1x4x1x2xf32>",
     "rota.attention %q, %q, %q scale = 0.35 bidirectional : "
     "(tensor<1x4x1x2xf32>, tensor<1x4x1x2xf32>, tensor<1x4x1x2xf32>) -> "
     "(tensor<1x4x1x2xf32>, tensor<1x1x4xf32>)",
     "a.b.cd.e,a.b.c.e,a.b.c.f->a.b.cd.f,a.cd.b a=1 b=4 c=1 d=1 e=2 f=2 b! e! "
     "f!",
     16 * (4 * 2 + 5), 4 * 24, 4 * (8 + 4)},
    {"attention in a window of both directions", "%q: tensor<1x4x1x2xf32>",
     "rota.attention %q, %q, %q scale = 0.35 window = 2 bidirectional : "
     "(tensor<1x4x1x2xf32>, tensor<1x4x1x2xf32>, tensor<1x4x1x2xf32>) -> "
     "(tensor<1x4x1x2xf32>, tensor<1x1x4xf32>)",
     "a.b.cd.e,a.b.c.e,a.b.c.f->a.b.cd.f,a.cd.b a=1 b=4 c=1 d=1 e=2 f=2 b! e! "
     "f!",
     10 * (4 * 2 + 5), 4 * 24, 4 * (8 + 4)},
    {"attention_grad",
     "%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %l: "
     "tensor<2x4x16xf32>",
     "rota.attention_grad %q, %q, %k, %k, %q, %l scale = 0.35 : "
     "(tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, "
     "tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>) -> "
     "(tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>)",
     "a.b.cd.f,a.b.cd.e,a.b.c.e,a.b.c.f,a.b.cd.f,a.cd.b->a.b.cd.e,a.b.c.e,a.b."
     "c.f a=2 b=16 c=2 d=2 e=8 f=8 b! e! f!",
     2 * 4 * 136 * (10 * 8 + 6), 4 * (3 * 1024 + 2 * 512 + 128),
     4 * (1024 + 2 * 512)},
    {"attention_grad with sinks and cap",
     "%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %l: "
     "tensor<2x4x16xf32>, %s: tensor<4xf32>",
     "rota.attention_grad %q, %q, %k, %k, %q, %l sinks %s scale = 0.35 window "
     "= 99 soft_cap = 20.0 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, "
     "tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>, "
     "tensor<2x4x16xf32>, tensor<4xf32>) -> (tensor<2x16x4x8xf32>, "
     "tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<4xf32>)",
     "a.b.cd.f,a.b.cd.e,a.b.c.e,a.b.c.f,a.b.cd.f,a.cd.b,cd->a.b.cd.e,a.b.c.e,a."
     "b.c.f,cd a=2 b=16 c=2 d=2 e=8 f=8 b! e! f!",
     2 * 4 * (136 * (10 * 8 + 6 + 5) + 16 * 4),
     4 * (3 * 1024 + 2 * 512 + 128 + 4), 4 * (1024 + 2 * 512 + 4)},
    {"embedding", "%t: tensor<2x16xi32>, %w: tensor<256x8xbf16>",
     "rota.embedding %t, %w : (tensor<2x16xi32>, tensor<256x8xbf16>) -> "
     "tensor<2x16x8xbf16>",
     "a.b,d.c->a.b.c a=2 b=16 c=8 d=256 d#", 0, 4 * 32 + 2 * 256, 2 * 256},
    {"embedding_grad", "%t: tensor<2x16xi32>, %d: tensor<2x16x8xf32>",
     "rota.embedding_grad %t, %d : (tensor<2x16xi32>, tensor<2x16x8xf32>) -> "
     "tensor<256x8xf32>",
     "a.b,a.b.c->d.c a=2 b=16 c=8 d=256 d#", 256, 4 * 32 + 4 * 256,
     4 * 256 * 8},
    {"cross_entropy", "%x: tensor<2x16x64xf32>, %t: tensor<2x16xi32>",
     "rota.cross_entropy %x, %t : (tensor<2x16x64xf32>, tensor<2x16xi32>) -> "
     "(tensor<f32>, tensor<f32>, tensor<2x16xf32>)",
     "a.b.c,a.b->,,a.b a=2 b=16 c=64 c#", 4 * 2048, 4 * 2048 + 128, 8 + 128},
    {"cross_entropy_grad",
     "%d: tensor<f32>, %x: tensor<2x16x64xf32>, %t: tensor<2x16xi32>, %l: "
     "tensor<2x16xf32>",
     "rota.cross_entropy_grad %d, %x, %t, %l : (tensor<f32>, "
     "tensor<2x16x64xf32>, tensor<2x16xi32>, tensor<2x16xf32>) -> "
     "tensor<2x16x64xf32>",
     ",a.b.c,a.b,a.b->a.b.c a=2 b=16 c=64 c#", 3 * 2048,
     4 + 4 * 2048 + 128 + 128, 4 * 2048},
    {"route", "%z: tensor<2x16x8xf32>",
     "rota.route %z scaling = 1.0 : (tensor<2x16x8xf32>) -> "
     "(tensor<2x16x2xf32>, tensor<2x16x2xi32>)",
     "a.b.c->a.b.d,a.b.d a=2 b=16 c=8 d=2 c! d!", 6 * 256, 1024, 512},
    {"expert_places", "%e: tensor<2x16x2xi32>",
     "rota.expert_places %e rows = 64 : tensor<2x16x2xi32> -> tensor<2x8xi32>",
     "a.b.c->a.b.c,a.d a=2 b=16 c=2 d=8 b! c! d!", 0, 256, 256 + 64},
    {"dispatch",
     "%x: tensor<2x16x8xf32>, %p: tensor<2x16x2xi32>, %w: tensor<2x16x2xf32>",
     "rota.dispatch %x, %p weights %w : (tensor<2x16x8xf32>, "
     "tensor<2x16x2xi32>, tensor<2x16x2xf32>) -> tensor<2x64x8xf32>",
     "a.b.c,a.b.e,a.b.e->a.d.c a=2 b=16 c=8 d=64 e=2 d# e!", 512,
     4 * (512 + 64 + 64), 4 * 1024},
    {"dispatch of counted rows",
     "%x: tensor<2x16x8xf32>, %p: tensor<2x16x2xi32>, %c: tensor<2x8xi32>",
     "rota.dispatch %x, %p counts %c blocks = 2 fill = 0.5 : "
     "(tensor<2x16x8xf32>, tensor<2x16x2xi32>, tensor<2x8xi32>) -> "
     "tensor<2x64x8xf32>",
     "a.b.c,a.b.e,a.df->a.dg.c a=2 b=16 c=8 d=2 e=2 f=4 g=32 d# e! f! g!", 0,
     4 * (512 + 64 + 16), 4 * 1024},
    {"dispatch of parts of sequences",
     "%x: tensor<2x16x8xf32>, %p: tensor<2x16x2xi32>",
     "rota.dispatch %x, %p parts = 4 : (tensor<2x16x8xf32>, "
     "tensor<2x16x2xi32>) -> tensor<8x16x8xf32>",
     "a.fb.c,a.fb.e->fa.d.c a=2 b=4 c=8 d=16 e=2 f=4 d# e!", 0, 4 * (512 + 64),
     4 * 1024},
    {"combine",
     "%r: tensor<2x64x8xbf16>, %p: tensor<2x16x2xi32>, %w: tensor<2x16x2xf32>",
     "rota.combine %r, %p weights %w : (tensor<2x64x8xbf16>, "
     "tensor<2x16x2xi32>, tensor<2x16x2xf32>) -> tensor<2x16x8xbf16>",
     "a.d.c,a.b.e,a.b.e->a.b.c a=2 b=16 c=8 d=64 e=2 d# e!", 2 * 512,
     2 * 512 + 4 * (64 + 64), 2 * 256},
    {"choice_dot of a part",
     "%x: tensor<2x16x8xf32>, %r: tensor<2x8x8xf32>, %p: tensor<2x16x2xi32>, "
     "%o: tensor<i32>",
     "rota.choice_dot %x, %r, %p offset %o : (tensor<2x16x8xf32>, "
     "tensor<2x8x8xf32>, tensor<2x16x2xi32>, tensor<i32>) -> "
     "tensor<2x16x2xf32>",
     "a.b.c,a.d.c,a.b.e,->a.b.e a=2 b=16 c=8 d=8 e=2 d# e!", 2 * 128,
     4 * (256 + 128 + 64 + 1), 4 * 64},
    {"grouped_product",
     "%x: tensor<2x32x4xf32>, %w: tensor<8x4x6xf32>, %c: tensor<2x8xi32>",
     "rota.grouped_product %x, %w, %c blocks = 2 : (tensor<2x32x4xf32>, "
     "tensor<8x4x6xf32>, tensor<2x8xi32>) -> tensor<2x32x6xf32>",
     "b.ac.e,ad.e.f,b.ad->b.ac.f a=2 b=2 c=16 d=4 e=4 f=6 c! d!",
     2 * 2 * 32 * 4 * 6, 4 * (256 + 192 + 16), 4 * 384},
    {"grouped_product transposed",
     "%x: tensor<2x32x4xf32>, %w: tensor<8x6x4xf32>, %c: tensor<2x8xi32>",
     "rota.grouped_product %x, %w, %c transposed fill = 0.25 : "
     "(tensor<2x32x4xf32>, tensor<8x6x4xf32>, tensor<2x8xi32>) -> "
     "tensor<2x32x6xf32>",
     "b.ac.e,ad.f.e,b.ad->b.ac.f a=1 b=2 c=32 d=8 e=4 f=6 c! d!",
     2 * 2 * 8 * 4 * 6, 4 * (256 + 192 + 16), 4 * 384},
    {"grouped_product_grad",
     "%x: tensor<2x32x4xf32>, %d: tensor<2x32x6xf32>, %c: tensor<2x8xi32>",
     "rota.grouped_product_grad %x, %d, %c blocks = 4 : "
     "(tensor<2x32x4xf32>, tensor<2x32x6xf32>, tensor<2x8xi32>) -> "
     "tensor<8x4x6xf32>",
     "b.ac.e,b.ac.f,b.ad->ad.e.f a=4 b=2 c=8 d=2 e=4 f=6 c! d!",
     2 * 2 * 32 * 4 * 6, 4 * (256 + 384 + 16), 4 * 192},
    {"grouped_bias",
     "%x: tensor<2x32x4xf32>, %b: tensor<8x4xf32>, %c: tensor<2x8xi32>",
     "rota.grouped_bias %x, %b, %c blocks = 2 : tensor<2x32x4xf32>, "
     "tensor<8x4xf32>, tensor<2x8xi32>",
     "b.ac.e,ad.e,b.ad->b.ac.e a=2 b=2 c=16 d=4 e=4 c! d!", 256,
     4 * (256 + 32 + 16), 4 * 256},
    {"embedding with an offset",
     "%t: tensor<2x16xi32>, %w: tensor<256x8xbf16>, %o: tensor<i32>",
     "rota.embedding %t, %w offset %o : (tensor<2x16xi32>, "
     "tensor<256x8xbf16>, tensor<i32>) -> tensor<2x16x8xbf16>",
     "a.b,d.c,->a.b.c a=2 b=16 c=8 d=256 d#", 0, 4 * 32 + 2 * 256, 2 * 256},
    {"embedding_grad with an offset",
     "%t: tensor<2x16xi32>, %d: tensor<2x16x8xf32>, %o: tensor<i32>",
     "rota.embedding_grad %t, %d offset %o : (tensor<2x16xi32>, "
     "tensor<2x16x8xf32>, tensor<i32>) -> tensor<256x8xf32>",
     "a.b,a.b.c,->d.c a=2 b=16 c=8 d=256 d#", 256, 4 * 32 + 4 * 256 + 4,
     4 * 256 * 8},
    {"cross_entropy_grad with an offset",
     "%d: tensor<f32>, %x: tensor<2x16x64xf32>, %t: tensor<2x16xi32>, %l: "
     "tensor<2x16xf32>, %o: tensor<i32>",
     "rota.cross_entropy_grad %d, %x, %t, %l offset %o : (tensor<f32>, "
     "tensor<2x16x64xf32>, tensor<2x16xi32>, tensor<2x16xf32>, tensor<i32>) "
     "-> tensor<2x16x64xf32>",
     ",a.b.c,a.b,a.b,->a.b.c a=2 b=16 c=64 c#", 3 * 2048,
     4 + 4 * 2048 + 128 + 128 + 4, 4 * 2048},
    {"cross_entropy_grad with rows",
     "%d: tensor<f32>, %x: tensor<2x16x64xf32>, %t: tensor<2x16xi32>, %l: "
     "tensor<2x16xf32>, %o: tensor<i32>",
     "rota.cross_entropy_grad %d, %x, %t, %l offset %o rows %l : (tensor<f32>, "
     "tensor<2x16x64xf32>, tensor<2x16xi32>, tensor<2x16xf32>, tensor<i32>, "
     "tensor<2x16xf32>) -> tensor<2x16x64xf32>",
     ",a.b.c,a.b,a.b,,a.b->a.b.c a=2 b=16 c=64 c#", 3 * 2048,
     4 + 4 * 2048 + 128 + 128 + 4 + 128, 4 * 2048},
    {"cross_entropy_shard",
     "%x: tensor<2x16x64xf32>, %t: tensor<2x16xi32>, %o: tensor<i32>",
     "rota.cross_entropy_shard %x, %t offset %o : (tensor<2x16x64xf32>, "
     "tensor<2x16xi32>, tensor<i32>) -> tensor<2x16x2xf32>",
     "a.b.c,a.b,->a.b.d a=2 b=16 c=64 d=2 c! d!", 4 * 2048, 4 * 2048 + 128 + 4,
     4 * 64},
    {"cross_entropy_merge", "%p: tensor<2x16x8xf32>, %t: tensor<2x16xi32>",
     "rota.cross_entropy_merge %p, %t : (tensor<2x16x8xf32>, "
     "tensor<2x16xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x16xf32>)",
     "a.b.c,a.b->,,a.b a=2 b=16 c=8 c!", 5 * 4 * 32, 4 * 256 + 128, 8 + 128},
    {"read", "", "rota.read @weight : tensor<4x8xbf16>", "->a.b a=4 b=8", 0, 0,
     0},
    {"accumulate", "%g: tensor<4x8xf32>",
     "rota.accumulate @weight, %g : tensor<4x8xf32>", "a.b-> a=4 b=8", 32, 256,
     128},
    {"auxiliary_cotangent", "", R"(rota.auxiliary_cotangent "a" : tensor<f32>)",
     "->", 0, 0, 0},
    {"name", "%x: tensor<4x8xf32>", R"(rota.name "x" %x : tensor<4x8xf32>)",
     "a.b->a.b a=4 b=8", 0, 0, 0},
    {"arith.addf", "%x: tensor<4x8xbf16>",
     "arith.addf %x, %x : tensor<4x8xbf16>", "a.b,a.b->a.b a=4 b=8", 32, 128,
     64},
    {"arith.extf", "%x: tensor<4xbf16>",
     "arith.extf %x : tensor<4xbf16> to tensor<4xf32>", "a->a a=4", 4, 8, 16},
    {"arith.constant", "", "arith.constant dense<1.0> : tensor<4x8xf32>",
     "->a.b a=4 b=8", 0, 0, 0},
    {"arith.mulf of scalars", "%x: tensor<f32>",
     "arith.mulf %x, %x : tensor<f32>", ",->", 1, 8, 4},
    {"math.fma", "%x: tensor<4x8xf32>", "math.fma %x, %x, %x : tensor<4x8xf32>",
     "a.b,a.b,a.b->a.b a=4 b=8", 64, 384, 128},
};

class Interfaces : public testing::TestWithParam<Case> {};

TEST_P(Interfaces, GiveRuleAndCost) {
  const Case &test = GetParam();
  DialectRegistry registry;
  registry.insert<RotaDialect, arith::ArithDialect, func::FuncDialect,
                  math::MathDialect>();
  registerArithModels(registry);
  MLIRContext context(registry);
  std::string text =
      std::string("rota.param @weight : tensor<4x8xf32> axes [\"in\", \"out\"] "
                  "init #rota.constant<value = 1.0>\nfunc.func @f(") +
      test.arguments + ") {\n" + test.op + "\nreturn\n}";
  auto module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  Operation &op =
      module->lookupSymbol<func::FuncOp>("f").getBody().front().front();

  FactorRule rule = cast<FactorRuleOpInterface>(op).getFactorRule();
  EXPECT_EQ(textOf(rule), test.rule);
  Cost cost = cast<CostOpInterface>(op).getCost();
  EXPECT_EQ(cost.flops, test.flops);
  EXPECT_EQ(cost.bytesRead, test.bytesRead);
  EXPECT_EQ(cost.bytesWritten, test.bytesWritten);

  // A dimension is the product of its factors.
  auto check = [&](ValueRange values, ArrayRef<FactorRule::Dimensions> list) {
    ASSERT_EQ(values.size(), list.size());
    for (auto [value, dimensions] : llvm::zip(values, list)) {
      auto shape = cast<RankedTensorType>(value.getType()).getShape();
      ASSERT_EQ(shape.size(), dimensions.size());
      for (auto [size, factors] : llvm::zip(shape, dimensions)) {
        int64_t product = 1;
        for (int64_t factor : factors)
          product *= rule.sizes[factor];
        EXPECT_EQ(product, size);
      }
    }
  };
  check(op.getOperands(), rule.operands);
  check(op.getResults(), rule.results);
}

INSTANTIATE_TEST_SUITE_P(Ops, Interfaces, testing::ValuesIn(cases),
                         [](const testing::TestParamInfo<Case> &info) {
                           std::string name = info.param.name;
                           std::ranges::replace_if(
                               name, [](char c) { return !llvm::isAlnum(c); },
                               '_');
                           return name;
                         });

TEST(FactorRule, ReducedFactorsAreInNoResult) {
  FactorRule rule;
  rule.sizes = {2, 4, 8};
  rule.operands = {{{0}, {1}}, {{1}, {2}}};
  rule.results = {{{0}, {2}}};
  EXPECT_EQ(rule.reducedFactors(), SmallVector<int64_t>{1});
}

} // namespace
