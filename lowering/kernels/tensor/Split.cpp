// SPDX-License-Identifier: Apache-2.0
//
// Split and concat, on every device: a copy for each part, a row of which lies
// side by side in both tensors.
#include "ir/rota/Rota.h"
#include "lowering/kernels/RowBuilder.h"

#include <numeric>

using namespace mlir;

namespace rota::lowering {
namespace {

/// A tensor as rows, in each of which the elements of one part lie side by
/// side.
struct PartOfRows {
  int64_t rows;
  int64_t columns;      // elements of a row of the whole
  int64_t begin, width; // the part in the row
  mlir::Type element;
  bool isSplit; // the whole is read and the part written, or the reverse

  /// A text that determines the code of a row.
  std::string key() const {
    std::string key;
    llvm::raw_string_ostream(key)
        << width << " from " << begin << " of " << columns << 'x' << element
        << (isSplit ? "" : " back");
    return key;
  }
  RowForm space() const {
    return {rows,
            width,
            element.getIntOrFloatBitWidth(),
            /*most=*/256,
            /*alone=*/true,
            std::gcd(columns, begin)};
  }
};

/// Arguments: the tensor that is read and the one that is written.
void emitCopy(RowBuilder &k, const PartOfRows &part, Value row) {
  Memory from = k.argument(0, part.element), to = k.argument(1, part.element);
  Value inWhole = k.add(k.mul(row, part.columns), part.begin);
  Value inPart = k.mul(row, part.width);
  k.copyRow(k.offset(from, part.isSplit ? inWhole : inPart),
            k.offset(to, part.isSplit ? inPart : inWhole), part.width);
}

/// A plan of one call for each part.
FailureOr<KernelPlan> planParts(Operation *op, Value whole, ValueRange parts,
                                int64_t dim, bool isSplit,
                                KernelLibrary &library) {
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
    FailureOr<std::string> symbol =
        emitRowCode(library, op->getLoc(), "split", part.key(), 2, part.space(),
                    [&](RowBuilder &k, Value row) { emitCopy(k, part, row); });
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

} // namespace

static FailureOr<KernelPlan> planSplit(mlir::rota::SplitOp op,
                                       KernelLibrary &library) {
  return planParts(op, op.getInput(), op.getParts(), op.getDim(),
                   /*isSplit=*/true, library);
}

static FailureOr<KernelPlan> planConcat(mlir::rota::ConcatOp op,
                                        KernelLibrary &library) {
  return planParts(op, op.getResult(), op.getParts(), op.getDim(),
                   /*isSplit=*/false, library);
}

void addSplitEmitters(KernelEmitters &emitters) {
  emitters.add<planSplit>();
  emitters.add<planConcat>();
}

} // namespace rota::lowering
