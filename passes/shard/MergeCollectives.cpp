// SPDX-License-Identifier: Apache-2.0
//
// Merges or cancels collectives without changing values.
#include "ir/rota/sharding/Sharding.h"
#include "passes/shard/Passes.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::rota {
#define GEN_PASS_DEF_MERGECOLLECTIVES
#include "passes/shard/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

namespace {

SmallVector<AxisRefAttr> refs(ArrayAttr axes) {
  return llvm::to_vector(axes.getAsRange<AxisRefAttr>());
}

/// The axes of both lists, in one.
ArrayAttr concat(Operation *op, ArrayAttr first, ArrayAttr second) {
  SmallVector<AxisRefAttr> all = refs(first);
  llvm::append_range(all, refs(second));
  SmallVector<AxisRefAttr> merged = mergedAxes(all, meshOf(op));
  return ArrayAttr::get(op->getContext(),
                        SmallVector<Attribute>(merged.begin(), merged.end()));
}

/// The same, of sets: in the mesh's order.
ArrayAttr unite(Operation *op, ArrayAttr first, ArrayAttr second) {
  SmallVector<Attribute> all(first.begin(), first.end());
  all.append(second.begin(), second.end());
  llvm::sort(all, [](Attribute a, Attribute b) {
    auto left = cast<AxisRefAttr>(a), right = cast<AxisRefAttr>(b);
    return std::tuple(left.getAxis(), left.getBefore()) <
           std::tuple(right.getAxis(), right.getBefore());
  });
  return concat(op, ArrayAttr::get(op->getContext(), all),
                ArrayAttr::get(op->getContext(), {}));
}

bool disjoint(Operation *op, ArrayAttr first, ArrayAttr second) {
  MeshAttr mesh = meshOf(op);
  return llvm::none_of(refs(first), [&](AxisRefAttr a) {
    return llvm::any_of(refs(second), [&](AxisRefAttr b) {
      return a == b || overlap(a, b, mesh);
    });
  });
}

bool sameGroup(Operation *op, ArrayAttr first, ArrayAttr second) {
  ArrayAttr none = ArrayAttr::get(op->getContext(), {});
  return unite(op, first, none) == unite(op, second, none);
}

bool sameOrder(Operation *op, ArrayAttr first, ArrayAttr second) {
  ArrayAttr none = ArrayAttr::get(op->getContext(), {});
  return concat(op, first, none) == concat(op, second, none);
}

int64_t sizeOf(Value value, int64_t dim) {
  return cast<RankedTensorType>(value.getType()).getDimSize(dim);
}

/// True when the parts `part` of `whole` along `dim`, cut in two steps through
/// `between`, are those cut at once.
bool cutsAlike(Value between, Value part, int64_t dim, int64_t ranks) {
  return sizeOf(between, dim) == ranks * sizeOf(part, dim);
}

template <typename Op> Op onlyUse(Value value) {
  auto op = value.getDefiningOp<Op>();
  return op && op->hasOneUse() ? op : Op();
}

/// A rewrite of ops of one kind; counts how often it is done.
template <typename Op> class Counted : public OpRewritePattern<Op> {
public:
  using Rewrite = LogicalResult (*)(Op op, PatternRewriter &rewriter);
  Counted(MLIRContext *context, Rewrite rewrite, Pass::Statistic &count)
      : OpRewritePattern<Op>(context), rewrite(rewrite), count(count) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    LogicalResult result = rewrite(op, rewriter);
    if (succeeded(result))
      ++count;
    return result;
  }

private:
  const Rewrite rewrite;
  Pass::Statistic &count;
};

/// A group of one rank.
template <typename Op>
LogicalResult dropLonely(Op op, PatternRewriter &rewriter) {
  if (meshOf(op).getSize(refs(op.getAxes())) != 1)
    return failure();
  rewriter.replaceOp(op, op->getOperand(0));
  return success();
}

/// Replaces a collective by an equal one of the same value, earlier in the
/// block.
template <typename Op>
LogicalResult mergeEqual(Op op, PatternRewriter &rewriter) {
  auto withoutReason = [](Op op) {
    NamedAttrList attributes(op->getAttrDictionary());
    attributes.erase(op.getReasonAttrName());
    return attributes.getDictionary(op->getContext());
  };
  for (Operation *user : op->getOperand(0).getUsers()) {
    auto other = dyn_cast<Op>(user);
    if (!other || other == op || other->getBlock() != op->getBlock() ||
        !other->isBeforeInBlock(op) || other.getType() != op.getType() ||
        withoutReason(other) != withoutReason(op))
      continue;
    rewriter.replaceOp(op, other);
    return success();
  }
  return failure();
}

