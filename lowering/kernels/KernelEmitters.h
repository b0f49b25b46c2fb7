// SPDX-License-Identifier: Apache-2.0
//
// The functions that plan the kernels of ops on one device.
#ifndef ROTA_LOWERING_KERNELS_KERNELEMITTERS_H
#define ROTA_LOWERING_KERNELS_KERNELEMITTERS_H

#include "mlir/IR/Operation.h"

namespace rota::lowering {

struct KernelPlan;
class KernelLibrary;

/// An emitter for each op whose `TaskForm` is Kernels, and for
/// `rota.accumulate` where the op that makes its value cannot accumulate: it
/// adds operand 0 to result 0. A file of kernels adds those of its ops.
class KernelEmitters {
public:
  /// planKernels for ops of one type.
  using Emitter = llvm::FailureOr<KernelPlan> (*)(
      mlir::Operation *op, llvm::ArrayRef<bool> accumulate,
      KernelLibrary &library);

  /// Adds `plan(op, accumulate, library)` or, for an op that cannot accumulate,
  /// `plan(op, library)`, where `op` has the type of the op.
  template <auto plan> void add() { addTyped<plan>(plan); }

  /// Plans two ops, one after the other, in kernels that do both. Operands and
  /// results of the plan are those of the first op, then those of the second;
  /// each has a place of its own but where the second may work in place. A plan
  /// without calls: the two have no such kernels.
  using PairEmitter = llvm::FailureOr<KernelPlan> (*)(mlir::Operation *first,
                                                      mlir::Operation *second,
                                                      KernelLibrary &library);
  template <auto plan> void addPair() { addTypedPair<plan>(plan); }

  /// The emitter of a pair; null when there is none.
  PairEmitter lookupPair(mlir::Operation *first,
                         mlir::Operation *second) const {
    return pairs.lookup(
        {first->getName().getTypeID(), second->getName().getTypeID()});
  }

  /// The emitter of `op`; null when there is none.
  Emitter lookup(mlir::Operation *op) const {
    return emitters.lookup(op->getName().getTypeID());
  }

private:
  template <auto plan, typename OpTy>
  void addTyped(llvm::FailureOr<KernelPlan> (*)(OpTy, llvm::ArrayRef<bool>,
                                                KernelLibrary &)) {
    emitters[mlir::TypeID::get<OpTy>()] = [](mlir::Operation *op,
                                             llvm::ArrayRef<bool> accumulate,
                                             KernelLibrary &library) {
      return plan(llvm::cast<OpTy>(op), accumulate, library);
    };
  }
  template <auto plan, typename OpTy>
  void addTyped(llvm::FailureOr<KernelPlan> (*)(OpTy, KernelLibrary &)) {
    emitters[mlir::TypeID::get<OpTy>()] =
        [](mlir::Operation *op, llvm::ArrayRef<bool>, KernelLibrary &library) {
          return plan(llvm::cast<OpTy>(op), library);
        };
  }

  template <auto plan, typename First, typename Second>
  void addTypedPair(llvm::FailureOr<KernelPlan> (*)(First, Second,
                                                    KernelLibrary &)) {
    pairs[{mlir::TypeID::get<First>(), mlir::TypeID::get<Second>()}] =
        [](mlir::Operation *first, mlir::Operation *second,
           KernelLibrary &library) {
          return plan(llvm::cast<First>(first), llvm::cast<Second>(second),
                      library);
        };
  }

  llvm::DenseMap<mlir::TypeID, Emitter> emitters;
  llvm::DenseMap<std::pair<mlir::TypeID, mlir::TypeID>, PairEmitter> pairs;
};

/// The emitters of explicit vector code.
KernelEmitters vectorEmitters();

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_KERNELEMITTERS_H
