// SPDX-License-Identifier: Apache-2.0
//
// The effect of each collective, element by element.
#include "test/passes/shard/reshard/SimulatedRanks.h"

#include "ir/rota/sharding/Sharding.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/ErrorHandling.h"

using namespace llvm;
using namespace mlir::rota;

namespace rota::test {

Array::Array(ArrayRef<int64_t> shape) : shape(shape.begin(), shape.end()) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  values.assign(count, 0.0);
}

double &Array::at(ArrayRef<int64_t> index) {
  int64_t offset = 0;
  for (auto [position, size] : zip_equal(index, shape)) {
    assert(position >= 0 && position < size);
    offset = offset * size + position;
  }
  return values[offset];
}

void Array::forEach(function_ref<void(ArrayRef<int64_t>, double &)> use) {
  std::vector<int64_t> index(shape.size(), 0);
  for (double &value : values) {
    use(index, value);
    for (size_t dim = shape.size(); dim-- > 0;) {
      if (++index[dim] < shape[dim])
        break;
      index[dim] = 0;
    }
  }
}

int64_t SimulatedRanks::coordinate(int64_t rank, MeshAxis axis) const {
  for (size_t number = mesh.getSizes().size(); number-- > 0;) {
    int64_t size = mesh.getSizes()[number];
    if (number == static_cast<size_t>(axis))
      return rank % size;
    rank /= size;
  }
  llvm_unreachable("a mesh has every axis");
}

int64_t SimulatedRanks::position(int64_t rank,
                                 ArrayRef<AxisRefAttr> axes) const {
  int64_t position = 0;
  for (AxisRefAttr ref : axes) {
    int64_t size = mesh.getSize(ref), whole = mesh.getSize(ref.getAxis());
    int64_t before = ref.isWhole() ? 1 : ref.getBefore();
    position = position * size + coordinate(rank, ref.getAxis()) /
                                     (whole / (before * size)) % size;
  }
  return position;
}

std::vector<int64_t> SimulatedRanks::group(int64_t rank,
                                           ArrayRef<AxisRefAttr> axes) const {
  // The coordinates that differ within a group, without its digits.
  auto rest = [&](int64_t other) {
    std::vector<int64_t> coordinates;
    for (size_t number = 0; number < mesh.getSizes().size(); ++number) {
      auto axis = static_cast<MeshAxis>(number);
      int64_t left = coordinate(other, axis);
      for (AxisRefAttr ref : axes) {
        if (ref.getAxis() != axis)
          continue;
        int64_t before = ref.isWhole() ? 1 : ref.getBefore();
        left -= position(other, ref) *
                (mesh.getSize(axis) / (before * mesh.getSize(ref)));
      }
      coordinates.push_back(left);
    }
    return coordinates;
  };
  std::vector<int64_t> ranks(mesh.getSize(axes), -1);
  for (int64_t other = 0; other < mesh.getRanks(); ++other)
    if (rest(other) == rest(rank))
      ranks[position(other, axes)] = other;
  return ranks;
}

Array SimulatedRanks::partOf(Array &whole, ShardingAttr sharding,
                             int64_t rank) const {
  std::vector<int64_t> first, shape;
  for (auto [size, dimension] :
       zip_equal(whole.shape, sharding.getDimensions())) {
    int64_t parts = mesh.getSize(dimension.getAxes());
    shape.push_back((size + parts - 1) / parts);
    first.push_back(position(rank, dimension.getAxes()) * shape.back());
  }
  Array part(shape);
  part.forEach([&](ArrayRef<int64_t> index, double &value) {
    std::vector<int64_t> source(index.begin(), index.end());
    for (size_t dim = 0; dim < source.size(); ++dim)
      if ((source[dim] += first[dim]) >= whole.shape[dim])
        return;
    value = whole.at(source);
  });
  return part;
}

/// Part `number` of `whole`, of size `size` along `dim`; zero beyond its end.
static Array cut(Array &whole, int64_t dim, int64_t size, int64_t number) {
  std::vector<int64_t> shape = whole.shape;
  shape[dim] = size;
  Array part(shape);
  part.forEach([&](ArrayRef<int64_t> index, double &value) {
    std::vector<int64_t> source(index.begin(), index.end());
    source[dim] += number * size;
    if (source[dim] < whole.shape[dim])
      value = whole.at(source);
  });
  return part;
}

/// The parts one after the other along `dim`, `size` of it in all.
static Array join(std::vector<Array> parts, int64_t dim, int64_t size) {
  std::vector<int64_t> shape = parts.front().shape;
  int64_t partSize = shape[dim];
  shape[dim] = size;
  Array whole(shape);
  whole.forEach([&](ArrayRef<int64_t> index, double &value) {
    std::vector<int64_t> source(index.begin(), index.end());
    source[dim] %= partSize;
    value = parts[index[dim] / partSize].at(source);
  });
  return whole;
}

Array sum(const std::vector<Array> &parts) {
  Array total(parts.front().shape);
  for (const Array &part : parts)
    for (auto [to, from] : zip_equal(total.values, part.values))
      to += from;
  return total;
}

static SmallVector<AxisRefAttr> listOf(mlir::ArrayAttr axes) {
  return to_vector(axes.getAsRange<AxisRefAttr>());
}

std::vector<Array> SimulatedRanks::run(mlir::Operation *op,
                                       std::vector<Array> &operands) const {
  auto type = cast<mlir::RankedTensorType>(op->getResult(0).getType());
  // The operands of the rank's group, by position.
  auto gathered = [&](int64_t rank, mlir::ArrayAttr axes) {
    std::vector<Array> parts;
    for (int64_t member : group(rank, listOf(axes)))
      parts.push_back(operands[member]);
    return parts;
  };
  auto own = [&](int64_t rank, mlir::ArrayAttr axes) {
    return position(rank, listOf(axes));
  };
  std::vector<Array> results;
  for (int64_t rank = 0; rank < mesh.getRanks(); ++rank) {
    results.push_back(
        TypeSwitch<mlir::Operation *, Array>(op)
            .Case([&](AllGatherOp gather) {
              return join(gathered(rank, gather.getAxes()), gather.getDim(),
                          type.getDimSize(gather.getDim()));
            })
            .Case([&](ReduceScatterOp scatter) {
              Array whole = sum(gathered(rank, scatter.getAxes()));
              return cut(whole, scatter.getDim(),
                         type.getDimSize(scatter.getDim()),
                         own(rank, scatter.getAxes()));
            })
            .Case([&](AllReduceOp reduce) {
              return sum(gathered(rank, reduce.getAxes()));
            })
            .Case([&](AllToAllOp exchange) {
              int64_t split = exchange.getSplit();
              std::vector<Array> parts = gathered(rank, exchange.getAxes());
              for (Array &part : parts)
                part = cut(part, split, type.getDimSize(split),
                           own(rank, exchange.getAxes()));
              return join(parts, exchange.getGather(),
                          type.getDimSize(exchange.getGather()));
            })
            .Case([&](ShardSliceOp slice) {
              return cut(operands[rank], slice.getDim(),
                         type.getDimSize(slice.getDim()),
                         own(rank, slice.getAxes()));
            })
            .Case([&](PermuteOp permute) {
              // From the rank whose position by `axes` is mine by `order`.
              return operands[group(rank, listOf(permute.getAxes()))[own(
                  rank, permute.getOrder())]];
            }));
  }
  return results;
}

} // namespace rota::test
