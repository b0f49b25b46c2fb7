// SPDX-License-Identifier: Apache-2.0
//
// The choices of tokens, and the rows of their places.
#ifndef ROTA_LOWERING_KERNELS_EXPERTS_EXPERTROWS_H
#define ROTA_LOWERING_KERNELS_EXPERTS_EXPERTROWS_H

#include "ir/rota/experts/Experts.h"
#include "lowering/kernels/RowBuilder.h"

#include "llvm/Support/FormatVariadic.h"

namespace rota::lowering {

/// Sequences in `parts` parts of `tokens` tokens with `k` choices each.
struct PartShape {
  template <typename Op>
  explicit PartShape(Op op)
      : batch(op.getPlaces().getType().getDimSize(0)), parts(op.getParts()),
        tokens(op.getPlaces().getType().getDimSize(1) / parts),
        k(op.getPlaces().getType().getDimSize(2)) {}

  /// A text that determines where parts lie.
  std::string key() const {
    return parts == 1 ? ""
                      : llvm::formatv(" {0} parts of {1}", parts, batch).str();
  }

  /// The number of the first choice of that part.
  mlir::Value firstChoice(ValueBuilder &b, mlir::Value part) const {
    return b.mul(inSequences(b, part, batch, parts), tokens * k);
  }
  /// The part of the token of that number.
  mlir::Value partOf(ValueBuilder &b, mlir::Value token) const {
    return inSequences(b, b.div(token, tokens), parts, batch);
  }

  int64_t count() const { return parts * batch; }

  int64_t batch, parts, tokens, k;

private:
  /// `number` of a table [rows, columns] in the table [columns, rows].
  mlir::Value inSequences(ValueBuilder &b, mlir::Value number, int64_t columns,
                          int64_t rows) const {
    if (parts == 1)
      return number;
    mlir::Value row = b.div(number, columns);
    return b.add(b.mul(b.sub(number, b.mul(row, columns)), rows), row);
  }
};

/// Tokens [batch, parts * tokens, width], their choices, and rows [parts *
/// batch, rows, width].
struct MoveShape : PartShape {
  template <typename Op>
  explicit MoveShape(Op op, mlir::Value weights)
      : PartShape(op), rows(op.getRows().getType().getDimSize(1)),
        width(op.getRows().getType().getDimSize(2)),
        element(op.getRows().getType().getElementType()),
        weighed(bool(weights)), isPart(bool(op.getOffset())) {}

  std::string key() const {
    std::string key;
    llvm::raw_string_ostream(key)
        << tokens << 'x' << k << " to " << rows << 'x' << width << 'x'
        << element << (weighed ? " weighed" : "")
        << (isPart ? " from an offset" : "") << PartShape::key();
    return key;
  }

  /// A kernel of `count` rows, each of one row of elements, which may be one
  /// number.
  RowForm space(int64_t count) const {
    RowForm form{count, width, element.getIntOrFloatBitWidth()};
    form.mayBeAlone = true;
    return form;
  }

  /// The arguments of a kernel with the choices: places, weights where there
  /// are some, and an offset of a part.
  unsigned choiceArguments() const { return 1 + weighed + isPart; }
  /// Adds them: operands of the op from number `next` on.
  void addChoices(KernelCall &call, unsigned next) const {
    for (unsigned i = 0; i < choiceArguments(); ++i)
      call.arguments.push_back({KernelArgument::Kind::Operand, next + i});
  }

  int64_t rows, width;
  mlir::Type element;
  bool weighed, isPart;
};

/// The choices of a kernel.
struct Choices {
  /// From argument `next` on.
  Choices(RowBuilder &k, const MoveShape &shape, unsigned next)
      : k(k), shape(shape), places(k.argument(next++, k.ops().getI32Type())) {
    if (shape.weighed)
      weights = k.argument(next++, k.ops().getF32Type());
    if (shape.isPart)
      first = k.loadIndex(k.argument(next, k.ops().getI32Type()), k.i64(0));
  }

  /// The row of choice `i` in its part; see isRow.
  mlir::Value rowOf(mlir::Value i) {
    mlir::Value place = k.loadIndex(places, i);
    return first ? k.sub(place, first) : place;
  }
  mlir::Value isRow(mlir::Value row) { return k.isWithin(row, shape.rows); }
  mlir::Value weightOf(mlir::Value i) { return k.load(weights, i); }

  RowBuilder &k;
  const MoveShape &shape;
  Memory places, weights{};
  mlir::Value first;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_EXPERTS_EXPERTROWS_H
