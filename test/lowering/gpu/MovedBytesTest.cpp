// SPDX-License-Identifier: Apache-2.0
//
// The bytes of global memory that kernels of training steps access, counted by
// the emulator, against those that a plan counts for them. A plan has each byte
// once; a gain that all rows share is read again for each row, from a cache.
#include "test/lowering/gpu/AgainstCpu.h"

using namespace ::rota::test;

namespace {

/// The derivative of a normalization that subtracts the mean, with the biases
/// around it: $SUMS sums of columns of $COTANGENTS cotangents.
std::string normGrad(int64_t rows, int64_t columns, int64_t cotangents,
                     bool hasBiases) {
  const char *const text = R"(
    #row = affine_map<(d0) -> (d0)>
    #all = affine_map<(d0) -> (0)>
    rota.kernel @norm_grad operands [#row, #row, #all$MAPS] results [#rota.result<row>, #rota.result<sum>, #rota.result<sum>$KINDS] {
    ^bb0(%x: tensor<$Cxbf16>, %r: tensor<$Cxbf16>, %g: tensor<$Cxf32>$ARGUMENTS):
      $ADD
      %d = arith.extf $D : tensor<$Cxbf16> to tensor<$Cxf32>
      %wx = arith.extf %x : tensor<$Cxbf16> to tensor<$Cxf32>
      %wr = arith.extf %r : tensor<$Cxbf16> to tensor<$Cxf32>
      %n = arith.constant dense<$C.0> : tensor<f32>
      %one = arith.constant dense<1.0> : tensor<f32>
      %sx = rota.reduce sum %wx dims [0] : tensor<$Cxf32> -> tensor<f32>
      %mean = arith.divf %sx, %n : tensor<f32>
      %bmean = rota.broadcast %mean dims [] : tensor<f32> -> tensor<$Cxf32>
      %c = arith.subf %wx, %bmean : tensor<$Cxf32>
      %cc = arith.mulf %c, %c : tensor<$Cxf32>
      %scc = rota.reduce sum %cc dims [0] : tensor<$Cxf32> -> tensor<f32>
      %variance = arith.divf %scc, %n : tensor<f32>
      %root = math.sqrt %variance : tensor<f32>
      %s = arith.divf %one, %root : tensor<f32>
      %bs = rota.broadcast %s dims [] : tensor<f32> -> tensor<$Cxf32>
      %h = arith.mulf %c, %bs : tensor<$Cxf32>
      %dh = arith.mulf %d, %g : tensor<$Cxf32>
      %p = arith.mulf %dh, %h : tensor<$Cxf32>
      %sp = rota.reduce sum %p dims [0] : tensor<$Cxf32> -> tensor<f32>
      %mp = arith.divf %sp, %n : tensor<f32>
      %bp = rota.broadcast %mp dims [] : tensor<f32> -> tensor<$Cxf32>
      %hp = arith.mulf %h, %bp : tensor<$Cxf32>
      %v = arith.subf %dh, %hp : tensor<$Cxf32>
      %dx = arith.mulf %v, %bs : tensor<$Cxf32>
      %y = arith.truncf %dx : tensor<$Cxf32> to tensor<$Cxbf16>
      %o = arith.addf %y, %r : tensor<$Cxbf16>
      %wo = arith.extf %o : tensor<$Cxbf16> to tensor<$Cxf32>
      %dg = arith.mulf %d, %h : tensor<$Cxf32>
      rota.yield %o, %d, %dg$SUMS : tensor<$Cxbf16>, tensor<$Cxf32>, tensor<$Cxf32>$TYPES
    }
    func.func @f(%x: tensor<$Rx$Cxbf16>, %r: tensor<$Rx$Cxbf16>, %g: tensor<$Cxf32>$INPUTS) {
      %y:$N = rota.launch @norm_grad rows = $R (%x, %r, %g$NAMES) : (tensor<$Rx$Cxbf16>, tensor<$Rx$Cxbf16>, tensor<$Cxf32>$ROWS) -> (tensor<$Rx$Cxbf16>, tensor<$Cxf32>, tensor<$Cxf32>$TYPES)
      return
    })";
  std::string maps, arguments, add, last, inputs, names, rowTypes;
  for (int64_t i = 0; i < cotangents; ++i) {
    std::string name = "%d" + number(i);
    maps += ", #row";
    arguments += ", " + name + ": tensor<$Cxbf16>";
    inputs += ", " + name + ": tensor<$Rx$Cxbf16>";
    names += ", " + name;
    rowTypes += ", tensor<$Rx$Cxbf16>";
    if (i > 0)
      add += "%a" + number(i) + " = arith.addf " + last + ", " + name +
             " : tensor<$Cxbf16>\n";
    last = i > 0 ? "%a" + number(i) : name;
  }
  return replaced(
      text,
      {{"$MAPS", maps},
       {"$ARGUMENTS", arguments},
       {"$ADD", add},
       {"$D", last},
       {"$INPUTS", inputs},
       {"$NAMES", names},
       {"$ROWS", rowTypes},
       {"$KINDS", hasBiases ? ", #rota.result<sum>, #rota.result<sum>" : ""},
       {"$SUMS", hasBiases ? ", %wr, %wo" : ""},
       {"$TYPES", hasBiases ? ", tensor<$Cxf32>, tensor<$Cxf32>" : ""},
       {"$N", hasBiases ? "5" : "3"},
       {"$R", number(rows)},
       {"$C", number(columns)}});
}

