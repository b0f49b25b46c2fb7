// SPDX-License-Identifier: Apache-2.0
//
// Whether attention over the context axis gathers its operands or lets keys and
// values travel.
#include "passes/shard/Passes.h"

#include "ir/rota/AssumedSpeed.h"
#include "ir/rota/Sharding.h"
#include "ir/rota/Traffic.h"
#include "mlir/IR/Remarks.h"

namespace mlir::rota {
#define GEN_PASS_DEF_CHOOSECONTEXTEXCHANGE
#include "passes/shard/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

namespace {
struct ChooseContextExchange
    : mlir::rota::impl::ChooseContextExchangeBase<ChooseContextExchange> {
  using ChooseContextExchangeBase::ChooseContextExchangeBase;
  void runOnOperation() override;

private:
  template <typename Op> void choose(Op op, int64_t ranks);
};

/// Seconds of both exchanges on one rank.
struct ExchangeTimes {
  double gather = 0, ring = 0;
};
} // namespace

/// What has the length of the sequence and is gathered.
static SmallVector<Value> gathered(AttentionOp op) {
  return {op.getQuery(), op.getKey(), op.getValue()};
}
static SmallVector<Value> gathered(AttentionGradOp op) {
  return {op.getQuery(), op.getKey(), op.getValue(), op.getOutput(),
          op.getCotangent()};
}

/// What goes back to its block after each but the own: nothing, or cotangents.
static SmallVector<Value> returning(AttentionOp) { return {}; }
static SmallVector<Value> returning(AttentionGradOp op) {
  return {op.getKeyCotangent(), op.getValueCotangent()};
}

/// Seconds in which each rank sends `parts` of its 1 / `ranks` of all values.
static double secondsOf(ArrayRef<Value> values, int64_t parts, int64_t ranks) {
  double seconds = 0;
  for (Value value : values)
    seconds += AssumedSpeed().secondsOfTransfer(double(bytesOfTensor(value)) *
                                                double(parts) / double(ranks));
  return seconds;
}

/// The shares of `op`'s pairs in each block that the last rank works on, its
/// own first.
template <typename Op>
static SmallVector<double> sharesOfLastRank(Op op, int64_t ranks) {
  AttentionMask whole = op.getMask();
  SmallVector<double> shares;
  for (int64_t behind = 0; behind < ranks; ++behind) {
    auto block = AttentionMask::of(whole.sequence / ranks, op.getWindow(),
                                   op.getBidirectional(), behind);
    if (block.pairs() == 0)
      break;
    shares.push_back(block.pairs() / whole.pairs());
  }
  return shares;
}

template <typename Op> static ExchangeTimes timesOf(Op op, int64_t ranks) {
  double work = AssumedSpeed().secondsOfWork(op.getCost().flops);
  ExchangeTimes times;
  times.gather = work + secondsOf(gathered(op), ranks - 1, ranks);
  // Beside the work on a block the next one comes, and the cotangents of the
  // one before go. Those of the last block have no work beside them.
  double next = secondsOf({op.getKey(), op.getValue()}, 1, ranks);
  double back = secondsOf(returning(op), 1, ranks);
  SmallVector<double> shares = sharesOfLastRank(op, ranks);
  for (auto [behind, share] : llvm::enumerate(shares)) {
    double beside = behind + 1 < shares.size() ? next : 0;
    if (behind > 1)
      beside += back;
    times.ring += std::max(share * work, beside);
  }
  if (shares.size() > 1)
    times.ring += back;
  return times;
}

template <typename Op>
void ChooseContextExchange::choose(Op op, int64_t ranks) {
  if (op.getBidirectional() && op.getWindow())
    return;
  ExchangeTimes times = timesOf(op, ranks);
  bool isRing = exchange == ContextExchange::Ring || times.ring < times.gather;
  remark::passed(op.getLoc(),
                 remark::RemarkOpts::name("context-exchange").category("shard"))
      << (isRing ? "keys and values travel around a ring"
                 : "queries, keys and values are gathered")
      << remark::metric("GatherMs", times.gather * 1e3)
      << remark::metric("RingMs", times.ring * 1e3);
  if (!isRing)
    return;
  op.setRing(true);
  ++rings;
}

void ChooseContextExchange::runOnOperation() {
  int64_t ranks = meshOf(getOperation()).getSize(MeshAxis::Context);
  if (exchange == ContextExchange::Gather || ranks == 1)
    return;
  getOperation().walk([&](Operation *op) {
    if (auto attention = dyn_cast<AttentionOp>(op))
      choose(attention, ranks);
    else if (auto grad = dyn_cast<AttentionGradOp>(op))
      choose(grad, ranks);
  });
}
