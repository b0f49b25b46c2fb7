// SPDX-License-Identifier: Apache-2.0
//
// The form of rota.attention: scores and mask. Builders give it, and verifier,
// costs and kernels ask the mask which keys a query sees.
#ifndef ROTA_IR_ROTA_ATTENTIONFORM_H
#define ROTA_IR_ROTA_ATTENTIONFORM_H

#include "mlir/IR/Value.h"

#include <algorithm>
#include <optional>

namespace mlir::rota {

/// What builders of rota.attention choose beyond query, key and value. The
/// fields are the op's attributes and its optional operand.
struct AttentionForm {
  double scale = 1.0;
  std::optional<int64_t> window = std::nullopt;
  std::optional<double> softCap = std::nullopt;
  bool bidirectional = false;
  Value sinks = {}; // [heads], not bf16
};

/// The query at position s sees the keys at positions s - before to s + after,
/// as far as these are in the sequence.
struct AttentionMask {
  int64_t sequence, before, after; // before and after are below sequence

  /// A window counts the query's own position: its first key is at s - W + 1.
  static AttentionMask of(int64_t sequence, std::optional<int64_t> window,
                          bool bidirectional) {
    int64_t reach = std::min(window.value_or(sequence), sequence) - 1;
    return {sequence, reach, bidirectional ? reach : 0};
  }

  /// The same relation with queries and keys exchanged: the queries that see a
  /// key.
  AttentionMask transposed() const { return {sequence, after, before}; }

  /// Whether there may be keys before, or after, those that a query sees. Keys
  /// after a sequence of one position count: blocks are padded with them.
  bool limitsBefore() const { return before < sequence - 1; }
  bool limitsAfter() const { return after == 0 || after < sequence - 1; }

  /// Pairs of a query and a key that it sees: the diagonal, and the diagonals
  /// of sequence - d pairs at each distance d on either side.
  double pairs() const {
    auto side = [&](double count) {
      return count * double(sequence) - count * (count + 1) / 2;
    };
    return double(sequence) + side(double(before)) + side(double(after));
  }
};

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_ATTENTIONFORM_H
