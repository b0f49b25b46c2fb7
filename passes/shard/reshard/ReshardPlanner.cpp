// SPDX-License-Identifier: Apache-2.0
//
// Dijkstra's search over layouts, and the ops of the plan that it finds.
#include "passes/shard/reshard/ReshardPlanner.h"
#include "ir/rota/cost/Machine.h"
#include "ir/rota/cost/Traffic.h"
#include "ir/rota/experts/Experts.h"
#include "passes/shard/reshard/ReshardMoves.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

#include <queue>

using namespace mlir;
using namespace mlir::rota;

using Kind = CollectiveKind;

ReshardCost ReshardPlan::cost() const {
  ReshardCost sum;
  for (const ReshardStep &step : steps)
    sum = sum + step.cost;
  return sum;
}

/// The time of bytes among the ranks of the axes, beside that of as many bytes
/// to nearest neighbours.
static double slowdown(ArrayRef<AxisRefAttr> axes, const Machine &machine,
                       MeshAttr mesh) {
  if (machine.network.size() == 1)
    return 1;
  constexpr double bytes = 1 << 30;
  MeshGroup group = groupOf(axes, mesh);
  double seconds = machine.secondsOfCollective(bytes, group) -
                   machine.secondsOfCollective(0, group);
  return seconds * machine.network.front().reached() / bytes;
}

double ReshardPlan::weightOn(const Machine &machine, MeshAttr mesh) const {
  double weight = 0;
  for (const ReshardStep &step : steps)
    if (step.cost.messages > 0)
      weight += double(step.cost.bytes) * slowdown(step.axes, machine, mesh) +
                double(step.cost.messages * ReshardCost::messageBytes);
  return weight;
}

//===----------------------------------------------------------------------===//
// Without a search
//===----------------------------------------------------------------------===//

