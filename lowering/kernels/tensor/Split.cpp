// SPDX-License-Identifier: Apache-2.0
//
// Split and concat: a copy for each part, a row of which lies side by side in
// both tensors.
#include "lowering/kernels/KernelBuilder.h"
#include "lowering/kernels/tensor/SplitPlan.h"

using namespace mlir;

namespace rota::lowering {

std::string PartOfRows::key() const {
  std::string key;
  llvm::raw_string_ostream(key)
      << width << " from " << begin << " of " << columns << 'x' << element
      << (isSplit ? "" : " back");
  return key;
}

FailureOr<KernelPlan>
planParts(Value whole, ValueRange parts, int64_t dim, bool isSplit,
          function_ref<FailureOr<std::string>(const PartOfRows &part)> emit) {
  auto type = cast<RankedTensorType>(whole.getType());
  PartOfRows part{1, 1, 0, 0, type.getElementType(), isSplit};
  int64_t inner = 1;
  for (auto [index, size] : llvm::enumerate(type.getShape())) {
    (int64_t(index) < dim ? part.rows : part.columns) *= size;
    if (int64_t(index) > dim)
      inner *= size;
  }
  using Kind = KernelArgument::Kind;
  KernelPlan plan;
  for (auto [i, value] : llvm::enumerate(parts)) {
    part.width =
        cast<RankedTensorType>(value.getType()).getDimSize(dim) * inner;
    FailureOr<std::string> symbol = emit(part);
    if (failed(symbol))
      return failure();
    KernelCall call{*symbol, part.rows, 1, {}};
    call.arguments.push_back({Kind::Operand, isSplit ? 0 : unsigned(i)});
    call.arguments.push_back({Kind::Result, isSplit ? unsigned(i) : 0});
    plan.calls.push_back(std::move(call));
    part.begin += part.width;
  }
  return plan;
}

static FailureOr<std::string> emitCopy(KernelLibrary &library,
                                       const PartOfRows &part) {
  return emitDedicated(library, "split", part.key(), 2, [&](KernelBuilder &k) {
    int64_t bytes = part.element.getIntOrFloatBitWidth() / 8;
    Memory from = k.argument(0, part.element);
    Memory to = k.argument(1, part.element);
    k.loop(k.begin(), k.end(), 1, [&](Value row) {
      Value inWhole = k.add(k.mul(row, part.columns), part.begin);
      Value inPart = k.mul(row, part.width);
      k.copy(k.offset(from, part.isSplit ? inWhole : inPart),
             k.offset(to, part.isSplit ? inPart : inWhole), part.width * bytes);
    });
  });
}

static FailureOr<KernelPlan> planSplit(mlir::rota::SplitOp op,
                                       KernelLibrary &library) {
  return planParts(
      op.getInput(), op.getParts(), op.getDim(), /*isSplit=*/true,
      [&](const PartOfRows &part) { return emitCopy(library, part); });
}

static FailureOr<KernelPlan> planConcat(mlir::rota::ConcatOp op,
                                        KernelLibrary &library) {
  return planParts(
      op.getResult(), op.getParts(), op.getDim(), /*isSplit=*/false,
      [&](const PartOfRows &part) { return emitCopy(library, part); });
}

void addSplitEmitters(KernelEmitters &emitters) {
  emitters.add<planSplit>();
  emitters.add<planConcat>();
}

} // namespace rota::lowering
