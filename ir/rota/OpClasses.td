//===- OpClasses.td - What definitions of ops begin with ---*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The dialect, the types of operands, and the classes of ops. No op stands here,
// so that a file of ops may generate headers of its own.
//===----------------------------------------------------------------------===//
#ifndef ROTA_IR_ROTA_OPCLASSES
#define ROTA_IR_ROTA_OPCLASSES

include "ir/rota/Interfaces.td"
include "ir/rota/Rota.td"
include "ir/rota/sharding/Shardings.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Rota_Op<string mnemonic, list<Trait> traits = []>
    : Op<Rota_Dialect, mnemonic, traits>;

/// An op that answers sharding and cost.
class Rota_ComputeOp<string mnemonic, list<Trait> traits = []>
    : Rota_Op<mnemonic, !listconcat([Pure,
        DeclareOpInterfaceMethods<FactorRuleOpInterface>,
        DeclareOpInterfaceMethods<CostOpInterface>], traits)> {
  let hasVerifier = 1;
}

/// A compute op with a derivative.
class Rota_DifferentiableOp<string mnemonic, list<Trait> traits = []>
    : Rota_ComputeOp<mnemonic, !listconcat([
        DeclareOpInterfaceMethods<DifferentiableOpInterface>], traits)>;

def Rota_FloatTensor : StaticShapeTensorOf<[F32, BF16, F64]>;
def Rota_F32Tensor : StaticShapeTensorOf<[F32, F64]>;
def Rota_IntTensor : StaticShapeTensorOf<[I32]>;
def Rota_Tensor : StaticShapeTensorOf<[F32, BF16, F64, I32]>;

#endif // ROTA_IR_ROTA_OPCLASSES
