// SPDX-License-Identifier: Apache-2.0
//
// What a user says of the mesh and of where tensors go, as text: sizes of axes
// and logical axis rules.
#ifndef ROTA_PASSES_SHARD_AXISRULES_H
#define ROTA_PASSES_SHARD_AXISRULES_H

#include "ir/rota/Sharding.h"

namespace mlir::rota {

/// Reports an error at the place that is being worked on.
using EmitErrorFn = llvm::function_ref<InFlightDiagnostic()>;

/// Reads `data=2,stage=4` (ir/rota/MeshText.h). One size may be -1 when
/// `ranks`, the number of ranks, is not 0: it is what the others leave.
FailureOr<MeshAttr> parseMesh(EmitErrorFn emitError, MLIRContext *context,
                              StringRef text, int64_t ranks);

/// An ordered table of `name=axis+axis` in which the first entry of a name
/// counts.
class AxisRules {
public:
  /// The user's rules before the defaults; see `assign-shardings`.
  static FailureOr<AxisRules> parse(EmitErrorFn emitError, MLIRContext *context,
                                    StringRef text);

  /// The axes for a logical axis of this name; none when no rule has it.
  std::optional<ArrayRef<AxisRefAttr>> find(StringRef name) const;

  /// Where a tensor with these logical axes goes: of the rules `prefix` + axis,
  /// in order, the first that speaks of one of the dimensions, and the first
  /// such dimension. None when no rule does.
  struct Match {
    int64_t dimension;
    ArrayRef<AxisRefAttr> axes;
  };
  std::optional<Match> match(StringRef prefix, ArrayRef<StringRef> axes) const;

  /// The names of the user's rules, and those that the defaults speak of.
  SmallVector<StringRef> userNames() const { return names(0, users); }
  SmallVector<StringRef> defaultNames() const {
    return names(users, rules.size());
  }

private:
  struct Rule {
    std::string name;
    SmallVector<AxisRefAttr, 2> axes;
  };
  LogicalResult append(EmitErrorFn emitError, MLIRContext *context,
                       StringRef text);
  SmallVector<StringRef> names(size_t begin, size_t end) const;
  SmallVector<Rule> rules;
  size_t users = 0; // rules; the defaults follow them
};

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_AXISRULES_H
