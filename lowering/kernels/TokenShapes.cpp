// SPDX-License-Identifier: Apache-2.0
//
// Shapes read from the types of ops.
#include "lowering/kernels/TokenShapes.h"

using namespace mlir;

namespace rota::lowering {

Logits::Logits(Value value, std::optional<uint64_t> vocabulary) {
  auto type = cast<RankedTensorType>(value.getType());
  rows = type.getDimSize(0) * type.getDimSize(1);
  columns = type.getDimSize(2);
  stride = mlir::rota::RowStrideAttr::of(type);
  element = type.getElementType();
  if (vocabulary)
    entries = int64_t(*vocabulary);
}

std::string Logits::key() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << columns << 'x' << element;
  if (stride != columns)
    stream << " every " << stride;
  if (entries)
    stream << " of " << *entries;
  return text;
}

Value Logits::end(ValueBuilder &k, Value offset) const {
  if (!entries)
    return {};
  bool isWide = offset.getType().isInteger(64);
  return k.sub(isWide ? k.i64(*entries) : k.i32(*entries), offset);
}

FailureOr<KernelPlan> planLosses(FailureOr<std::string> rowLoss,
                                 FailureOr<std::string> lossSum, int64_t rows) {
  if (failed(rowLoss) || failed(lossSum))
    return failure();
  using Kind = KernelArgument::Kind;
  KernelPlan plan;
  plan.temporaries.push_back(rows * sizeof(float));
  plan.calls.push_back({*rowLoss,
                        rows,
                        1,
                        {{Kind::Operand, 0},
                         {Kind::Operand, 1},
                         {Kind::Result, 2},
                         {Kind::Temporary, 0}}});
  plan.calls.push_back({*lossSum,
                        1,
                        1,
                        {{Kind::Temporary, 0},
                         {Kind::Operand, 1},
                         {Kind::Result, 0},
                         {Kind::Result, 1}}});
  return plan;
}

CrossEntropyGradient::CrossEntropyGradient(mlir::rota::CrossEntropyGradOp op)
    : isPart(bool(op.getOffset())), hasRows(bool(op.getRowCotangent())) {}

std::string CrossEntropyGradient::key() const {
  return std::string(isPart ? " part" : "") + (hasRows ? " rows" : "");
}

FailureOr<KernelPlan> CrossEntropyGradient::plan(FailureOr<std::string> symbol,
                                                 int64_t rows) const {
  auto made = planCall(symbol, rows, 1, /*operands=*/4);
  if (succeeded(made))
    for (unsigned operand = 4; operand < arguments() - 1; ++operand)
      made->calls.back().arguments.push_back(
          {KernelArgument::Kind::Operand, operand});
  return made;
}

EmbeddingTable::EmbeddingTable(Value tokens, Value table, Value offset)
    : isPart(bool(offset)) {
  auto type = cast<RankedTensorType>(table.getType());
  count = cast<RankedTensorType>(tokens.getType()).getNumElements();
  vocabulary = type.getDimSize(0);
  columns = type.getDimSize(1);
}

void EmbeddingTable::addOffset(KernelCall &call) const {
  if (isPart)
    call.arguments.push_back({KernelArgument::Kind::Operand, 2});
}

RopeShape::RopeShape(mlir::rota::RopeOp op) {
  auto type = op.getInput().getType();
  batch = type.getDimSize(0);
  sequence = type.getDimSize(1);
  heads = type.getDimSize(2);
  size = type.getDimSize(3);
  element = type.getElementType();
  inverse = op.getInverse();
  hasPositions = bool(op.getPositions());
}

std::string RopeShape::key() const {
  std::string key;
  llvm::raw_string_ostream(key)
      << sequence << 'x' << heads << 'x' << size << 'x' << element
      << (inverse ? " inverse" : "") << (hasPositions ? " at positions" : "");
  return key;
}

} // namespace rota::lowering