/// A gather of a slice gives the whole value.
LogicalResult cancelGather(AllGatherOp gather, PatternRewriter &rewriter) {
  auto slice = gather.getInput().getDefiningOp<ShardSliceOp>();
  if (!slice || slice.getDim() != gather.getDim() ||
      !sameOrder(gather, slice.getAxes(), gather.getAxes()) ||
      slice.getInput().getType() != gather.getType())
    return failure();
  rewriter.replaceOp(gather, slice.getInput());
  return success();
}

/// A slice of a gather gives the rank's own part.
LogicalResult cancelSlice(ShardSliceOp slice, PatternRewriter &rewriter) {
  auto gather = slice.getInput().getDefiningOp<AllGatherOp>();
  if (!gather || slice.getDim() != gather.getDim() ||
      !sameOrder(slice, slice.getAxes(), gather.getAxes()))
    return failure();
  rewriter.replaceOp(slice, gather.getInput());
  return success();
}

/// Whether a rank sends to its own position, counted in another order.
bool keepsPositions(PermuteOp permute) {
  return permute.getShift() == 0 && !permute.getMirrored();
}

/// A permutation and its inverse, or one that moves nothing.
LogicalResult cancelPermute(PermuteOp permute, PatternRewriter &rewriter) {
  auto inner = permute.getInput().getDefiningOp<PermuteOp>();
  if (!keepsPositions(permute))
    return failure();
  bool inverse = inner && keepsPositions(inner) &&
                 inner.getAxes() == permute.getOrder() &&
                 inner.getOrder() == permute.getAxes();
  if (permute.getAxes() != permute.getOrder() && !inverse)
    return failure();
  rewriter.replaceOp(permute, inverse ? inner.getInput() : permute.getInput());
  return success();
}

/// A sum that is scattered and then gathered by all is an all-reduce.
LogicalResult gatherOfScatter(AllGatherOp gather, PatternRewriter &rewriter) {
  auto scatter = onlyUse<ReduceScatterOp>(gather.getInput());
  if (!scatter || scatter.getDim() != gather.getDim() ||
      !sameOrder(gather, scatter.getAxes(), gather.getAxes()) ||
      scatter.getInput().getType() != gather.getType())
    return failure();
  rewriter.replaceOpWithNewOp<AllReduceOp>(
      gather, gather.getType(), ReduceKind::Sum, scatter.getInput(),
      scatter.getAxes(), scatter.getReason());
  return success();
}

/// A sum of which each rank of the group keeps its part is a reduce-scatter; a
/// part along other axes is cut before it is summed.
LogicalResult sliceOfReduce(ShardSliceOp slice, PatternRewriter &rewriter) {
  auto reduce = onlyUse<AllReduceOp>(slice.getInput());
  if (!reduce)
    return failure();
  if (reduce.getKind() == ReduceKind::Sum &&
      sameGroup(slice, slice.getAxes(), reduce.getAxes())) {
    rewriter.replaceOpWithNewOp<ReduceScatterOp>(
        slice, slice.getType(), reduce.getInput(), slice.getDim(),
        slice.getAxes(), reduce.getReason());
  } else if (disjoint(slice, slice.getAxes(), reduce.getAxes())) {
    Value part = ShardSliceOp::create(rewriter, slice.getLoc(), slice.getType(),
                                      reduce.getInput(), slice.getDim(),
                                      slice.getAxes(), slice.getReason());
    rewriter.replaceOpWithNewOp<AllReduceOp>(
        slice, slice.getType(), reduce.getKind(), part, reduce.getAxes(),
        reduce.getReason());
  } else {
    return failure();
  }
  return success();
}

