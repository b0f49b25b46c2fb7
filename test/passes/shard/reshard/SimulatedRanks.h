// SPDX-License-Identifier: Apache-2.0
//
// All ranks of a small mesh as plain arrays, written from the descriptions of
// the attributes and collective ops alone.
#ifndef ROTA_TEST_PASSES_SHARD_RESHARD_SIMULATEDRANKS_H
#define ROTA_TEST_PASSES_SHARD_RESHARD_SIMULATEDRANKS_H

#include "ir/rota/Rota.h"

#include <vector>

namespace rota::test {

/// A tensor of doubles, row-major.
struct Array {
  std::vector<int64_t> shape;
  std::vector<double> values;

  explicit Array(llvm::ArrayRef<int64_t> shape);
  bool operator==(const Array &other) const = default;
  /// Calls `use` with each index, in order.
  void forEach(llvm::function_ref<void(llvm::ArrayRef<int64_t>, double &)> use);
  double &at(llvm::ArrayRef<int64_t> index);
};

/// Element by element.
Array sum(const std::vector<Array> &parts);

class SimulatedRanks {
public:
  explicit SimulatedRanks(mlir::rota::MeshAttr mesh) : mesh(mesh) {}

  /// The rank's position along `axes`, the first slowest.
  int64_t position(int64_t rank,
                   llvm::ArrayRef<mlir::rota::AxisRefAttr> axes) const;
  /// The rank's part of `whole`, with zeros where there is no element.
  Array partOf(Array &whole, mlir::rota::ShardingAttr sharding,
               int64_t rank) const;
  /// Runs a collective op on the operands of all ranks.
  std::vector<Array> run(mlir::Operation *op,
                         std::vector<Array> &operands) const;

private:
  using Axes = llvm::SmallVector<mlir::rota::AxisRefAttr>;
  /// The ranks that differ from `rank` along `axes` only, by position.
  std::vector<int64_t>
  group(int64_t rank, llvm::ArrayRef<mlir::rota::AxisRefAttr> axes) const;
  int64_t coordinate(int64_t rank, mlir::rota::MeshAxis axis) const;

  mlir::rota::MeshAttr mesh;
};

} // namespace rota::test

#endif // ROTA_TEST_PASSES_SHARD_RESHARD_SIMULATEDRANKS_H
