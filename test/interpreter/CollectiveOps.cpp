// SPDX-License-Identifier: Apache-2.0
//
// Collectives, and the ops whose result depends on the rank.
#include "ir/rota/experts/Experts.h"
#include "test/interpreter/MeshRun.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace ::rota::interpreter;
using namespace mlir;
using namespace mlir::rota;

namespace {

/// The groups of a collective's axes, and what their ranks hold.
class Exchange {
public:
  Exchange(MeshAttr mesh, ArrayAttr axes, MutableArrayRef<Frame> ranks)
      : group(mesh, llvm::to_vector(axes.getAsRange<AxisRefAttr>())),
        ranks(ranks) {}

  int64_t size() const { return group.size(); }
  int64_t positionOf(int64_t rank) const { return group.positionOf(rank); }
  int64_t member(int64_t rank, int64_t position) const {
    return group.member(rank, position);
  }

  /// The values of the group of `rank`, in the group's order.
  SmallVector<Tensor> held(Value value, int64_t rank) const {
    SmallVector<Tensor> tensors;
    for (int64_t position = 0; position < group.size(); ++position)
      tensors.push_back(ranks[group.member(rank, position)].get(value));
    return tensors;
  }

  /// Sets `result` on each rank to what `compute` makes for the rank's number.
  template <typename Compute>
  void set(Value result, const Compute &compute) const {
    for (auto [rank, frame] : llvm::enumerate(ranks))
      frame.set(result, compute(int64_t(rank)));
  }

private:
  AxisGroup group;
  MutableArrayRef<Frame> ranks;
};

} // namespace

static Tensor combine(ReduceKind kind, ArrayRef<Tensor> tensors) {
  Tensor result = tensors.front();
  for (const Tensor &tensor : tensors.drop_front())
    for (int64_t i = 0; i < result.size(); ++i)
      result[i] = kind == ReduceKind::Sum ? result[i] + tensor[i]
                                          : std::max(result[i], tensor[i]);
  return result;
}

static void run(AllGatherOp op, const Exchange &exchange) {
  int64_t dim = op.getDim(), size = shapeOf(op.getResult())[dim];
  exchange.set(op.getResult(), [&](int64_t rank) {
    return concatenate(exchange.held(op.getInput(), rank), dim, size);
  });
}

static void run(ReduceScatterOp op, const Exchange &exchange) {
  exchange.set(op.getResult(), [&](int64_t rank) {
    Tensor sum = combine(ReduceKind::Sum, exchange.held(op.getInput(), rank));
    return slice(sum, op.getDim(), exchange.positionOf(rank), exchange.size());
  });
}

static void run(AllReduceOp op, const Exchange &exchange) {
  exchange.set(op.getResult(), [&](int64_t rank) {
    return combine(op.getKind(), exchange.held(op.getInput(), rank));
  });
}

static void run(AllToAllOp op, const Exchange &exchange) {
  int64_t gather = op.getGather(), size = shapeOf(op.getResult())[gather];
  exchange.set(op.getResult(), [&](int64_t rank) {
    SmallVector<Tensor> pieces;
    for (const Tensor &held : exchange.held(op.getInput(), rank))
      pieces.push_back(slice(held, op.getSplit(), exchange.positionOf(rank),
                             exchange.size()));
    return concatenate(pieces, gather, size);
  });
}

/// The rows of a rank [B, R, E] in front of the counts [B, X] of each block.
static Tensor filled(Tensor rows, const Tensor &counts, int64_t blocks) {
  int64_t room = rows.dim(1) / blocks, width = rows.dim(2);
  int64_t experts = counts.dim(1) / blocks;
  for (int64_t block = 0; block < rows.dim(0) * blocks; ++block) {
    double count = 0;
    for (int64_t x = 0; x < experts; ++x)
      count += counts[block * experts + x];
    int64_t first = std::min(int64_t(count), room);
    std::fill(rows.elements.begin() + (block * room + first) * width,
              rows.elements.begin() + (block + 1) * room * width, 0.0);
  }
  return rows;
}

/// Runs the exchange. The sender and the receiver clear the rows that their
/// counts leave out: where the counts differ, rows get lost.
static void run(RaggedAllToAllOp op, const Exchange &exchange) {
  int64_t gather = op.getGather(), size = shapeOf(op.getResult())[gather];
  int64_t sent = op.getBlocks(), received = op.getBlocks();
  (gather == 0 ? sent : received) *= exchange.size();
  exchange.set(op.getResult(), [&](int64_t rank) {
    int64_t position = exchange.positionOf(rank);
    SmallVector<Tensor> pieces;
    for (auto [held, counts] :
         llvm::zip_equal(exchange.held(op.getInput(), rank),
                         exchange.held(op.getSent(), rank)))
      pieces.push_back(slice(filled(held, counts, sent), 1 - gather, position,
                             exchange.size()));
    return filled(concatenate(pieces, gather, size),
                  exchange.held(op.getReceived(), rank)[position], received);
  });
}

static void run(ShardSliceOp op, const Exchange &exchange) {
  exchange.set(op.getResult(), [&](int64_t rank) {
    const Tensor whole =
        exchange.held(op.getInput(), rank)[exchange.positionOf(rank)];
    return slice(whole, op.getDim(), exchange.positionOf(rank),
                 exchange.size());
  });
}

/// The rank at position p + shift of `order`, or n - 1 - p + shift, gets what
/// the one at p of `axes` has.
static void run(PermuteOp op, const Exchange &exchange, const Exchange &order) {
  exchange.set(op.getResult(), [&](int64_t rank) {
    int64_t ranks = exchange.size();
    int64_t from =
        (order.positionOf(rank) + ranks - int64_t(op.getShift())) % ranks;
    return exchange.held(op.getInput(),
                         rank)[op.getMirrored() ? ranks - 1 - from : from];
  });
}

static void run(ShardOffsetOp op, const Exchange &exchange) {
  exchange.set(op.getResult(), [&](int64_t rank) {
    int64_t position =
        (exchange.positionOf(rank) + int64_t(op.getShift())) % exchange.size();
    return Tensor::scalar(
        double(int64_t(op.getStart()) + position * int64_t(op.getFactor())));
  });
}

bool ::rota::interpreter::runCollective(Operation *op, MeshAttr mesh,
                                        MutableArrayRef<Frame> ranks) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<AllGatherOp, ReduceScatterOp, AllReduceOp, AllToAllOp,
            RaggedAllToAllOp, ShardSliceOp, ShardOffsetOp>([&](auto op) {
        run(op, Exchange(mesh, op.getAxes(), ranks));
        return true;
      })
      .Case([&](PermuteOp op) {
        run(op, Exchange(mesh, op.getAxes(), ranks),
            Exchange(mesh, op.getOrder(), ranks));
        return true;
      })
      .Default(false);
}
