// SPDX-License-Identifier: Apache-2.0
//
// Chooses the distance between rows of logits.
#include "ir/rota/model/Roles.h"
#include "lowering/gpu/Passes.h"
#include "lowering/gpu/rows/RowGeometry.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

#include <array>

using namespace mlir;
using namespace mlir::rota;

namespace rota::lowering {
#define GEN_PASS_DEF_PADROWS
#include "lowering/gpu/GpuPasses.h.inc"

namespace {

/// Rows are dense where they have a multiple of so many bytes, what an access
/// of a kernel or of a product has at most.
constexpr int64_t kRowBytes = 16;
/// Otherwise rows begin at multiples of so many elements: 128 bytes of bf16.
constexpr int64_t kRowElements = 64;

RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

int64_t columnsOf(Value value) { return tensorOf(value).getShape().back(); }

/// Whether the last of `letters` is a dimension of its own in the product:
/// neighbours along two dimensions that count as one have one distance.
bool isAlone(EinsumOp einsum, StringRef letters) {
  auto [lhs, rhs, result] = einsum.getLetters();
  auto where = [&](char letter) {
    return std::array{lhs.contains(letter), rhs.contains(letter),
                      result.contains(letter)};
  };
  return llvm::none_of(letters.drop_back(), [&](char other) {
    return where(other) == where(letters.back());
  });
}

/// The logits that the op has the cross-entropy of, or its derivative; null
/// otherwise.
Value logitsOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<CrossEntropyOp, CrossEntropyShardOp, CrossEntropyGradOp>(
          [](auto entropy) { return entropy.getLogits(); })
      .Default(Value());
}

/// Gives the function the types of its body's arguments and results.
void updateType(func::FuncOp function) {
  Block &body = function.getBody().front();
  function.setType(FunctionType::get(function.getContext(),
                                     body.getArgumentTypes(),
                                     body.getTerminator()->getOperandTypes()));
}

/// Values that have one row stride: logits, and what ops that need it read or
/// write with them.
class RowGroup {
public:
  /// `residuals` are the edges of those of the module.
  RowGroup(Value logits, ArrayRef<RoleEdge> residuals)
      : columns(columnsOf(logits)), residuals(residuals) {
    values.insert(logits);
  }

  /// Adds all other values; false where an op on one of them needs dense rows.
  bool complete() {
    for (size_t i = 0; i < values.size(); ++i) { // The set grows.
      Value value = values[i];
      if (!addMaker(value) ||
          !llvm::all_of(value.getUses(),
                        [&](OpOperand &use) { return addUser(use); }))
        return false;
    }
    return true;
  }

  bool contains(Value value) const { return values.contains(value); }
  int64_t size() const { return int64_t(values.size()); }
  bool isAligned() const {
    return llvm::all_of(values, [&](Value value) {
      return columns * tensorOf(value).getElementTypeBitWidth() %
                 (8 * kRowBytes) ==
             0;
    });
  }
  void pad() {
    for (Value value : values) {
      RankedTensorType type = tensorOf(value);
      auto stride = RowStrideAttr::get(
          type.getContext(), int64_t(llvm::alignTo(columns, kRowElements)));
      value.setType(RankedTensorType::get(type.getShape(),
                                          type.getElementType(), stride));
    }
  }

private:
  bool add(Value value) {
    RankedTensorType type = tensorOf(value);
    if (type.getRank() == 0 || columnsOf(value) != columns)
      return false;
    values.insert(value);
    return true;
  }
  bool addAll(ValueRange added) {
    return llvm::all_of(added, [&](Value value) { return add(value); });
  }

