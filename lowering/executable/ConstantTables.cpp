// SPDX-License-Identifier: Apache-2.0
//
// Gives each table, offset, constant and cotangent its place.
#include "lowering/executable/ConstantTables.h"

using namespace mlir;
using namespace mlir::rota;

namespace rota::lowering {

int64_t tensorBytes(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  int64_t elements = tensor.getNumElements();
  if (tensor.getEncoding())
    elements = elements / tensor.getShape().back() * RowStrideAttr::of(tensor);
  return elements * tensor.getElementTypeBitWidth() / 8;
}

int64_t ConstantTables::add(RotaryTable table) {
  for (const RotaryTable &other : list)
    if (other.positions == table.positions && other.scale == table.scale &&
        other.frequencies == table.frequencies)
      return other.offset;
  table.offset =
      packer.add(8 * table.positions * int64_t(table.frequencies.size()));
  list.push_back(std::move(table));
  return list.back().offset;
}

int64_t ConstantTables::add(RotaryTableOp op) {
  RotaryTable table;
  table.positions = cast<RankedTensorType>(op.getType()).getDimSize(0);
  table.scale = op.getScale().convertToDouble();
  table.frequencies.assign(op.getFrequencies().begin(),
                           op.getFrequencies().end());
  return add(std::move(table));
}

int64_t ConstantTables::add(ShardOffset added) {
  for (const ShardOffset &other : offsets)
    if (other.axes == added.axes && other.factor == added.factor &&
        other.shift == added.shift && other.start == added.start)
      return other.offset;
  added.offset = packer.add(sizeof(int32_t));
  offsets.push_back(std::move(added));
  return offsets.back().offset;
}

int64_t ConstantTables::add(ShardOffsetOp op, const ProgramMesh &mesh) {
  ShardOffset added;
  added.axes = mesh.axesOf(op.getAxes());
  added.factor = int64_t(op.getFactor());
  added.shift = int64_t(op.getShift());
  added.start = int64_t(op.getStart());
  return add(std::move(added));
}

int ConstantTables::auxiliaryLoss(StringRef name) const {
  auto found = llvm::find_if(
      losses, [&](const AuxiliaryLoss &loss) { return loss.name == name; });
  return int(found - losses.begin());
}

int64_t ConstantTables::addCotangents() {
  if (cotangents < 0)
    cotangents = packer.add(4 * int64_t(losses.size()));
  return cotangents;
}

int64_t ConstantTables::add(AuxiliaryCotangentOp op) {
  return addCotangents() + 4 * auxiliaryLoss(op.getName());
}

int64_t ConstantTables::add(ConstantTensor added) {
  for (const ConstantTensor &other : constants)
    if (other.bytes == added.bytes)
      return other.offset;
  added.offset = packer.add(int64_t(added.bytes.size()));
  constants.push_back(std::move(added));
  return constants.back().offset;
}

int64_t ConstantTables::add(DenseElementsAttr data) {
  ConstantTensor added;
  ArrayRef<char> stored = data.getRawData();
  // One element stands for all where they are equal.
  for (int64_t i = 0, n = data.isSplat() ? data.getNumElements() : 1; i < n;
       ++i)
    added.bytes.append(stored.begin(), stored.end());
  return add(std::move(added));
}

} // namespace rota::lowering
