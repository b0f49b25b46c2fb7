// SPDX-License-Identifier: Apache-2.0
//
// The shapes of ops on tokens, logits and positions, for emitters of every
// device.
#ifndef ROTA_LOWERING_KERNELS_TOKENSHAPES_H
#define ROTA_LOWERING_KERNELS_TOKENSHAPES_H

#include "lowering/kernels/KernelPlan.h"
#include "lowering/kernels/ValueBuilder.h"

#include <optional>

namespace rota::lowering {

/// The logits of one op: [rows, columns], with `stride` elements from row to
/// row.
struct Logits {
  explicit Logits(mlir::Value value,
                  std::optional<uint64_t> vocabulary = std::nullopt);

  /// A text that determines the code of a row.
  std::string key() const;
  /// The first column of padding in a part that begins at entry `offset`
  /// (i64 or i32); null: none.
  mlir::Value end(ValueBuilder &k, mlir::Value offset) const;

  int64_t rows, columns, stride;
  mlir::Type element;
  std::optional<int64_t> entries; // size of a vocabulary with padded parts
};

/// The plan of a loss: `rowLoss` computes each row's logsumexp and loss, then
/// `lossSum` adds the losses. The op's operands are logits or parts, and
/// targets; its results are sum, weight and logsumexp. Fails where one does.
llvm::FailureOr<KernelPlan> planLosses(llvm::FailureOr<std::string> rowLoss,
                                       llvm::FailureOr<std::string> lossSum,
                                       int64_t rows);

/// The optional operands of the derivative of a cross-entropy. Its kernel's
/// arguments are cotangent, logits, targets, logsumexp, result, then the offset
/// of a part of the vocabulary and the cotangent of each row's logsumexp.
struct CrossEntropyGradient {
  explicit CrossEntropyGradient(mlir::rota::CrossEntropyGradOp op);

  unsigned arguments() const { return 5 + isPart + hasRows; }
  static constexpr unsigned offset = 5; // an argument, where it is a part
  unsigned rows() const { return 5 + isPart; } // likewise, with rows
  /// A text that determines the code, beside that of the logits.
  std::string key() const;
  /// One call of the kernel `symbol`, which fails where that does.
  llvm::FailureOr<KernelPlan> plan(llvm::FailureOr<std::string> symbol,
                                   int64_t rows) const;

  bool isPart, hasRows;
};

/// The table of an embedding, or its gradient, and the tokens that read it.
struct EmbeddingTable {
  EmbeddingTable(mlir::Value tokens, mlir::Value table, mlir::Value offset);

  /// The argument after the tokens and the values, where there is an offset.
  void addOffset(KernelCall &call) const;

  int64_t count, vocabulary, columns; // count: of tokens
  bool isPart; // whether the table is a part of the vocabulary
};

/// Values [batch, sequence, heads, size] that are rotated in pairs.
struct RopeShape {
  explicit RopeShape(mlir::rota::RopeOp op);

  /// A text that determines the code of a position.
  std::string key() const;

  int64_t batch, sequence, heads, size;
  mlir::Type element;
  bool inverse, hasPositions;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_TOKENSHAPES_H
