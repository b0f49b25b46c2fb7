// SPDX-License-Identifier: Apache-2.0
//
// The form of rota.attention: scores and mask. Builders give it, and verifier,
// costs and kernels ask the mask which keys a query sees.
#ifndef ROTA_IR_ROTA_ATTENTION_ATTENTIONFORM_H
#define ROTA_IR_ROTA_ATTENTION_ATTENTIONFORM_H

#include "mlir/IR/Value.h"

#include <algorithm>
#include <optional>

namespace mlir::rota {

/// The choices that builders of rota.attention make beyond query, key and
/// value. The fields are the op's attributes and its optional operands.
struct AttentionForm {
  double scale = 1.0;
  std::optional<int64_t> window = std::nullopt;
  std::optional<double> softCap = std::nullopt;
  bool bidirectional = false;
  Value sinks = {};     // [heads], not bf16
  Value documents = {}; // [batch, sequence] i32
};

/// The query at position s of a block sees the keys at positions s + offset -
/// before to s + offset + after of a block of the same length, as far as these
/// are in it. `offset` is the distance from the keys' block to the queries'; 0:
/// they are one.
struct AttentionMask {
  int64_t sequence, before, after; // before and after are below sequence+offset
  int64_t offset = 0;

  /// A window counts the query's own position: its first key is at s - W + 1.
  /// The keys are `behind` blocks before the queries.
  static AttentionMask of(int64_t sequence, std::optional<int64_t> window,
                          bool bidirectional, int64_t behind = 0) {
    int64_t offset = behind * sequence, span = sequence + offset;
    int64_t reach = std::min(window.value_or(span), span) - 1;
    return {sequence, reach, bidirectional ? reach : 0, offset};
  }

  /// The relation with queries and keys exchanged: the queries that see a
  /// key.
  AttentionMask transposed() const {
    return {sequence, after, before, -offset};
  }

  /// Whether there may be keys before, or after, those that a query sees. Keys
  /// after a sequence of one position count: blocks are padded with them.
  bool limitsBefore() const { return before < sequence - 1 + offset; }
  bool limitsAfter() const {
    return offset + after == 0 || offset + after < sequence - 1;
  }

  /// Pairs of a query and a key that it sees: the diagonals of sequence - |d|
  /// pairs at each distance d from the first that is seen to the last.
  double pairs() const {
    double first = std::max(offset - before, 1 - sequence);
    double last = std::min(offset + after, sequence - 1);
    auto side = [&](double count) {
      return count * double(sequence) - count * (count + 1) / 2;
    };
    if (first > last)
      return 0;
    if (first > 0)
      return side(last) - side(first - 1);
    return double(sequence) + side(-first) + side(last);
  }
};

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_ATTENTION_ATTENTIONFORM_H
