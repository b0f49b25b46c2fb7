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

  llvm::DenseMap<mlir::TypeID, Emitter> emitters;
};

/// The emitters of explicit vector code.
KernelEmitters vectorEmitters();

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_KERNELEMITTERS_H
