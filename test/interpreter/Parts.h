// SPDX-License-Identifier: Apache-2.0
//
// Tensors that are divided over a mesh, by the words of `#rota.sharding`:
// cutting a whole one into the ranks' parts, and putting parts together.
#ifndef ROTA_TEST_INTERPRETER_PARTS_H
#define ROTA_TEST_INTERPRETER_PARTS_H

#include "ir/rota/sharding/Sharding.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "test/interpreter/Tensor.h"

namespace rota::interpreter {

/// The parts of one value on the ranks of a mesh, by the rank's number.
using Parts = std::vector<Tensor>;

/// The positions of ranks along a list of axes, the first axis slowest. Ranks
/// that differ along these axes only are a group.
class AxisGroup {
public:
  AxisGroup(mlir::rota::MeshAttr mesh,
            llvm::ArrayRef<mlir::rota::AxisRefAttr> axes);

  /// Number of ranks in a group.
  int64_t size() const { return ranks; }
  /// The rank's position in its group.
  int64_t positionOf(int64_t rank) const;
  /// The rank at `position` in the group of `rank`.
  int64_t member(int64_t rank, int64_t position) const;

private:
  /// A number `(rank / stride) mod size`, a part of the rank's position.
  struct Digit {
    int64_t stride, size;
    int64_t of(int64_t rank) const { return rank / stride % size; }
  };
  llvm::SmallVector<Digit> digits; // slowest first
  int64_t ranks = 1;
};

/// Elements [position * p, min(d, (position + 1) * p)) along `dim` of size d,
/// where p = ceil(d / count), then zeros up to p.
Tensor slice(const Tensor &whole, int64_t dim, int64_t position, int64_t count);

/// The parts one after the other along `dim`, `size` elements in all: what is
/// beyond is padding and falls away.
Tensor concatenate(llvm::ArrayRef<Tensor> parts, int64_t dim, int64_t size);

/// The ranks' parts of `whole`. Along unreduced axes each rank holds another
/// share of it; shares differ in size and sign, and sum to 1.
Parts cut(const Tensor &whole, mlir::rota::ShardingAttr sharding,
          mlir::rota::MeshAttr mesh);

/// The sharding of an argument or a result: whole on each rank where the
/// function does not say one.
mlir::rota::ShardingAttr shardingOfArgument(mlir::func::FuncOp function,
                                            unsigned number);
mlir::rota::ShardingAttr shardingOfResult(mlir::func::FuncOp function,
                                          unsigned number);

/// The ranks' parts of the function's arguments.
std::vector<Parts> cutArguments(mlir::func::FuncOp function,
                                llvm::ArrayRef<Tensor> arguments,
                                mlir::rota::MeshAttr mesh);

/// The whole tensor of `shape` that `parts` are divided from. Emits an error at
/// `loc` and fails when a part has not the shape that the sharding says, or
/// when ranks that should hold the same hold different bits.
llvm::FailureOr<Tensor> join(mlir::Location loc, const Parts &parts,
                             llvm::ArrayRef<int64_t> shape,
                             mlir::rota::ShardingAttr sharding,
                             mlir::rota::MeshAttr mesh);

} // namespace rota::interpreter

#endif // ROTA_TEST_INTERPRETER_PARTS_H