  bool addMaker(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return addResiduals([&](const RoleEdge &edge) {
        return edge.user.value() == argument ? edge.source.value() : Value();
      });
    Operation *maker = value.getDefiningOp();
    if (auto einsum = dyn_cast_or_null<EinsumOp>(maker))
      return isAlone(einsum, einsum.getLetters().result);
    return addOp(maker);
  }
  bool addUser(OpOperand &use) {
    Operation *user = use.getOwner();
    if (auto einsum = dyn_cast<EinsumOp>(user)) {
      auto [lhs, rhs, result] = einsum.getLetters();
      return isAlone(einsum, use.getOperandNumber() == 0 ? lhs : rhs);
    }
    if (isa<func::ReturnOp>(user))
      return addResiduals([&](const RoleEdge &edge) {
        bool isSource = edge.source.function == user->getParentOp() &&
                        edge.source.index == use.getOperandNumber();
        return isSource ? edge.user.value() : Value();
      });
    return addOp(user);
  }

  /// Adds the values that `other` gives for an edge; false where there is none.
  bool addResiduals(llvm::function_ref<Value(const RoleEdge &)> other) {
    bool found = false;
    for (const RoleEdge &edge : residuals)
      if (Value value = other(edge)) {
        if (!add(value))
          return false;
        found = true;
      }
    return found;
  }

  /// Adds what `op` reads and writes with the stride of its other values.
  bool addOp(Operation *op) {
    if (auto launch = dyn_cast_or_null<LaunchOp>(op))
      return addLaunch(launch);
    if (auto split = dyn_cast_or_null<SplitOp>(op))
      return addSplit(split);
    if (auto gradient = dyn_cast_or_null<CrossEntropyGradOp>(op))
      return add(gradient.getLogits()) && add(gradient.getResult());
    return isa_and_nonnull<CrossEntropyOp, CrossEntropyShardOp>(op);
  }

  /// A kernel that computes each element on its own.
  bool addLaunch(LaunchOp launch) {
    FailureOr<RowBody> body = RowBody::get(launch);
    if (failed(body) || RowGeometry(*body, int64_t(launch.getRows())).form !=
                            RowGeometry::Form::Chunks)
      return false;
    for (BlockArgument operand : body->getOperands()) {
      AffineMap map = body->getMap(operand.getArgNumber());
      // One row for all is read as it is.
      if (RowBody::rankOf(operand) == 0 || map.isConstant())
        continue;
      if (!map.isIdentity() || !add(launch.getInputs()[operand.getArgNumber()]))
        return false;
    }
    for (auto [value, result] :
         llvm::zip_equal(body->getResults(), launch.getResults()))
      if (RowBody::rankOf(value) == 1 && !add(result))
        return false;
    return true;
  }

  /// Parts that are stretches of the whole's bytes (PartPlaces).
  bool addSplit(SplitOp split) {
    auto shape = tensorOf(split.getInput()).getShape();
    int64_t dim = split.getDim();
    return dim + 1 < int64_t(shape.size()) &&
           llvm::product_of(shape.take_front(dim)) == 1 &&
           add(split.getInput()) && addAll(split.getParts());
  }

  int64_t columns;
  ArrayRef<RoleEdge> residuals;
  llvm::SetVector<Value> values;
};

struct PadRows : impl::PadRowsBase<PadRows> {
  void runOnOperation() override {
    SmallVector<RoleEdge> residuals = residualEdgesIn(getOperation());
    llvm::erase_if(residuals, [](RoleEdge edge) {
      return edge.source.function.isExternal() ||
             edge.user.function.isExternal();
    });
    SmallVector<RowGroup> groups;
    WalkResult walk = getOperation().walk([&](Operation *op) {
      Value logits = logitsOf(op);
      if (!logits || llvm::any_of(groups, [&](const RowGroup &group) {
            return group.contains(logits);
          }))
        return WalkResult::advance();
      groups.emplace_back(logits, residuals);
      return groups.back().complete() ? WalkResult::advance()
                                      : WalkResult::interrupt();
    });
    if (walk.wasInterrupted())
      return;
    for (RowGroup &group : groups) {
      if (group.isAligned())
        continue;
      group.pad();
      padded += group.size();
    }
    for (const RoleEdge &edge : residuals) {
      updateType(edge.source.function);
      updateType(edge.user.function);
    }
  }
};

} // namespace
} // namespace rota::lowering