/// The sum or difference of two sums over ranks is the sum of theirs.
template <typename Add>
LogicalResult addOfReduces(Add add, PatternRewriter &rewriter) {
  auto merge = [&](auto first, auto second, auto build) -> LogicalResult {
    Value sum = Add::create(rewriter, add.getLoc(), first.getInput(),
                            second.getInput());
    build(sum);
    return success();
  };
  auto left = onlyUse<AllReduceOp>(add.getLhs());
  auto right = onlyUse<AllReduceOp>(add.getRhs());
  if (left && right && left.getKind() == ReduceKind::Sum &&
      right.getKind() == ReduceKind::Sum && left.getAxes() == right.getAxes())
    return merge(left, right, [&](Value sum) {
      rewriter.replaceOpWithNewOp<AllReduceOp>(
          add, sum.getType(), ReduceKind::Sum, sum, left.getAxes(),
          left.getReason());
    });
  auto first = onlyUse<ReduceScatterOp>(add.getLhs());
  auto second = onlyUse<ReduceScatterOp>(add.getRhs());
  if (first && second && first.getDim() == second.getDim() &&
      first.getAxes() == second.getAxes() &&
      first.getInput().getType() == second.getInput().getType())
    return merge(first, second, [&](Value sum) {
      rewriter.replaceOpWithNewOp<ReduceScatterOp>(
          add, add.getType(), sum, first.getDim(), first.getAxes(),
          first.getReason());
    });
  return failure();
}

/// All-reduces over different axes, one after the other.
LogicalResult nestedReduces(AllReduceOp reduce, PatternRewriter &rewriter) {
  auto inner = onlyUse<AllReduceOp>(reduce.getInput());
  if (!inner || inner.getKind() != reduce.getKind() ||
      !disjoint(reduce, inner.getAxes(), reduce.getAxes()))
    return failure();
  rewriter.replaceOpWithNewOp<AllReduceOp>(
      reduce, reduce.getType(), reduce.getKind(), inner.getInput(),
      unite(reduce, inner.getAxes(), reduce.getAxes()), inner.getReason());
  return success();
}

/// Two gathers of one dimension: the inner one's axes are the minor ones.
LogicalResult nestedGathers(AllGatherOp gather, PatternRewriter &rewriter) {
  auto inner = onlyUse<AllGatherOp>(gather.getInput());
  if (!inner || inner.getDim() != gather.getDim() ||
      !disjoint(gather, inner.getAxes(), gather.getAxes()) ||
      !cutsAlike(inner, inner.getInput(), inner.getDim(),
                 meshOf(gather).getSize(refs(inner.getAxes()))))
    return failure();
  rewriter.replaceOpWithNewOp<AllGatherOp>(
      gather, gather.getType(), inner.getInput(), gather.getDim(),
      concat(gather, gather.getAxes(), inner.getAxes()), inner.getReason());
  return success();
}

/// Two slices, or two reduce-scatters, of one dimension: the outer one's axes
/// are the minor ones.
template <typename Op>
LogicalResult nestedCuts(Op cut, PatternRewriter &rewriter) {
  auto inner = onlyUse<Op>(cut.getInput());
  if (!inner || inner.getDim() != cut.getDim() ||
      !disjoint(cut, inner.getAxes(), cut.getAxes()) ||
      !cutsAlike(inner, cut, cut.getDim(),
                 meshOf(cut).getSize(refs(cut.getAxes()))))
    return failure();
  rewriter.replaceOpWithNewOp<Op>(
      cut, cut.getType(), inner.getInput(), cut.getDim(),
      concat(cut, inner.getAxes(), cut.getAxes()), inner.getReason());
  return success();
}

struct MergeCollectives
    : mlir::rota::impl::MergeCollectivesBase<MergeCollectives> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    auto add = [&]<typename... Op>(
                   Pass::Statistic &count,
                   LogicalResult (*...rewrites)(Op, PatternRewriter &)) {
      (patterns.add<Counted<Op>>(context, rewrites, count), ...);
    };
    add(cancelled, dropLonely<AllGatherOp>, dropLonely<ReduceScatterOp>,
        dropLonely<AllReduceOp>, dropLonely<AllToAllOp>,
        dropLonely<ShardSliceOp>, dropLonely<PermuteOp>, cancelGather,
        cancelSlice, cancelPermute);
    add(equal, mergeEqual<AllGatherOp>, mergeEqual<ReduceScatterOp>,
        mergeEqual<AllReduceOp>, mergeEqual<AllToAllOp>,
        mergeEqual<ShardSliceOp>, mergeEqual<PermuteOp>);
    add(scattered, sliceOfReduce);
    add(combined, gatherOfScatter, addOfReduces<arith::AddFOp>,
        addOfReduces<arith::SubFOp>, nestedReduces, nestedGathers,
        nestedCuts<ShardSliceOp>, nestedCuts<ReduceScatterOp>);
    GreedyRewriteConfig config;
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled)
        .enableConstantCSE(false)
        .enableFolding(false);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};

} // namespace
