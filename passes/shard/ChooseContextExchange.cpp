// SPDX-License-Identifier: Apache-2.0
//
// Whether attention over the context axis gathers its operands or lets keys and
// values travel, and in which order of the sequence.
#include "passes/shard/Passes.h"

#include "ir/rota/cost/Machine.h"
#include "ir/rota/cost/Traffic.h"
#include "ir/rota/sharding/Sharding.h"
#include "mlir/IR/Remarks.h"

namespace mlir::rota {
#define GEN_PASS_DEF_CHOOSECONTEXTEXCHANGE
#include "passes/shard/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

namespace {
/// The ranks of the context axis.
struct ContextRanks {
  Machine machine;
  MeshGroup group;
  int64_t count = 1;

  /// Seconds in which each rank sends 1 / `parts` of all values.
  double secondsOf(ArrayRef<Value> values, double parts) const {
    double seconds = 0;
    for (Value value : values)
      seconds +=
          machine.secondsOfMessage(double(bytesOfTensor(value)) / parts, group);
    return seconds;
  }
};

struct ChooseContextExchange
    : mlir::rota::impl::ChooseContextExchangeBase<ChooseContextExchange> {
  using ChooseContextExchangeBase::ChooseContextExchangeBase;
  void runOnOperation() override;

private:
  template <typename Op> LogicalResult choose(Op op);

  ContextRanks ranks;
};

/// Seconds of each exchange on one rank.
struct ExchangeTimes {
  double gather = 0, ring = 0;
  std::optional<double> balanced; // none where the op has no balanced order
};

/// The work and the transfers of a ring's steps.
struct RingSteps {
  SmallVector<double> work; // seconds of each step, the own block first
  double next = 0;          // seconds of keys and values to the next rank
  double back = 0;          // seconds of the values that go back to their block

