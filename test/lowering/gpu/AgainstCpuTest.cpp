// SPDX-License-Identifier: Apache-2.0
//
// Kernels of rows and of tokens on the emulated GPU against those of the CPU.
#include "test/lowering/gpu/AgainstCpu.h"

using namespace ::rota::test;

namespace {

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// A normalized row and a value of the row.
const char *const kNorm = R"(
  rota.kernel @norm operands [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (0)>] results [#rota.result<row>, #rota.result<row>] {
  ^bb0(%x: tensor<$Cxbf16>, %g: tensor<$Cxf32>):
    %w = arith.extf %x : tensor<$Cxbf16> to tensor<$Cxf32>
    %q = arith.mulf %w, %w : tensor<$Cxf32>
    %s = rota.reduce sum %q dims [0] : tensor<$Cxf32> -> tensor<f32>
    %n = arith.constant dense<$C.0> : tensor<f32>
    %m = arith.divf %s, %n : tensor<f32>
    %r = math.rsqrt %m : tensor<f32>
    %b = rota.broadcast %r dims [] : tensor<f32> -> tensor<$Cxf32>
    %h = arith.mulf %w, %b : tensor<$Cxf32>
    %y = arith.mulf %h, %g : tensor<$Cxf32>
    %z = arith.truncf %y : tensor<$Cxf32> to tensor<$Cxbf16>
    rota.yield %z, %r : tensor<$Cxbf16>, tensor<f32>
  }
  func.func @f(%x: tensor<$Rx$Cxbf16>, %g: tensor<$Cxf32>) {
    %y:2 = rota.launch @norm rows = $R (%x, %g) : (tensor<$Rx$Cxbf16>, tensor<$Cxf32>) -> (tensor<$Rx$Cxbf16>, tensor<$Rxf32>)
    return
  })";

/// Elementwise, with functions.
const char *const kGated = R"(
  rota.kernel @gated operands [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
  ^bb0(%a: tensor<$Cxbf16>, %b: tensor<$Cxbf16>):
    %x = arith.extf %a : tensor<$Cxbf16> to tensor<$Cxf32>
    %u = arith.extf %b : tensor<$Cxbf16> to tensor<$Cxf32>
    %n = arith.negf %x : tensor<$Cxf32>
    %e = math.exp %n : tensor<$Cxf32>
    %one = arith.constant dense<1.0> : tensor<$Cxf32>
    %d = arith.addf %e, %one : tensor<$Cxf32>
    %q = arith.divf %x, %d : tensor<$Cxf32>
    %t = math.tanh %u : tensor<$Cxf32>
    %y = arith.mulf %q, %t : tensor<$Cxf32>
    %z = arith.truncf %y : tensor<$Cxf32> to tensor<$Cxbf16>
    rota.yield %z : tensor<$Cxbf16>
  }
  func.func @f(%a: tensor<$Rx$Cxbf16>, %b: tensor<$Rx$Cxbf16>) {
    %y = rota.launch @gated rows = $R (%a, %b) : (tensor<$Rx$Cxbf16>, tensor<$Rx$Cxbf16>) -> tensor<$Rx$Cxbf16>
    return
  })";

/// Two reductions, one after the other.
const char *const kSoftmax = R"(
  rota.kernel @softmax operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
  ^bb0(%x: tensor<$Cxf32>):
    %m = rota.reduce max %x dims [0] : tensor<$Cxf32> -> tensor<f32>
    %b = rota.broadcast %m dims [] : tensor<f32> -> tensor<$Cxf32>
    %d = arith.subf %x, %b : tensor<$Cxf32>
    %e = math.exp %d : tensor<$Cxf32>
    %s = rota.reduce sum %e dims [0] : tensor<$Cxf32> -> tensor<f32>
    %t = rota.broadcast %s dims [] : tensor<f32> -> tensor<$Cxf32>
    %y = arith.divf %e, %t : tensor<$Cxf32>
    rota.yield %y : tensor<$Cxf32>
  }
  func.func @f(%x: tensor<$Rx$Cxf32>) {
    %y = rota.launch @softmax rows = $R (%x) : (tensor<$Rx$Cxf32>) -> tensor<$Rx$Cxf32>
    return
  })";

