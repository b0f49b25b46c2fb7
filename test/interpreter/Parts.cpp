// SPDX-License-Identifier: Apache-2.0
//
// Tensors that are divided over a mesh.
#include "test/interpreter/Parts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace rota::interpreter;
using llvm::ArrayRef;
using llvm::FailureOr;
using llvm::SmallVector;
using mlir::rota::AxisRefAttr;
using mlir::rota::MeshAttr;
using mlir::rota::ShardingAttr;

AxisGroup::AxisGroup(MeshAttr mesh, ArrayRef<AxisRefAttr> axes) {
  for (AxisRefAttr ref : axes) {
    // Ranks are numbered row-major over the axes.
    auto axis = static_cast<size_t>(ref.getAxis());
    int64_t stride = 1;
    for (int64_t size : mesh.getSizes().drop_front(axis + 1))
      stride *= size;
    int64_t size = mesh.getSize(ref);
    int64_t inner =
        ref.isWhole() ? 1 : mesh.getSizes()[axis] / (ref.getBefore() * size);
    digits.push_back({stride * inner, size});
    ranks *= size;
  }
}

int64_t AxisGroup::positionOf(int64_t rank) const {
  int64_t position = 0;
  for (const Digit &digit : digits)
    position = position * digit.size + digit.of(rank);
  return position;
}

int64_t AxisGroup::member(int64_t rank, int64_t position) const {
  for (const Digit &digit : llvm::reverse(digits)) {
    rank += (position % digit.size - digit.of(rank)) * digit.stride;
    position /= digit.size;
  }
  return rank;
}

/// Copies `count` indices along `dim` from place `fromStart` of one tensor to
/// `toStart` of another; the other dimensions are equal.
static void copyAlong(const Tensor &from, int64_t fromStart, Tensor &to,
                      int64_t toStart, int64_t count, int64_t dim) {
  ArrayRef<int64_t> shape(from.shape);
  int64_t outer = elementCount(shape.take_front(dim));
  int64_t inner = elementCount(shape.drop_front(dim + 1));
  for (int64_t row = 0; row < outer; ++row)
    std::copy_n(from.elements.begin() +
                    (row * from.dim(dim) + fromStart) * inner,
                count * inner,
                to.elements.begin() + (row * to.dim(dim) + toStart) * inner);
}

Tensor rota::interpreter::slice(const Tensor &whole, int64_t dim,
                                int64_t position, int64_t count) {
  auto shape = whole.shape;
  int64_t size = shape[dim];
  shape[dim] = llvm::divideCeil(size, count);
  Tensor part(shape);
  int64_t start = std::min(size, position * shape[dim]);
  copyAlong(whole, start, part, 0, std::min(shape[dim], size - start), dim);
  return part;
}

Tensor rota::interpreter::concatenate(ArrayRef<Tensor> parts, int64_t dim,
                                      int64_t size) {
  auto shape = parts.front().shape;
  shape[dim] = size;
  Tensor whole(shape);
  int64_t start = 0;
  for (const Tensor &part : parts) {
    int64_t count = std::min(part.dim(dim), size - start);
    copyAlong(part, 0, whole, start, count, dim);
    start += count;
  }
  return whole;
}

/// Positions 1, 2, 3, ... hold -1/2, 1, -3/2, ...; position 0 holds the rest,
/// so that the sum is 1.
static double shareOf(int64_t position, int64_t count) {
  auto share = [](int64_t i) { return (i % 2 ? -0.5 : 0.5) * i; };
  if (position != 0)
    return share(position);
  double rest = 1;
  for (int64_t i = 1; i < count; ++i)
    rest -= share(i);
  return rest;
}