  double seconds() const;
};
} // namespace

/// Values that have the length of the sequence and are gathered.
static SmallVector<Value> gathered(AttentionOp op) {
  return {op.getQuery(), op.getKey(), op.getValue()};
}
static SmallVector<Value> gathered(AttentionGradOp op) {
  return {op.getQuery(), op.getKey(), op.getValue(), op.getOutput(),
          op.getCotangent()};
}

/// Values that go back to their block after each but the own: none, or
/// cotangents.
static SmallVector<Value> returning(AttentionOp) { return {}; }
static SmallVector<Value> returning(AttentionGradOp op) {
  return {op.getKeyCotangent(), op.getValueCotangent()};
}

/// Values of which a balanced ring exchanges half, before its steps and after.
template <typename Op> static SmallVector<Value> swapped(Op op) {
  SmallVector<Value> values = gathered(op);
  values.push_back(op.getLogsumexp());
  if constexpr (std::is_same_v<Op, AttentionOp>)
    values.push_back(op.getOutput());
  else
    llvm::append_values(values, op.getQueryCotangent(), op.getKeyCotangent(),
                        op.getValueCotangent());
  return values;
}

/// Beside the work on a block the next one comes, and the cotangents of the one
/// before go. Those of the last block have no work beside them.
double RingSteps::seconds() const {
  double seconds = work.size() > 1 ? back : 0;
  for (auto [distance, step] : llvm::enumerate(work)) {
    double beside = distance + 1 < work.size() ? next : 0;
    if (distance > 1)
      beside += back;
    seconds += std::max(step, beside);
  }
  return seconds;
}

/// A ring's steps on the last rank, whose queries see the keys of all others,
/// while the cores of a host's other ranks help it. All pairs of the op are
/// `work` seconds.
template <typename Op>
static RingSteps stepsOfLastRank(Op op, const ContextRanks &ranks,
                                 double work) {
  RingSteps steps{{},
                  ranks.secondsOf({op.getKey(), op.getValue()}, ranks.count),
                  ranks.secondsOf(returning(op), ranks.count)};
  AttentionMask whole = op.getMask();
  for (int64_t distance = 0; distance < ranks.count; ++distance) {
    auto block = AttentionMask::of(whole.sequence / ranks.count, op.getWindow(),
                                   op.getBidirectional(), distance);
    if (block.pairs() == 0)
      break;
    steps.work.push_back(work *
                         ranks.machine.shareOfRanks(distance, ranks.count) *
                         block.pairs() / whole.pairs());
  }
  return steps;
}

/// The steps of a balanced ring on any rank: two of the four pairs of
/// half-blocks, in the first step one of them and two causal ones. What travels
/// does so in halves.
template <typename Op>
static RingSteps balancedSteps(Op op, const ContextRanks &ranks, double work) {
  auto halves = double(2 * ranks.count);
  RingSteps steps{{},
                  2 * ranks.secondsOf({op.getKey(), op.getValue()}, halves),
                  2 * ranks.secondsOf(returning(op), halves)};
  AttentionMask whole = op.getMask();
  int64_t half = whole.sequence / (2 * ranks.count);
  double causal = AttentionMask::of(half, std::nullopt, false).pairs();
  double full = AttentionMask::of(half, std::nullopt, true).pairs();
  steps.work.assign(ranks.count, work * 2 * full / whole.pairs());
  steps.work.front() = work * (full + 2 * causal) / whole.pairs();
  return steps;
}

/// Why attention of this form has no balanced order; empty: it has one.
template <typename Op> static StringRef whyUnbalanced(Op op) {
  if (op.getWindow())
    return "a window has no balanced order";
  if (op.getDocuments())
    return "documents have no balanced order";
  return op.getBidirectional() ? "ranks have equal work in any order" : "";
}

/// Whether each rank has two half-blocks.
template <typename Op> static bool hasHalves(Op op, int64_t ranks) {
  return op.getMask().sequence % (2 * ranks) == 0;
}

template <typename Op>
static ExchangeTimes timesOf(Op op, const ContextRanks &ranks) {
  double work = ranks.machine.secondsOfOp(op);
  auto count = double(ranks.count);
  ExchangeTimes times;
  times.gather = work + ranks.secondsOf(gathered(op), count / (count - 1));
  times.ring = stepsOfLastRank(op, ranks, work).seconds();
  if (whyUnbalanced(op).empty() && hasHalves(op, ranks.count))
    times.balanced = balancedSteps(op, ranks, work).seconds() +
                     ranks.secondsOf(swapped(op), 2 * count);
  return times;
}

/// The exchange that takes the least time, of equal ones the first.
static ContextExchange fastest(const ExchangeTimes &times) {
  bool isRing = times.ring < times.gather;
  if (times.balanced && *times.balanced < std::min(times.ring, times.gather))
    return ContextExchange::BalancedRing;
  return isRing ? ContextExchange::Ring : ContextExchange::Gather;
}

static StringRef describe(ContextExchange exchange) {
  switch (exchange) {
  case ContextExchange::Gather:
    return "queries, keys and values are gathered";
  case ContextExchange::Ring:
    return "keys and values travel around a ring";
  case ContextExchange::BalancedRing:
    return "keys and values travel around a balanced ring";
  case ContextExchange::Auto:
    break;
  }
  llvm_unreachable("auto is no exchange of an op");
}

template <typename Op> LogicalResult ChooseContextExchange::choose(Op op) {
  if (op.getBidirectional() && op.getWindow())
    return success();
  ExchangeTimes times = timesOf(op, ranks);
  ContextExchange chosen = exchange;
  StringRef reason;
  if (chosen == ContextExchange::Auto)
    chosen = fastest(times);
  if (chosen == ContextExchange::BalancedRing && !times.balanced) {
    chosen = ContextExchange::Ring;
    reason = whyUnbalanced(op);
    if (reason.empty())
      return op.emitOpError("expected a sequence of a multiple of ")
             << 2 * ranks.count << " positions, two halves for each of the "
             << ranks.count << " ranks of a balanced ring, got "
             << op.getMask().sequence;
  }
  auto remark = remark::passed(
      op.getLoc(),
      remark::RemarkOpts::name("context-exchange").category("shard"));
  remark << describe(chosen) << remark::metric("GatherMs", times.gather * 1e3)
         << remark::metric("RingMs", times.ring * 1e3);
  if (times.balanced)
    remark << remark::metric("BalancedRingMs", *times.balanced * 1e3);
  if (!reason.empty())
    remark << remark::reason("{0}", reason);
  if (chosen == ContextExchange::Gather)
    return success();
  op.setRing(true);
  op.setBalanced(chosen == ContextExchange::BalancedRing);
  ++rings;
  return success();
}

void ChooseContextExchange::runOnOperation() {
  MeshAttr mesh = meshOf(getOperation());
  ranks.count = mesh.getSize(MeshAxis::Context);
  if (exchange == ContextExchange::Gather || ranks.count == 1)
    return;
  ranks.machine = machineOf(getOperation());
  ranks.group =
      groupOf(AxisRefAttr::get(&getContext(), MeshAxis::Context), mesh);
  WalkResult result = getOperation().walk([&](Operation *op) -> WalkResult {
    if (auto attention = dyn_cast<AttentionOp>(op))
      return choose(attention);
    auto grad = dyn_cast<AttentionGradOp>(op);
    return grad ? choose(grad) : success();
  });
  if (result.wasInterrupted())
    signalPassFailure();
}