ReshardPlan mlir::rota::gatherAll(RankedTensorType whole, ShardingAttr from,
                                  ShardingAttr to, MeshAttr mesh) {
  ReshardPlan plan;
  SmallVector<int64_t> shape = partShape(whole.getShape(), from, mesh);
  auto bytes = [&] {
    return int64_t(llvm::divideCeil(whole.getElementTypeBitWidth(), 8)) *
           llvm::product_of(shape);
  };
  auto addStep = [&](Kind kind, ArrayRef<AxisRefAttr> axes,
                     int64_t dim) -> ReshardStep & {
    ReshardStep &step = plan.steps.emplace_back();
    step.kind = kind;
    step.axes.assign(axes.begin(), axes.end());
    step.dim = dim;
    return step;
  };

  SmallVector<AxisRefAttr> sums;
  llvm::copy_if(from.getUnreduced(), std::back_inserter(sums),
                [&](AxisRefAttr ref) {
                  return !llvm::is_contained(to.getUnreduced(), ref);
                });
  sums = mergedAxes(sums, mesh);
  if (!sums.empty()) {
    ReshardStep &step = addStep(Kind::AllReduce, sums, -1);
    step.shape = shape;
    step.cost = {traffic::allReduce(bytes(), mesh.getSize(sums)), 1, 1};
  }
  // All dimensions that change are gathered before any is sliced, since an axis
  // may move from one dimension to another.
  SmallVector<std::pair<int64_t, SmallVector<AxisRefAttr>>> cuts;
  for (int64_t dim = 0; dim < whole.getRank(); ++dim) {
    auto before = mergedAxes(from.getDimensions()[dim].getAxes(), mesh);
    auto after = mergedAxes(to.getDimensions()[dim].getAxes(), mesh);
    if (before == after)
      continue;
    if (!after.empty())
      cuts.emplace_back(dim, after);
    if (before.empty())
      continue;
    int64_t part = bytes();
    shape[dim] = whole.getDimSize(dim);
    ReshardStep &step = addStep(Kind::AllGather, before, dim);
    step.shape = shape;
    step.cost = {traffic::allGather(part, mesh.getSize(before)), 1, 1};
  }
  for (auto &[dim, axes] : cuts) {
    shape[dim] = llvm::divideCeil(shape[dim], mesh.getSize(axes));
    ReshardStep &step = addStep(Kind::Slice, axes, dim);
    step.shape = shape;
    step.cost = {0, 0, 1};
  }
  return plan;
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

namespace {
/// A layout that the search has reached, and the last move of its path.
struct Reached {
  AxisLayout layout;
  ReshardCost cost;
  int previous = -1;
  ReshardMove move; // from there
  bool done = false;
};

class Search {
public:
  Search(const ReshardMoves &moves, const AxisLayout &from,
         const AxisLayout &to, const ReshardCost &bound, bool direct)
      : moves(moves), to(to), bound(bound), direct(direct) {
    reach(from, {}, -1, {});
  }

  /// The moves of a cheapest path; none when the search finds none within
  /// bounds.
  std::optional<std::vector<ReshardMove>> run();

private:
  /// Layouts whose moves are tried: enough for five axes that change place, a
  /// third of a second.
  static constexpr int kMaxDone = 5000;

  void reach(const AxisLayout &layout, const ReshardCost &cost, int previous,
             const ReshardMove &move);

  struct Waiting {
    ReshardCost cost;
    int number;
    bool operator>(const Waiting &other) const {
      if (cost < other.cost || other.cost < cost)
        return other.cost < cost;
      return number > other.number;
    }
  };

  const ReshardMoves &moves;
  const AxisLayout &to;
  ReshardCost bound; // costlier paths are not followed
  bool direct;
  std::vector<Reached> reached;
  llvm::StringMap<int> numbers; // in `reached`, by key
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> queue;
};
} // namespace

void Search::reach(const AxisLayout &layout, const ReshardCost &cost,
                   int previous, const ReshardMove &move) {
  if (bound < cost)
    return;
  auto [entry, isNew] = numbers.try_emplace(layout.key(), reached.size());
  int number = entry->second;
  if (isNew)
    reached.push_back({layout, cost, previous, move});
  else if (cost < reached[number].cost)
    reached[number] = {layout, cost, previous, move};
  else
    return;
  queue.push({cost, number});
}

std::optional<std::vector<ReshardMove>> Search::run() {
  for (int done = 0; !queue.empty() && done < kMaxDone;) {
    int number = queue.top().number;
    queue.pop();
    if (reached[number].done)
      continue;
    reached[number].done = true;
    ++done;
    AxisLayout layout = reached[number].layout;
    ReshardCost cost = reached[number].cost;
    if (layout == to) {
      std::vector<ReshardMove> path;
      for (int at = number; reached[at].previous >= 0;
           at = reached[at].previous)
        path.push_back(reached[at].move);
      std::reverse(path.begin(), path.end());
      return path;
    }
    for (const ReshardMove &move : moves.from(layout, direct))
      reach(move.result, cost + move.cost, number, move);
  }
  return std::nullopt;
}

/// Merges consecutive slices of one dimension, and consecutive permutations.
/// `layout` is the start of the path.
static std::vector<ReshardMove> merged(const ReshardMoves &moves,
                                       AxisLayout layout,
                                       ArrayRef<ReshardMove> path) {
  std::vector<ReshardMove> result;
  for (size_t begin = 0, end; begin < path.size(); begin = end) {
    Kind kind = path[begin].kind;
    end = begin + 1;
    if (kind == Kind::Slice || kind == Kind::Permute)
      while (end < path.size() && path[end].kind == kind)
        ++end;
    const AxisLayout &after = path[end - 1].result;
    if (kind == Kind::Permute) {
      if (!(layout == after))
        result.push_back(moves.permute(layout, after));
    } else if (kind == Kind::Slice) {
      for (size_t dim = 0; dim < layout.dimensions.size(); ++dim) {
        size_t had = layout.dimensions[dim].size();
        ArrayRef<Atom> cut = ArrayRef(after.dimensions[dim]).drop_front(had);
        if (cut.empty())
          continue;
        result.push_back(moves.slice(layout, dim, cut));
        layout = result.back().result;
      }
    } else {
      result.push_back(path[begin]);
    }
    layout = after;
  }
  return result;
}

static ReshardPlan planOf(const std::vector<ReshardMove> &path,
                          const ReshardMoves &moves, const AxisAtoms &atoms) {
  ReshardPlan plan;
  for (const ReshardMove &move : path) {
    ReshardStep &step = plan.steps.emplace_back();
    step.kind = move.kind;
    // The two lists of a permutation name the same parts.
    bool permutes = move.kind == Kind::Permute;
    step.axes = atoms.refsOf(move.axes, /*merge=*/!permutes);
    step.order = atoms.refsOf(move.order, /*merge=*/false);
    step.dim = move.dim;
    step.split = move.split;
    step.isRagged = move.isRagged;
    step.shape = moves.shapeOf(move.result);
    step.cost = move.cost;
  }
  return plan;
}

ReshardPlan mlir::rota::planReshard(RankedTensorType whole, ShardingAttr from,
                                    ShardingAttr to, MeshAttr mesh,
                                    std::optional<double> fill) {
  ReshardPlan plain = gatherAll(whole, from, to, mesh);
  std::optional<AxisAtoms> atoms = AxisAtoms::get(mesh, {from, to});
  if (!atoms || plain.steps.empty())
    return plain;
  AxisLayout begin = atoms->layoutOf(from), goal = atoms->layoutOf(to);
  ReshardMoves moves(whole, *atoms, begin, goal, fill);
  // The cost of the direct search bounds the full search, whose result may be
  // empty.
  ReshardPlan plan = plain;
  for (bool direct : {true, false})
    if (auto path = Search(moves, begin, goal, plan.cost(), direct).run())
      plan = planOf(merged(moves, begin, *path), moves, *atoms);
  return plan;
}

//===----------------------------------------------------------------------===//
// The ops
//===----------------------------------------------------------------------===//

static ArrayAttr axesAttr(OpBuilder &builder, ArrayRef<AxisRefAttr> axes) {
  return builder.getArrayAttr(SmallVector<Attribute>(axes.begin(), axes.end()));
}

static Value emitStep(OpBuilder &builder, Location loc, Value value,
                      const ReshardStep &step, StringRef reason,
                      const ReshardCounts &counts) {
  RankedTensorType type =
      cast<RankedTensorType>(value.getType()).clone(step.shape);
  ArrayAttr axes = axesAttr(builder, step.axes);
  switch (step.kind) {
  case Kind::AllGather:
    return AllGatherOp::create(builder, loc, type, value, step.dim, axes,
                               reason);
  case Kind::ReduceScatter:
    return ReduceScatterOp::create(builder, loc, type, value, step.dim, axes,
                                   reason);
  case Kind::AllReduce:
    return AllReduceOp::create(builder, loc, type, ReduceKind::Sum, value, axes,
                               reason);
  case Kind::AllToAll:
    if (step.isRagged)
      return RaggedAllToAllOp::create(builder, loc, type, value, counts.sent,
                                      counts.received, counts.blocks,
                                      counts.fill, step.dim, axes, reason);
    return AllToAllOp::create(builder, loc, type, value, step.dim, step.split,
                              axes, reason);
  case Kind::Slice:
    return ShardSliceOp::create(builder, loc, type, value, step.dim, axes,
                                reason);
  case Kind::Permute:
    return PermuteOp::create(builder, loc, type, value, axes,
                             axesAttr(builder, step.order), reason);
  }
  llvm_unreachable("every kind of step is an op");
}

Value mlir::rota::emitReshard(OpBuilder &builder, Location loc, Value local,
                              const ReshardPlan &plan, StringRef reason,
                              const ReshardCounts &counts) {
  for (const ReshardStep &step : plan.steps)
    local = emitStep(builder, loc, local, step, reason, counts);
  return local;
}
