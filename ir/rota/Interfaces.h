// SPDX-License-Identifier: Apache-2.0
//
// The interfaces that every op of a model implements, and their plain data.
#ifndef ROTA_IR_ROTA_INTERFACES_H
#define ROTA_IR_ROTA_INTERFACES_H

#include "runtime/program/Collective.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpDefinition.h"

namespace mlir::rota {

class AxisRefAttr;

/// A sharding rule. Every dimension of every operand and result is a list of
/// factors, major to minor, whose sizes multiply to the dimension's. Factors
/// that appear in no result are reduced over.
struct FactorRule {
  using Dimensions = llvm::SmallVector<llvm::SmallVector<int64_t, 1>>;
  llvm::SmallVector<int64_t> sizes;       // per factor
  llvm::SmallVector<Dimensions> operands; // per operand, per dimension
  llvm::SmallVector<Dimensions> results;  // per result, per dimension
  llvm::SmallVector<int64_t> indivisible; // factors that must stay whole
  /// Factors of `indivisible` whose positions are numbers in an integer operand
  /// (entries of a vocabulary): they may be divided where the op is rewritten
  /// to know the first number of its part, see `offset` in VocabularyOps.td.
  llvm::SmallVector<int64_t> numbered;
  /// Factors whose last parts may end in padding: where operands hold zeros
  /// there so do results, and what the op sums up there does not count.
  llvm::SmallVector<int64_t> padded;
  /// Factors over whose parts the op's local form combines by itself, so that
  /// results without them are complete, not sums over ranks.
  llvm::SmallVector<int64_t> combined;
  /// Groups of operands in which the op is linear together, without rounding:
  /// given sums of such operands it gives the sums of its results.
  llvm::SmallVector<llvm::SmallVector<int64_t, 2>, 2> linear;
  /// Factors of operands that no result has.
  llvm::SmallVector<int64_t> reducedFactors() const;
};

/// `batch` matrix products of [m, k] by [k, n].
struct ProductSize {
  double batch = 1, m = 1, n = 1, k = 1;

  double flops() const { return 2 * batch * m * n * k; }
};

/// The unit of a device that bounds an op's work.
enum class WorkForm {
  Rows,             // memory, or arithmetic on vectors
  Product,          // matrix products of `Cost::product`
  Attention,        // the products of attention with its softmax between them
  AttentionGradient // those of its backward
};

/// Cost of one execution. A multiply-add counts two operations.
struct Cost {
  double flops = 0;
  double bytesRead = 0;
  double bytesWritten = 0;
  WorkForm form = WorkForm::Rows;
  ProductSize product = {};
  /// Exponentials, divisions, roots and the like among `flops`.
  double specialFunctions = 0;
  /// Numbers that are rounded to a type narrower than f32.
  double roundings = 0;

  double bytes() const { return bytesRead + bytesWritten; }
  /// Adds work and bytes, whatever their form.
  Cost &operator+=(const Cost &other);
};

/// The kind of a transfer among ranks, which a program has, too.
using CollectiveKind = ::rota::Collective::Kind;

/// The form of an op in a task.
enum class TaskForm {
  View,      // no code: the result is the operand's bytes
  Address,   // no code: the frame has the address of the value
  Kernels,   // calls of kernels of its own
  Product,   // one call of the device's matrix product
  Collective // one call of the ranks' collective
};

} // namespace mlir::rota

#include "ir/rota/RotaInterfaces.h.inc"

#endif // ROTA_IR_ROTA_INTERFACES_H
