// SPDX-License-Identifier: Apache-2.0
#include "lowering/executable/PartPlaces.h"
#include "lowering/executable/FixedAddresses.h"

using namespace mlir;
using namespace mlir::rota;

namespace rota::lowering {

/// Whether parts along `dim` lie one after the other, each where a buffer may
/// start.
static bool areStretches(Value whole, int64_t dim, ValueRange parts) {
  auto shape = cast<RankedTensorType>(whole.getType()).getShape();
  return llvm::product_of(shape.take_front(dim)) == 1 &&
         llvm::all_of(parts.drop_back(), [](Value part) {
           return memory::alignUp(tensorBytes(part.getType())) ==
                  tensorBytes(part.getType());
         });
}

/// Whether the value, or a view of it, has another destination than an op.
static bool leaves(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    if (isa<ViewOpInterface>(user))
      return leaves(user->getResult(0));
    auto inTask = dyn_cast<TaskOpInterface>(user);
    return user->hasTrait<OpTrait::IsTerminator>() ||
           (inTask && user->getNumResults() == 0);
  });
}

/// The value that an op computes and that `value` views; null otherwise. With
/// `forOne`, each of them has one reader.
static Value computedAs(Value value, bool forOne) {
  while (true) {
    Operation *op = value.getDefiningOp();
    if (!op || (forOne && !value.hasOneUse()))
      return {};
    auto view = dyn_cast<ViewOpInterface>(op);
    if (!view)
      return isComputed(op) ? value : Value();
    value = view.getViewedOperand();
  }
}

/// The value on whose bytes a collective writes `value`; null otherwise.
static Value sourceInPlace(Value value) {
  auto result = cast<OpResult>(value);
  auto inTask = dyn_cast<TaskOpInterface>(result.getOwner());
  if (!inTask || !isa<CollectiveOpInterface>(result.getOwner()))
    return {};
  for (auto [operand, written] : inTask.getInPlacePairs())
    if (written == result.getResultNumber())
      return computedAs(inTask->getOperand(operand), /*forOne=*/true);
  return {};
}

PartPlaces::PartPlaces(ArrayRef<Operation *> ops) {
  for (Operation *op : ops)
    if (auto split = dyn_cast<SplitOp>(op))
      addSplit(split);
  // A concat may be a part of a later one.
  for (Operation *op : llvm::reverse(ops))
    if (auto concat = dyn_cast<ConcatOp>(op))
      addConcat(concat);
}

void PartPlaces::addSplit(SplitOp split) {
  auto results = split.getParts();
  if (!areStretches(split.getInput(), split.getDim(), results) ||
      llvm::any_of(results, leaves))
    return;
  placed.insert(split);
  int64_t offset = 0;
  for (Value part : results) {
    parts[part] = {viewedValue(split.getInput()), offset};
    offset += tensorBytes(part.getType());
  }
}

void PartPlaces::addConcat(ConcatOp concat) {
  SmallVector<Value> computed;
  for (Value part : concat.getParts())
    computed.push_back(computedAs(part, /*forOne=*/false));
  auto isFree = [&](Value value) {
    return value && !isPart(value) && !leaves(value) &&
           !placed.contains(value.getDefiningOp());
  };
  if (!areStretches(concat.getResult(), concat.getDim(), concat.getParts()) ||
      !llvm::all_of(computed, isFree) || concat.getResult().use_empty() ||
      llvm::DenseSet<Value>(computed.begin(), computed.end()).size() !=
          computed.size())
    return;
  placed.insert(concat);
  Operation *writer = concat;
  int64_t offset = 0;
  for (auto [part, value] : llvm::zip_equal(concat.getParts(), computed)) {
    for (Value next = value; isFree(next); next = sourceInPlace(next)) {
      parts[next] = {concat.getResult(), offset};
      if (next.getDefiningOp()->isBeforeInBlock(writer))
        writer = next.getDefiningOp();
    }
    offset += tensorBytes(part.getType());
  }
  // The whole may be a part of a concat that comes later.
  for (Value whole = concat.getResult(); whole;
       whole = viewedValue(parts.lookup(whole).root)) {
    Operation *&first = writers[whole];
    if (!first || writer->isBeforeInBlock(first))
      first = writer;
    if (!parts.contains(whole))
      break;
  }
}

PartPlaces::Place PartPlaces::placeOf(Value value) const {
  Place place{viewedValue(value), 0};
  for (auto found = parts.find(place.root); found != parts.end();
       found = parts.find(place.root))
    place = {viewedValue(found->second.root),
             place.offset + found->second.offset};
  return place;
}

Operation *PartPlaces::firstWriter(Value value) const {
  Value viewed = viewedValue(value);
  auto found = writers.find(viewed);
  return found == writers.end() ? viewed.getDefiningOp() : found->second;
}

} // namespace rota::lowering