TEST_F(AgainstCpu, Rows) {
  for (int64_t c : {7, 12, 64, 96, 100, 768, 4096, 5120})
    check({replaced(kNorm, {{"$R", "5"}, {"$C", number(c)}}),
           {},
           2,
           0,
           1,
           {{0, 0}},
           1e-5,
           /*leaveOutBarriers=*/true});
  for (int64_t c : {40, 768, 4100})
    check({replaced(kGated, {{"$R", "5"}, {"$C", number(c)}}), {true}, 4});
  check(
      {replaced(kGated, {{"$R", "9"}, {"$C", "776"}}), {}, 4, 0, 1, {{1, 0}}});
  for (int64_t c : {8, 250, 1000, 40000})
    check({replaced(kSoftmax, {{"$R", "3"}, {"$C", number(c)}}),
           {},
           5,
           0,
           1,
           {{0, 0}},
           1e-5,
           /*leaveOutBarriers=*/true});
}

//===----------------------------------------------------------------------===//
// Sums over rows
//===----------------------------------------------------------------------===//

/// The derivative of a norm: a row, sums of columns and of a value over rows,
/// and a value that may overwrite another.
const char *const kNormGrad = R"(
  rota.kernel @grad operands [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (0)>, affine_map<(d0) -> (d0)>] results [#rota.result<row>, #rota.result<sum>, #rota.result<sum>, #rota.result<row>] {
  ^bb0(%x: tensor<$Cxf32>, %d: tensor<$Cxf32>, %g: tensor<$Cxf32>, %r: tensor<f32>):
    %b = rota.broadcast %r dims [] : tensor<f32> -> tensor<$Cxf32>
    %h = arith.mulf %x, %b : tensor<$Cxf32>
    %dh = arith.mulf %d, %g : tensor<$Cxf32>
    %p = arith.mulf %dh, %h : tensor<$Cxf32>
    %s = rota.reduce sum %p dims [0] : tensor<$Cxf32> -> tensor<f32>
    %small = arith.constant dense<0.001> : tensor<f32>
    %m = arith.mulf %s, %small : tensor<f32>
    %t = rota.broadcast %m dims [] : tensor<f32> -> tensor<$Cxf32>
    %u = arith.mulf %h, %t : tensor<$Cxf32>
    %v = arith.subf %dh, %u : tensor<$Cxf32>
    %y = arith.mulf %v, %b : tensor<$Cxf32>
    %dg = arith.mulf %d, %h : tensor<$Cxf32>
    %o = arith.mulf %r, %r : tensor<f32>
    rota.yield %y, %dg, %m, %o : tensor<$Cxf32>, tensor<$Cxf32>, tensor<f32>, tensor<f32>
  }
  func.func @f(%x: tensor<$Rx$Cxf32>, %d: tensor<$Rx$Cxf32>, %g: tensor<$Cxf32>, %r: tensor<$Rxf32>) {
    %y:4 = rota.launch @grad rows = $R (%x, %d, %g, %r) : (tensor<$Rx$Cxf32>, tensor<$Rx$Cxf32>, tensor<$Cxf32>, tensor<$Rxf32>) -> (tensor<$Rx$Cxf32>, tensor<$Cxf32>, tensor<f32>, tensor<$Rxf32>)
    return
  })";

const char *const kSums = R"(
  rota.kernel @sums operands [affine_map<(d0) -> (d0)>] results [#rota.result<sum>, #rota.result<sum>] {
  ^bb0(%x: tensor<$Cxf32>):
    %s = rota.reduce sum %x dims [0] : tensor<$Cxf32> -> tensor<f32>
    %t = rota.broadcast %s dims [] : tensor<f32> -> tensor<$Cxf32>
    %y = arith.subf %x, %t : tensor<$Cxf32>
    rota.yield %y, %s : tensor<$Cxf32>, tensor<f32>
  }
  func.func @f(%x: tensor<$Rx$Cxf32>) {
    %y:2 = rota.launch @sums rows = $R (%x) : (tensor<$Rx$Cxf32>) -> (tensor<$Cxf32>, tensor<f32>)
    return
  })";

