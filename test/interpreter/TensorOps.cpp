// SPDX-License-Identifier: Apache-2.0
//
// Ops that move, contract and reduce: einsum, reshape, reduce, broadcast.
#include "test/interpreter/Interpreter.h"

#include <limits>

using namespace ::rota::interpreter;
using namespace mlir;
using namespace mlir::rota;

/// Calls `visit` with two offsets for each index within `sizes`, the first
/// dimension slowest.
template <typename Visit>
static void walk(ArrayRef<int64_t> sizes, ArrayRef<int64_t> stridesA,
                 ArrayRef<int64_t> stridesB, int64_t a, int64_t b,
                 const Visit &visit) {
  if (sizes.empty())
    return visit(a, b);
  if (sizes.size() == 1) { // without a call for each index
    for (int64_t i = 0; i < sizes[0]; ++i)
      visit(a + i * stridesA[0], b + i * stridesB[0]);
    return;
  }
  for (int64_t i = 0; i < sizes.front(); ++i)
    walk(sizes.drop_front(), stridesA.drop_front(), stridesB.drop_front(),
         a + i * stridesA.front(), b + i * stridesB.front(), visit);
}

/// For each of `letters`, its stride in a tensor whose dimensions are `own`; 0
/// where it has no such dimension.
static SmallVector<int64_t> lettersStrides(StringRef letters, StringRef own,
                                           ArrayRef<int64_t> shape) {
  auto ownStrides = strides(shape);
  SmallVector<int64_t> result;
  for (char letter : letters) {
    size_t place = own.find(letter);
    result.push_back(place == StringRef::npos ? 0 : ownStrides[place]);
  }
  return result;
}

/// result[i...] = sum over the letters that it lacks of lhs * rhs.
static void einsum(EinsumOp op, Frame &frame) {
  const Tensor &lhs = frame.get(op.getLhs()), &rhs = frame.get(op.getRhs());
  EinsumOp::Letters letters = op.getLetters();
  std::string summed;
  SmallVector<int64_t> summedSizes;
  for (auto [letter, size] : llvm::zip(letters.lhs, lhs.shape))
    if (!letters.result.contains(letter)) {
      summed += letter;
      summedSizes.push_back(size);
    }
  auto keptLhs = lettersStrides(letters.result, letters.lhs, lhs.shape);
  auto keptRhs = lettersStrides(letters.result, letters.rhs, rhs.shape);
  auto summedLhs = lettersStrides(summed, letters.lhs, lhs.shape);
  auto summedRhs = lettersStrides(summed, letters.rhs, rhs.shape);
  Tensor result(shapeOf(op.getResult()));
  int64_t place = 0;
  walk(result.shape, keptLhs, keptRhs, 0, 0, [&](int64_t left, int64_t right) {
    double sum = 0;
    walk(summedSizes, summedLhs, summedRhs, left, right,
         [&](int64_t a, int64_t b) { sum += lhs[a] * rhs[b]; });
    result[place++] = sum;
  });
  frame.set(op.getResult(), std::move(result));
}

static void reshape(ReshapeOp op, Frame &frame) {
  frame.set(op.getResult(),
            Tensor(shapeOf(op.getResult()), frame.get(op.getInput()).elements));
}

/// The strides of a tensor of `shape` seen along the dimensions of a larger one
/// of rank `rank`: its dimension i lies along `dims[i]`, 0 along the others.
static SmallVector<int64_t> spread(ArrayRef<int64_t> shape,
                                   ArrayRef<int64_t> dims, int64_t rank) {
  SmallVector<int64_t> result(rank, 0);
  for (auto [dim, stride] : llvm::zip_equal(dims, strides(shape)))
    result[dim] = stride;
  return result;
}

static void reduce(ReduceOp op, Frame &frame) {
  const Tensor &input = frame.get(op.getInput());
  SmallVector<int64_t> kept;
  for (int64_t dim = 0; dim < input.rank(); ++dim)
    if (!llvm::is_contained(op.getDims(), dim))
      kept.push_back(dim);
  bool isSum = op.getKind() == ReduceKind::Sum;
  Tensor result(shapeOf(op.getResult()));
  if (!isSum)
    result.elements.assign(result.size(),
                           -std::numeric_limits<double>::infinity());
  walk(input.shape, strides(input.shape),
       spread(result.shape, kept, input.rank()), 0, 0,
       [&](int64_t from, int64_t to) {
         result[to] = isSum ? result[to] + input[from]
                            : std::max(result[to], input[from]);
       });
  frame.set(op.getResult(), std::move(result));
}

static void broadcast(BroadcastOp op, Frame &frame) {
  const Tensor &input = frame.get(op.getInput());
  Tensor result(shapeOf(op.getResult()));
  walk(result.shape, spread(input.shape, op.getDims(), result.rank()),
       strides(result.shape), 0, 0,
       [&](int64_t from, int64_t to) { result[to] = input[from]; });
  frame.set(op.getResult(), std::move(result));
}

/// Calls visit(part, element of the part, element of the whole) for each
/// element of a tensor of shape `whole` whose parts along `dim` are `parts`.
template <typename Visit>
static void walkParts(ArrayRef<int64_t> whole, ValueRange parts, int64_t dim,
                      const Visit &visit) {
  auto wholeStrides = strides(whole);
  int64_t begin = 0;
  for (auto [number, part] : llvm::enumerate(parts)) {
    ArrayRef<int64_t> shape = shapeOf(part);
    walk(shape, strides(shape), wholeStrides, 0, begin * wholeStrides[dim],
         [&, number = number](int64_t inPart, int64_t inWhole) {
           visit(number, inPart, inWhole);
         });
    begin += shape[dim];
  }
}

static void split(SplitOp op, Frame &frame) {
  const Tensor &input = frame.get(op.getInput());
  std::vector<Tensor> parts;
  for (Value part : op.getParts())
    parts.emplace_back(shapeOf(part));
  walkParts(input.shape, op.getParts(), op.getDim(),
            [&](size_t part, int64_t inPart, int64_t inWhole) {
              parts[part][inPart] = input[inWhole];
            });
  for (auto [part, tensor] : llvm::zip(op.getParts(), parts))
    frame.set(part, std::move(tensor));
}

static void concat(ConcatOp op, Frame &frame) {
  Tensor result(shapeOf(op.getResult()));
  walkParts(result.shape, op.getParts(), op.getDim(),
            [&](size_t part, int64_t inPart, int64_t inWhole) {
              result[inWhole] = frame.get(op.getParts()[part])[inPart];
            });
  frame.set(op.getResult(), std::move(result));
}

void ::rota::interpreter::addTensorOps(OpTable &table) {
  table.add(einsum);
  table.add(reshape);
  table.add(reduce);
  table.add(broadcast);
  table.add(split);
  table.add(concat);
}
