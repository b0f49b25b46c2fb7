// SPDX-License-Identifier: Apache-2.0
//
// Functions of composite ops.
#include "test/passes/equivalence/CompositeOps.h"

#include "test/interpreter/GradientCheck.h"

using namespace rota::interpreter;

static const CompositeOp ops[] = {{"rms_norm", R"(
      func.func @f(%x: tensor<$Rx$Cx$T>, %gain: tensor<$Cx$T>) -> tensor<$Rx$Cx$T> {
        %y = rota.rms_norm %x, %gain epsilon = 0.015625 : tensor<$Rx$Cx$T>, tensor<$Cx$T>
        return %y : tensor<$Rx$Cx$T>
      })"},
                                  {"rms_norm_grad", R"(
      func.func @f(%dy: tensor<$Rx$Cx$T>, %x: tensor<$Rx$Cx$T>, %gain: tensor<$Cx$T>) -> (tensor<$Rx$Cx$T>, tensor<$Cx$W>) {
        %dx, %dgain = rota.rms_norm_grad %dy, %x, %gain epsilon = 0.015625 : (tensor<$Rx$Cx$T>, tensor<$Rx$Cx$T>, tensor<$Cx$T>) -> (tensor<$Rx$Cx$T>, tensor<$Cx$W>)
        return %dx, %dgain : tensor<$Rx$Cx$T>, tensor<$Cx$W>
      })"},
                                  {"gated_silu", R"(
      func.func @f(%gate: tensor<$Rx$Cx$T>, %up: tensor<$Rx$Cx$T>) -> tensor<$Rx$Cx$T> {
        %y = rota.activation silu %gate, %up : tensor<$Rx$Cx$T>
        return %y : tensor<$Rx$Cx$T>
      })"},
                                  {"gated_silu_grad", R"(
      func.func @f(%dy: tensor<$Rx$Cx$T>, %gate: tensor<$Rx$Cx$T>, %up: tensor<$Rx$Cx$T>) -> (tensor<$Rx$Cx$T>, tensor<$Rx$Cx$T>) {
        %dgate, %dup = rota.activation_grad silu %dy, %gate, %up : (tensor<$Rx$Cx$T>, tensor<$Rx$Cx$T>, tensor<$Rx$Cx$T>) -> (tensor<$Rx$Cx$T>, tensor<$Rx$Cx$T>)
        return %dgate, %dup : tensor<$Rx$Cx$T>, tensor<$Rx$Cx$T>
      })"},
                                  {"row_dot", R"(
      func.func @f(%dy: tensor<1x$Rx$Cx$T>, %rows: tensor<1x$Rx$Cx$T>) -> tensor<1x$Rx1x$W> {
        %dw = rota.row_dot %dy, %rows : tensor<1x$Rx$Cx$T> -> tensor<1x$Rx1x$W>
        return %dw : tensor<1x$Rx1x$W>
      })"},
                                  {"centered_norm", R"(
      func.func @f(%x: tensor<$Rx$Cx$T>, %gain: tensor<$Cx$T>) -> tensor<$Rx$Cx$T> {
        %y = rota.rms_norm centered %x, %gain epsilon = 0.015625 : tensor<$Rx$Cx$T>, tensor<$Cx$T>
        return %y : tensor<$Rx$Cx$T>
      })"},
                                  {"centered_norm_grad", R"(
      func.func @f(%dy: tensor<$Rx$Cx$T>, %x: tensor<$Rx$Cx$T>, %gain: tensor<$Cx$T>) -> (tensor<$Rx$Cx$T>, tensor<$Cx$W>) {
        %dx, %dgain = rota.rms_norm_grad centered %dy, %x, %gain epsilon = 0.015625 : (tensor<$Rx$Cx$T>, tensor<$Rx$Cx$T>, tensor<$Cx$T>) -> (tensor<$Rx$Cx$T>, tensor<$Cx$W>)
        return %dx, %dgain : tensor<$Rx$Cx$T>, tensor<$Cx$W>
      })"},
                                  {"gelu", R"(
      func.func @f(%x: tensor<$Rx$Cx$T>, %dy: tensor<$Rx$Cx$T>) -> (tensor<$Rx$Cx$T>, tensor<$Rx$Cx$T>) {
        %y = rota.activation gelu %x : tensor<$Rx$Cx$T>
        %dx = rota.activation_grad gelu %dy, %x : (tensor<$Rx$Cx$T>, tensor<$Rx$Cx$T>) -> tensor<$Rx$Cx$T>
        return %y, %dx : tensor<$Rx$Cx$T>, tensor<$Rx$Cx$T>
      })"},
                                  {"gated_gelu_tanh", R"(
      func.func @f(%gate: tensor<$Rx$Cx$T>, %up: tensor<$Rx$Cx$T>, %dy: tensor<$Rx$Cx$T>) -> (tensor<$Rx$Cx$T>, tensor<$Rx$Cx$T>, tensor<$Rx$Cx$T>) {
        %y = rota.activation gelu_tanh %gate, %up : tensor<$Rx$Cx$T>
        %dgate, %dup = rota.activation_grad gelu_tanh %dy, %gate, %up : (tensor<$Rx$Cx$T>, tensor<$Rx$Cx$T>, tensor<$Rx$Cx$T>) -> (tensor<$Rx$Cx$T>, tensor<$Rx$Cx$T>)
        return %y, %dgate, %dup : tensor<$Rx$Cx$T>, tensor<$Rx$Cx$T>, tensor<$Rx$Cx$T>
      })"},
                                  {"norm_of_a_sum", R"(
      func.func @f(%x: tensor<$Rx$Cx$T>, %h: tensor<$Rx$Cx$T>, %gain: tensor<$Cx$T>) -> (tensor<$Rx$Cx$T>, tensor<$Rx$Cx$T>) {
        %r = arith.addf %x, %h : tensor<$Rx$Cx$T>
        %y = rota.rms_norm %r, %gain epsilon = 0.015625 : tensor<$Rx$Cx$T>, tensor<$Cx$T>
        return %r, %y : tensor<$Rx$Cx$T>, tensor<$Rx$Cx$T>
      })"},
                                  {"adamw", R"(
      func.func @f(%p: tensor<$Rx$Cx$W>, %g: tensor<$Rx$Cx$W>, %m: tensor<$Rx$Cx$W>, %v: tensor<$Rx$Cx$W>, %lr: tensor<$W>, %r1: tensor<$W>, %r2: tensor<$W>, %eps: tensor<$W>, %wd: tensor<$W>, %c1: tensor<$W>, %c2: tensor<$W>, %s: tensor<$W>) -> (tensor<$Rx$Cx$W>, tensor<$Rx$Cx$W>, tensor<$Rx$Cx$W>, tensor<$Rx$Cx$W>) {
        %lr_ = rota.broadcast %lr dims [] : tensor<$W> -> tensor<$Rx$Cx$W>
        %r1_ = rota.broadcast %r1 dims [] : tensor<$W> -> tensor<$Rx$Cx$W>
        %r2_ = rota.broadcast %r2 dims [] : tensor<$W> -> tensor<$Rx$Cx$W>
        %eps_ = rota.broadcast %eps dims [] : tensor<$W> -> tensor<$Rx$Cx$W>
        %wd_ = rota.broadcast %wd dims [] : tensor<$W> -> tensor<$Rx$Cx$W>
        %c1_ = rota.broadcast %c1 dims [] : tensor<$W> -> tensor<$Rx$Cx$W>
        %c2_ = rota.broadcast %c2 dims [] : tensor<$W> -> tensor<$Rx$Cx$W>
        %s_ = rota.broadcast %s dims [] : tensor<$W> -> tensor<$Rx$Cx$W>
        %gs = arith.mulf %s_, %g : tensor<$Rx$Cx$W>
        %m0 = arith.mulf %r1_, %m : tensor<$Rx$Cx$W>
        %m1 = arith.subf %m, %m0 : tensor<$Rx$Cx$W>
        %m2 = arith.mulf %r1_, %gs : tensor<$Rx$Cx$W>
        %m3 = arith.addf %m1, %m2 : tensor<$Rx$Cx$W>
        %sq = arith.mulf %gs, %gs : tensor<$Rx$Cx$W>
        %v0 = arith.mulf %r2_, %v : tensor<$Rx$Cx$W>
        %v1 = arith.subf %v, %v0 : tensor<$Rx$Cx$W>
        %v2 = arith.mulf %r2_, %sq : tensor<$Rx$Cx$W>
        %v3 = arith.addf %v1, %v2 : tensor<$Rx$Cx$W>
        %vc = arith.divf %v3, %c2_ : tensor<$Rx$Cx$W>
        %root = math.sqrt %vc : tensor<$Rx$Cx$W>
        %den = arith.addf %root, %eps_ : tensor<$Rx$Cx$W>
        %mc = arith.divf %m3, %c1_ : tensor<$Rx$Cx$W>
        %step = arith.divf %mc, %den : tensor<$Rx$Cx$W>
        %dec = arith.mulf %wd_, %p : tensor<$Rx$Cx$W>
        %full = arith.addf %step, %dec : tensor<$Rx$Cx$W>
        %move = arith.mulf %lr_, %full : tensor<$Rx$Cx$W>
        %q = arith.subf %p, %move : tensor<$Rx$Cx$W>
        %zero = arith.constant dense<0.0> : tensor<$Rx$Cx$W>
        return %q, %m3, %v3, %zero : tensor<$Rx$Cx$W>, tensor<$Rx$Cx$W>, tensor<$Rx$Cx$W>, tensor<$Rx$Cx$W>
      })"},
                                  {"square_of_a_gradient", R"(
      func.func @f(%g: tensor<$Rx$Cx$W>) -> tensor<$Rx$W> {
        %square = arith.mulf %g, %g : tensor<$Rx$Cx$W>
        %sum = rota.reduce sum %square dims [1] : tensor<$Rx$Cx$W> -> tensor<$Rx$W>
        return %sum : tensor<$Rx$W>
      })"}};

llvm::ArrayRef<CompositeOp> rota::interpreter::compositeOps() { return ops; }

std::string rota::interpreter::compositeText(const CompositeOp &op,
                                             int64_t rows, int64_t columns,
                                             llvm::StringRef type) {
  std::string result;
  llvm::StringRef text = op.text;
  while (!text.empty()) {
    auto [before, rest] = text.split('$');
    result += before;
    if (rest.empty())
      break;
    switch (rest.front()) {
    case 'R':
      result += std::to_string(rows);
      break;
    case 'C':
      result += std::to_string(columns);
      break;
    case 'T':
      result += type;
      break;
    default:
      result += type == "bf16" ? "f32" : type;
    }
    text = rest.drop_front();
  }
  return result;
}

llvm::SmallVector<Tensor>
rota::interpreter::compositeArguments(mlir::func::FuncOp function) {
  Random random(17);
  llvm::SmallVector<Tensor> arguments;
  for (mlir::Type type : function.getArgumentTypes()) {
    auto tensor = llvm::cast<mlir::RankedTensorType>(type);
    arguments.push_back(random.uniform(tensor.getShape(), 0.1, 0.9));
    if (tensor.getElementType().isBF16())
      for (double &element : arguments.back().elements)
        element = roundToBF16(element);
  }
  return arguments;
}