/// One value per row, no columns.
const char *const kValues = R"(
  rota.kernel @values operands [affine_map<(d0) -> (d0)>] results [#rota.result<sum>, #rota.result<row>] {
  ^bb0(%x: tensor<f32>):
    %y = math.exp %x : tensor<f32>
    rota.yield %y, %y : tensor<f32>, tensor<f32>
  }
  func.func @f(%x: tensor<$Rxf32>) {
    %y:2 = rota.launch @values rows = $R (%x) : (tensor<$Rxf32>) -> (tensor<f32>, tensor<$Rxf32>)
    return
  })";

TEST_F(AgainstCpu, SumsOverRows) {
  for (auto [r, c] : {std::pair(300, 96),
                      {1100, 8},
                      {140, 768},
                      {384, 520},
                      {20, 4096},
                      {130, 17000}})
    check({replaced(kNormGrad, {{"$R", number(r)}, {"$C", number(c)}}),
           {},
           1,
           0,
           1,
           {{0, 0}, {3, 3}}});
  check({replaced(kNormGrad, {{"$R", "300"}, {"$C", "100"}}),
         {true, true, true, true},
         1});
  for (auto [r, c] : {std::pair(300, 96), {140, 768}})
    check({replaced(kSums, {{"$R", number(r)}, {"$C", number(c)}}),
           {true, false},
           2,
           0,
           1,
           {},
           1e-5,
           /*leaveOutBarriers=*/true});
  check({replaced(kValues, {{"$R", "1000"}}), {}, 1, 0, 1, {{0, 1}}});
  check({replaced(kValues, {{"$R", "9000"}}), {true, false}, 1});
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

const char *const kLoss = R"(
  func.func @f(%l: tensor<2x3x$Cx$T>, %t: tensor<2x3xi32>) {
    %s, %w, %e = rota.cross_entropy %l, %t : (tensor<2x3x$Cx$T>, tensor<2x3xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x3xf32>)
    return
  })";
const char *const kLossGrad = R"(
  func.func @f(%d: tensor<f32>, %l: tensor<2x3x$Cx$T>, %t: tensor<2x3xi32>, %e: tensor<2x3xf32>) {
    %g = rota.cross_entropy_grad %d, %l, %t, %e : (tensor<f32>, tensor<2x3x$Cx$T>, tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<2x3x$Cx$T>
    return
  })";
const char *const kPartGrad = R"(
  func.func @f(%d: tensor<f32>, %l: tensor<2x3x$Cx$T>, %t: tensor<2x3xi32>, %e: tensor<2x3xf32>, %o: tensor<i32>) {
    %g = rota.cross_entropy_grad %d, %l, %t, %e offset %o of $C : (tensor<f32>, tensor<2x3x$Cx$T>, tensor<2x3xi32>, tensor<2x3xf32>, tensor<i32>) -> tensor<2x3x$Cx$T>
    return
  })";
const char *const kRowsGrad = R"(
  func.func @f(%d: tensor<f32>, %l: tensor<2x3x$Cx$T>, %t: tensor<2x3xi32>, %e: tensor<2x3xf32>, %o: tensor<i32>, %r: tensor<2x3xf32>) {
    %g = rota.cross_entropy_grad %d, %l, %t, %e offset %o of $C rows %r : (tensor<f32>, tensor<2x3x$Cx$T>, tensor<2x3xi32>, tensor<2x3xf32>, tensor<i32>, tensor<2x3xf32>) -> tensor<2x3x$Cx$T>
    return
  })";