Parts rota::interpreter::cut(const Tensor &whole, ShardingAttr sharding,
                             MeshAttr mesh) {
  AxisGroup unreduced(mesh, sharding.getUnreduced());
  Parts parts(mesh.getRanks(), whole);
  for (auto [rank, part] : llvm::enumerate(parts)) {
    for (auto [dim, dimension] : llvm::enumerate(sharding.getDimensions())) {
      AxisGroup group(mesh, dimension.getAxes());
      part = slice(part, dim, group.positionOf(rank), group.size());
    }
    if (unreduced.size() > 1)
      part *= shareOf(unreduced.positionOf(rank), unreduced.size());
  }
  return parts;
}

/// The whole tensor as `rank` sees it: dimensions from `dim` on are put
/// together out of the parts of the ranks that differ from it along their axes.
static Tensor gather(const Parts &parts, int64_t rank, ArrayRef<int64_t> shape,
                     ShardingAttr sharding, MeshAttr mesh, size_t dim) {
  if (dim == shape.size())
    return parts[rank];
  AxisGroup group(mesh, sharding.getDimensions()[dim].getAxes());
  SmallVector<Tensor> pieces;
  for (int64_t position = 0; position < group.size(); ++position)
    pieces.push_back(gather(parts, group.member(rank, position), shape,
                            sharding, mesh, dim + 1));
  return concatenate(pieces, dim, shape[dim]);
}

/// Sum over the group of `rank`, in its order.
static Tensor sum(const Parts &parts, int64_t rank, const AxisGroup &group) {
  Tensor result = parts[group.member(rank, 0)];
  for (int64_t position = 1; position < group.size(); ++position)
    result += parts[group.member(rank, position)];
  return result;
}

FailureOr<Tensor> rota::interpreter::join(mlir::Location loc,
                                          const Parts &parts,
                                          ArrayRef<int64_t> shape,
                                          ShardingAttr sharding,
                                          MeshAttr mesh) {
  SmallVector<int64_t> expected = partShape(shape, sharding, mesh);
  for (auto [rank, part] : llvm::enumerate(parts))
    if (ArrayRef<int64_t>(part.shape) != ArrayRef<int64_t>(expected))
      return mlir::emitError(loc) << "expected a part of another shape on rank "
                                  << rank << " for " << sharding;
  AxisGroup unreduced(mesh, sharding.getUnreduced());
  Parts sums;
  for (int64_t rank = 0; rank < int64_t(parts.size()); ++rank)
    sums.push_back(sum(parts, rank, unreduced));
  Tensor whole = gather(sums, 0, shape, sharding, mesh, 0);
  for (int64_t rank = 1; rank < int64_t(parts.size()); ++rank)
    if (gather(sums, rank, shape, sharding, mesh, 0).elements != whole.elements)
      return mlir::emitError(loc) << "expected the same bits on ranks 0 and "
                                  << rank << " for " << sharding;
  return whole;
}

static ShardingAttr orWhole(ShardingAttr sharding, mlir::Type type) {
  if (sharding)
    return sharding;
  auto shape = llvm::cast<mlir::RankedTensorType>(type).getShape();
  return mlir::rota::replicatedSharding(type.getContext(), shape.size());
}

static llvm::StringRef shardingName() {
  return mlir::rota::RotaDialect::ShardingAttrHelper::getNameStr();
}

ShardingAttr rota::interpreter::shardingOfArgument(mlir::func::FuncOp function,
                                                   unsigned number) {
  return orWhole(
      function.getArgAttrOfType<ShardingAttr>(number, shardingName()),
      function.getArgumentTypes()[number]);
}

ShardingAttr rota::interpreter::shardingOfResult(mlir::func::FuncOp function,
                                                 unsigned number) {
  return orWhole(
      function.getResultAttrOfType<ShardingAttr>(number, shardingName()),
      function.getResultTypes()[number]);
}

std::vector<Parts> rota::interpreter::cutArguments(mlir::func::FuncOp function,
                                                   ArrayRef<Tensor> arguments,
                                                   MeshAttr mesh) {
  std::vector<Parts> parts;
  for (auto [number, argument] : llvm::enumerate(arguments))
    parts.push_back(cut(argument, shardingOfArgument(function, number), mesh));
  return parts;
}