/// A derivative of an activation and of the bias before it.
const char *const kActivationGrad = R"(
  #row = affine_map<(d0) -> (d0)>
  rota.kernel @activation_grad operands [#row, #row] results [#rota.result<row>, #rota.result<sum>] {
  ^bb0(%a: tensor<$Cxbf16>, %d: tensor<$Cxbf16>):
    %wa = arith.extf %a : tensor<$Cxbf16> to tensor<$Cxf32>
    %wd = arith.extf %d : tensor<$Cxbf16> to tensor<$Cxf32>
    %t = math.tanh %wa : tensor<$Cxf32>
    %y = arith.mulf %t, %wd : tensor<$Cxf32>
    %n = arith.truncf %y : tensor<$Cxf32> to tensor<$Cxbf16>
    rota.yield %n, %y : tensor<$Cxbf16>, tensor<$Cxf32>
  }
  func.func @f(%a: tensor<$Rx$Cxbf16>, %d: tensor<$Rx$Cxbf16>) {
    %y:2 = rota.launch @activation_grad rows = $R (%a, %d) : (tensor<$Rx$Cxbf16>, tensor<$Rx$Cxbf16>) -> (tensor<$Rx$Cxbf16>, tensor<$Cxf32>)
    return
  })";

const char *const kBiasGrad = R"(
  rota.kernel @bias_grad operands [affine_map<(d0) -> (d0)>] results [#rota.result<sum>] {
  ^bb0(%d: tensor<$Cxbf16>):
    %w = arith.extf %d : tensor<$Cxbf16> to tensor<$Cxf32>
    rota.yield %w : tensor<$Cxf32>
  }
  func.func @f(%d: tensor<$Rx$Cxbf16>) {
    %y = rota.launch @bias_grad rows = $R (%d) : (tensor<$Rx$Cxbf16>) -> tensor<$Cxf32>
    return
  })";

class MovedBytes : public AgainstCpu {
protected:
  void check(std::string source, double most) {
    Trial trial;
    trial.source = std::move(source);
    trial.high = 1;
    trial.tolerance = 5e-3; // sums of rows that are rounded to bf16 twice
    trial.mostMoved = most;
    AgainstCpu::check(trial);
  }
};

/// The derivatives of the normalizations of a layer of gpt2: of the second one
/// with the biases in front of it and behind, of the first one of the sum of
/// three cotangents.
TEST_F(MovedBytes, NormalizationGrad) {
  for (auto [rows, columns] : {std::pair(1024, 768), {512, 1600}}) {
    check(normGrad(rows, columns, 1, /*hasBiases=*/true), 1.7);
    check(normGrad(rows, columns, 3, /*hasBiases=*/false), 1.7);
  }
  // Rows of several chunks of a thread are read for each of three passes.
  check(normGrad(512, 4096, 1, /*hasBiases=*/true), 4);
}

TEST_F(MovedBytes, SumsOfColumns) {
  for (auto [rows, columns] : {std::pair(1024, 768),
                               {1024, 64},
                               {1000, 3072},
                               {512, 6400},
                               {256, 16384}}) {
    Names names = {{"$R", number(rows)}, {"$C", number(columns)}};
    check(replaced(kActivationGrad, names), 1.3);
    check(replaced(kBiasGrad, names), 1.3);
  }
  // Positions' gradients: few rows, as wide as a sequence.
  check(replaced(kBiasGrad, {{"$R", "64"}, {"$C", "98304"}}), 1.3);
}

} // namespace