const char *const kPart = R"(
  func.func @f(%l: tensor<2x3x$Cx$T>, %t: tensor<2x3xi32>, %o: tensor<i32>) {
    %p = rota.cross_entropy_shard %l, %t offset %o of $C : (tensor<2x3x$Cx$T>, tensor<2x3xi32>, tensor<i32>) -> tensor<2x3x2xf32>
    return
  })";
const char *const kMerge = R"(
  func.func @f(%p: tensor<2x3x8xf32>, %t: tensor<2x3xi32>) {
    %s, %w, %e = rota.cross_entropy_merge %p, %t : (tensor<2x3x8xf32>, tensor<2x3xi32>) -> (tensor<f32>, tensor<f32>, tensor<2x3xf32>)
    return
  })";

TEST_F(AgainstCpu, CrossEntropy) {
  for (std::string t : {"bf16", "f32"})
    for (int64_t c : {7, 100, 256, 1000, 5001, 32000}) {
      Names names = {{"$C", number(c)}, {"$T", t}};
      // Targets that have no column, and rows that do not count.
      check({replaced(kLoss, names), {}, 9, -1, c + 1});
      check({replaced(kLossGrad, names), {}, 2, -1, c + 1, {{1, 0}}});
      check({replaced(kPart, names), {}, 9, -1, c + 9});
      check({replaced(kPartGrad, names), {}, 2, -1, c + 9, {{1, 0}}});
      check({replaced(kRowsGrad, names), {}, 2, -1, c + 9, {{1, 0}}});
    }
  check({kMerge, {}, 9, -1, 9});
}

/// Nothing reads or writes the NaNs between rows.
TEST_F(AgainstCpu, RowsWithGaps) {
  const char *const capped = R"(
    rota.kernel @k operands [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (0)>, affine_map<(d0) -> (d0)>] results [#rota.result<row>, #rota.result<row>] {
    ^bb0(%x: tensor<$WxbB>, %g: tensor<$Wxf32>, %r: tensor<f32>):
      %t = arith.mulf %x, %x : tensor<$WxbB>
      %b = rota.broadcast %r dims [] : tensor<f32> -> tensor<$Wxf32>
      %y = arith.addf %b, %g : tensor<$Wxf32>
      rota.yield %t, %y : tensor<$WxbB>, tensor<$Wxf32>
    }
    func.func @f(%x: tensor<2x3x$WxbB, #rota.row_stride<$S>>, %g: tensor<$Wxf32>, %r: tensor<6xf32>) {
      %y:2 = rota.launch @k rows = 6 (%x, %g, %r) : (tensor<2x3x$WxbB, #rota.row_stride<$S>>, tensor<$Wxf32>, tensor<6xf32>) -> (tensor<2x3x$WxbB, #rota.row_stride<$S>>, tensor<2x3x$Wxf32, #rota.row_stride<$S>>)
      return
    })";
  for (std::string t : {"bf16", "f32"})
    for (auto [c, stride] :
         {std::pair(1, 64), {7, 64}, {61, 64}, {1001, 1024}, {50257, 50304}}) {
      std::string logits =
          number(c) + "x" + t + ", #rota.row_stride<" + number(stride) + ">>";
      Names names = {{"$Cx$T>", logits}, {"$C", number(c)}};
      check({replaced(kLoss, names), {}, 9, -1, c + 1});
      check({replaced(kLossGrad, names), {}, 2, -1, c + 1, {{1, 0}}});
      check({replaced(kPart, names), {}, 9, -1, c + 9});
      check({replaced(kRowsGrad, names), {}, 2, -1, c + 9, {{1, 0}}});
      Names sizes = {{"$W", number(c)}, {"$S", number(stride)}, {"bB", t}};
      check({replaced(capped, sizes), {}, 2, 0, 1, {{0, 0}}});
      check({replaced(capped, sizes), {true, false}, 2});
    }
}

