// SPDX-License-Identifier: Apache-2.0
//
// The text forms of a mesh and of logical axis rules.
#ifndef ROTA_PASSES_SHARD_AXISRULES_H
#define ROTA_PASSES_SHARD_AXISRULES_H

#include "ir/rota/sharding/Sharding.h"

namespace mlir::rota {

/// Starts an error at the op that is being worked on.
using EmitErrorFn = llvm::function_ref<InFlightDiagnostic()>;

/// Reads `data=2,stage=4` (ir/rota/sharding/MeshText.h). One size may be -1
/// when `ranks`, the number of ranks, is not 0: it is what the others leave.
FailureOr<MeshAttr> parseMesh(EmitErrorFn emitError, MLIRContext *context,
                              StringRef text, int64_t ranks);

/// The rule of the axes over which explicit mode may gather the length of an
/// activation where an op needs the whole, and cut what is whole.
inline constexpr llvm::StringLiteral gatherLengthRule = "gather/length";
/// The rule of the axes over which explicit mode may move values of functions
/// that have experts, between a division of tokens and one of experts.
inline constexpr llvm::StringLiteral moveExpertsRule = "move/experts";
/// The rules that `explicit` mode asks for, which divide nothing.
inline constexpr llvm::StringLiteral explicitRules[] = {gatherLengthRule,
                                                        moveExpertsRule};

/// An ordered table of `name=axis+axis` in which the first entry of a name
/// counts.
class AxisRules {
public:
  /// The user's rules before the defaults; see `assign-shardings`.
  static FailureOr<AxisRules> parse(EmitErrorFn emitError, MLIRContext *context,
                                    StringRef text);

  /// The axes for a logical axis of this name; none when no rule has it.
  std::optional<ArrayRef<AxisRefAttr>> find(StringRef name) const;

  /// The first rule `prefix` + axis that names one of these logical axes, and
  /// the first dimension that has it. None when no rule does.
  struct Match {
    int64_t dimension;
    ArrayRef<AxisRefAttr> axes;
  };
  std::optional<Match> match(StringRef prefix, ArrayRef<StringRef> axes) const;

  /// The names of the user's rules, and those of the defaults.
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
