//===- Rota.td - The rota dialect --------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The dialect and its attributes. Ops stand in a folder for each
// family; RotaOps.td lists them.
//===----------------------------------------------------------------------===//
#ifndef ROTA_IR_ROTA_ROTA
#define ROTA_IR_ROTA_ROTA

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Rota_Dialect : Dialect {
  let name = "rota";
  let cppNamespace = "::mlir::rota";
  let summary = "tensor functions of one microbatch of a language model";
  let description = [{
    A model is a module with parameters, a stack of layers whose bodies stand
    once per kind, and functions `embed`, `loss` and, in each kind, `forward`.
    Shapes are static; elementwise arithmetic is `arith` and `math` on tensors.
  }];
  let useDefaultAttributePrinterParser = 1;
  // `sharding`: of a function's argument or result, with an entry for each
  // dimension. `factors`: how those of an op's rule are divided, between
  // `propagate-shardings` and `partition`.
  // `offload`: that a residual, a result of `forward` and an argument of what
  // reads it, rests in host memory in between. `remat`: the remat policy of one
  // kind of layer, between `assign-remat` and `differentiate`. `residual_names`:
  // of a layer, for each residual that `forward` returns, the names that the
  // model as built gives it.
  // `loss_term`: of a result of `loss` after sum and weight, in the model as
  // built.
  // `update` and `squares`: functions of a parameter, `state` and `scalar`: of
  // an argument of the former, `options`: of a module, which these scalars name
  // (ir/rota/model/Update.h).
  // `work`: how the mesh divides the operations of a function, from
  // `count-work` on.
  // `machine`: of a module, the machine that costs are for (cost/Machine.h).
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let discardableAttrs = (ins "::mlir::rota::ShardingAttr":$sharding,
                              "::mlir::ArrayAttr":$factors,
                              "::mlir::UnitAttr":$offload,
                              "::mlir::StringAttr":$remat,
                              "::mlir::ArrayAttr":$residual_names,
                              "::mlir::rota::LossTermAttr":$loss_term,
                              "::mlir::FlatSymbolRefAttr":$update,
                              "::mlir::FlatSymbolRefAttr":$squares,
                              "::mlir::TypeAttr":$gradient,
                              "::mlir::rota::StateAttr":$state,
                              "::mlir::rota::ScalarAttr":$scalar,
                              "::mlir::ArrayAttr":$options,
                              "::mlir::rota::WorkAttr":$work,
                              "::mlir::DictionaryAttr":$machine);
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::math::MathDialect"];
}

class Rota_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Rota_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

/// A double that prints as a bare number and reads back to the same bits.
class Rota_Real<string desc> : AttrOrTypeParameter<"::llvm::APFloat", desc> {
  let comparator = "$_lhs.bitwiseIsEqual($_rhs)";
  let parser = "parseRealParameter($_parser)";
  let printer = "printRealParameter($_printer, $_self)";
}

def Rota_NormalAttr : Rota_Attr<"Normal", "normal"> {
  let summary = "normal initializer";
  let description = [{
    Each element is drawn from a normal distribution with this mean and standard
    deviation: `#rota.normal<mean = 0.0, deviation = 0.02>`.
  }];
  let parameters = (ins Rota_Real<"">:$mean, Rota_Real<"">:$deviation);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Rota_UniformAttr : Rota_Attr<"Uniform", "uniform"> {
  let summary = "uniform initializer";
  let description = [{
    Each element is drawn uniformly from [low, high):
    `#rota.uniform<low = -0.1, high = 0.1>`.
  }];
  let parameters = (ins Rota_Real<"">:$low, Rota_Real<"">:$high);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Rota_ConstantAttr : Rota_Attr<"Constant", "constant"> {
  let summary = "constant initializer";
  let description = "Each element has this value: `#rota.constant<value = 1.0>`.";
  let parameters = (ins Rota_Real<"">:$value);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Rota_LossTermAttr : Rota_Attr<"LossTerm", "loss_term"> {
  let summary = "a term of the loss that is a sum over the same weight";
  let description = [{
    Marks a result of `loss` after sum and weight, an f32 scalar. The loss of a
    step has `coefficient` times the total of these results over the total of the
    weights. Reports have this number under `name`, which no other term has and is
    not `main`: `#rota.loss_term<name = "z_loss", coefficient = 1.0e-04>`.
  }];
  let parameters = (ins StringRefParameter<"">:$name, Rota_Real<"">:$coefficient);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Rota_ReduceKind : I32EnumAttr<"ReduceKind", "how a reduction combines", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">]> {
  let cppNamespace = "::mlir::rota";
}

def Rota_ActivationKind : I32EnumAttr<"ActivationKind", "an activation function", [
    I32EnumAttrCase<"Silu", 0, "silu">, I32EnumAttrCase<"Gelu", 1, "gelu">,
    I32EnumAttrCase<"GeluTanh", 2, "gelu_tanh">]> {
  let cppNamespace = "::mlir::rota";
}

def Rota_ResultKind : I32EnumAttr<"ResultKind",
    "how a kernel's result relates to its rows", [
    I32EnumAttrCase<"Row", 0, "row">, I32EnumAttrCase<"Sum", 1, "sum">]> {
  let cppNamespace = "::mlir::rota";
  let genSpecializedAttr = 0;
}
def Rota_ResultKindAttr
    : EnumAttr<Rota_Dialect, Rota_ResultKind, "result"> {
  let assemblyFormat = "`<` $value `>`";
}
def Rota_ResultKindArrayAttr
    : TypedArrayAttrBase<Rota_ResultKindAttr, "array of result kinds">;

#endif // ROTA_IR_ROTA_ROTA