TEST_F(AgainstCpu, Rope) {
  const char *const rope = R"(
    func.func @f(%x: tensor<2x5x$Hx$Dx$T>, %a: tensor<5x$Fx2xf32>) {
      %y = rota.rope $I%x, %a : tensor<2x5x$Hx$Dx$T>, tensor<5x$Fx2xf32>
      return
    })";
  for (std::string t : {"bf16", "f32"})
    for (auto [h, d] : {std::pair(3, 6), {4, 16}, {6, 64}, {1, 128}})
      for (std::string inverse : {"", "inverse "})
        check({replaced(rope, {{"$H", number(h)},
                               {"$D", number(d)},
                               {"$F", number(d / 2)},
                               {"$I", inverse},
                               {"$T", t}}),
               {},
               2,
               0,
               1,
               {{0, 0}}});
}

TEST_F(AgainstCpu, Split) {
  const char *const split = R"(
    func.func @f(%x: tensor<3x5x$Cx$T>) {
      %a, %b = rota.split %x dim = 1 : (tensor<3x5x$Cx$T>) -> (tensor<3x2x$Cx$T>, tensor<3x3x$Cx$T>)
      return
    })";
  const char *const concat = R"(
    func.func @f(%x: tensor<3x2x$Cx$T>, %y: tensor<3x3x$Cx$T>) {
      %z = rota.concat %x, %y dim = 1 : (tensor<3x2x$Cx$T>, tensor<3x3x$Cx$T>) -> tensor<3x5x$Cx$T>
      return
    })";
  for (std::string t : {"bf16", "f32"})
    for (int64_t c : {1, 6, 64, 1000})
      for (const char *text : {split, concat})
        check({replaced(text, {{"$C", number(c)}, {"$T", t}}), {}, 2, 0, 1});
}

/// Names for an offset, or none.
Names offsetNames(bool isPart) {
  return {{"$ARGUMENT", isPart ? ", %o: tensor<i32>" : ""},
          {"$TYPE", isPart ? ", tensor<i32>" : ""},
          {"$OFFSET", isPart ? " offset %o" : ""}};
}

TEST_F(AgainstCpu, Embedding) {
  const char *const embedding = R"(
    func.func @f(%t: tensor<2x9xi32>, %w: tensor<40x$Cx$E>$ARGUMENT) {
      %y = rota.embedding %t, %w$OFFSET : (tensor<2x9xi32>, tensor<40x$Cx$E>$TYPE) -> tensor<2x9x$Cx$E>
      return
    })";
  for (std::string e : {"bf16", "f32"})
    for (int64_t c : {5, 6, 64, 1000})
      for (bool isPart : {false, true})
        check({replaced(replaced(embedding, offsetNames(isPart)),
                        {{"$C", number(c)}, {"$E", e}}),
               {},
               2,
               -2,
               45,
               {},
               /*tolerance=*/0});
}

/// The sums have the order of the CPU, and so its bits.
TEST_F(AgainstCpu, EmbeddingGrad) {
  const char *const grad = R"(
    func.func @f(%t: tensor<2x$Nxi32>, %d: tensor<2x$Nx$Cx$E>$ARGUMENT) {
      %y = rota.embedding_grad %t, %d$OFFSET : (tensor<2x$Nxi32>, tensor<2x$Nx$Cx$E>$TYPE) -> tensor<$Vx$Cxf32>
      return
    })";
  for (std::string e : {"bf16", "f32"})
    for (auto [v, n, c] : {std::tuple(40, 9, 64),
                           {700, 300, 5},
                           {300, 650, 24},
                           {1, 300, 8},
                           {270, 2150, 8}})
      for (bool isPart : {false, true})
        for (bool adds : {false, true})
          // All four at the smallest size, two at each other one.
          if (n == 9 || isPart == adds)
            check({replaced(replaced(grad, offsetNames(isPart)),
                            {{"$V", number(v)},
                             {"$N", number(n)},
                             {"$C", number(c)},
                             {"$E", e}}),
                   {adds},
                   2,
                   -3,
                   v + 4,
                   {},
                   /*tolerance=*/0,
                   /*leaveOutBarriers=*/n == 9 && !adds && !isPart});
}

} // namespace
