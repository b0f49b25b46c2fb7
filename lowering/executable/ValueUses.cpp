// SPDX-License-Identifier: Apache-2.0
#include "lowering/executable/ValueUses.h"

using namespace mlir;
using namespace mlir::rota;

namespace rota::lowering {

/// The bytes are kept as long as those of the other value.
void ValueUses::Uses::keepWith(const Uses &other) {
  lastRead = std::max(lastRead, other.lastRead);
  for (auto transfer : other.transfers)
    if (!llvm::is_contained(transfers, transfer))
      transfers.push_back(transfer);
}

/// Uses of a value that are uses of this one, too.
void ValueUses::Uses::add(const Uses &other) {
  if (other.first >= 0)
    first = first < 0 ? other.first : std::min(first, other.first);
  keepWith(other);
}

/// A use of a part is a use of the whole that is split, and a use of the whole
/// is a use of each part that is put together.
void ValueUses::addUsesOfParts(Operation *op) {
  for (Value operand : op->getOperands())
    for (Value result : op->getResults())
      usesOf(operand).add(Uses(lookup(result)));
}

ValueUses::ValueUses(ArrayRef<Operation *> ops, const PartPlaces &places)
    : ops(ops) {
  for (auto [number, op] : llvm::enumerate(ops)) {
    if (isa<ViewOpInterface>(op))
      continue;
    for (Value operand : op->getOperands()) {
      Uses &uses = usesOf(operand);
      ++uses.readers;
      if (places.isPlaced(op))
        continue;
      if (uses.first < 0)
        uses.first = int(number);
      uses.lastRead = int(number);
    }
  }
  auto addParts = [&] {
    for (Operation *op : llvm::reverse(ops))
      if (places.isPlaced(op))
        addUsesOfParts(op);
  };
  addParts(); // the first uses, which end transfers
  for (Operation *op : ops)
    if (isa<CollectiveOpInterface>(op))
      for (Value operand : op->getOperands())
        usesOf(operand).transfers.push_back({op, firstUse(op->getResult(0))});
  addParts(); // the transfers
  for (Operation *op : ops)
    if (auto concat = dyn_cast<ConcatOp>(op); concat && places.isPlaced(op))
      for (Value part : concat.getParts())
        usesOf(concat.getResult()).keepWith(Uses(lookup(part)));
}

} // namespace rota::lowering
