// SPDX-License-Identifier: Apache-2.0
//
// Cuts gathers of what products read, and reductions of their partial sums,
// into pieces: one travels while the product of another is computed.
#include "passes/shard/Passes.h"
#include "passes/shard/Pieces.h"

#include "mlir/IR/Remarks.h"

namespace mlir::rota {
#define GEN_PASS_DEF_SPLITCOLLECTIVES
#include "passes/shard/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

static int64_t sizeOf(Value value, int64_t dim) {
  return cast<RankedTensorType>(value.getType()).getDimSize(dim);
}

namespace {

/// A dimension that is in one operand of a product and in its result.
struct FreeDimension {
  unsigned operand;
  int64_t inOperand, inResult;
};

/// The reduction of a product's partial sums over ranks, and one way to cut it.
struct Reduction {
  CollectiveOpInterface collective;
  EinsumOp product;
  unsigned operand;        // the operand of the product that is cut too
  Cut source, sum, result; // cuts of that operand, the product, the reduction
  int64_t size;            // pieces divide it

  int64_t copiedBytes() const {
    return source.copiedBytes(product->getOperand(operand)) +
           result.copiedBytes(collective->getResult(0));
  }
};

/// A gather of what products read, and one way to cut it.
struct Gather {
  CollectiveOpInterface op;
  Cut part, whole; // cuts of the operand and of the result
  int64_t size;    // pieces divide it

  Value result() const { return op->getResult(0); }
  /// Bytes that are copied for pieces, and for a reader of the whole.
  int64_t copiedBytes() const {
    return part.copiedBytes(op->getOperand(0)) + whole.copiedBytes(result());
  }
};

/// A product that takes pieces of a gather.
struct PieceReader {
  Operation *product;
  unsigned operand;
  Cut result;
};

struct SplitCollectives
    : mlir::rota::impl::SplitCollectivesBase<SplitCollectives> {
  using SplitCollectivesBase::SplitCollectivesBase;
  void runOnOperation() override;

private:
  bool isAuto() const { return tensorExchange == TensorExchange::Auto; }
  void remarkPieces(Operation *op, int64_t pieces, const PieceTimes &times);
  void splitReduction(CollectiveOpInterface collective);
  SmallVector<PieceReader> readersOf(const Gather &gather, int64_t pieces);
  void splitGather(AllGatherOp op);

  Machine machine;
};

} // namespace

static SmallVector<FreeDimension> freeDimensions(EinsumOp product) {
  SmallVector<FreeDimension> dimensions;
  auto [lhs, rhs, result] = product.getLetters();
  for (auto [index, letter] : llvm::enumerate(result)) {
    size_t left = lhs.find(letter), right = rhs.find(letter);
    bool isLeft = left != StringRef::npos, isRight = right != StringRef::npos;
    if (isLeft != isRight)
      dimensions.push_back(
          {isLeft ? 0u : 1u, int64_t(isLeft ? left : right), int64_t(index)});
  }
  return dimensions;
}

void SplitCollectives::remarkPieces(Operation *op, int64_t pieces,
                                    const PieceTimes &times) {
  remark::passed(op->getLoc(),
                 remark::RemarkOpts::name("tensor-exchange").category("shard"))
      << "pieces travel beside a product" << remark::metric("Pieces", pieces)
      << remark::metric("GatherMs", times.whole * 1e3)
      << remark::metric("RingMs", times.pieces * 1e3);
}

static bool sumsUp(Operation *op) {
  auto reduce = dyn_cast<AllReduceOp>(op);
  return isa<ReduceScatterOp>(op) ||
         (reduce && reduce.getKind() == ReduceKind::Sum);
}

/// All ways to cut the reduction along one dimension of its product's result,
/// those that copy the fewest bytes first.
static SmallVector<Reduction> waysToCut(CollectiveOpInterface collective) {
  SmallVector<Reduction> ways;
  Value sum = collective->getOperand(0), target = collective->getResult(0);
  auto product = sum.getDefiningOp<EinsumOp>();
  if (!sumsUp(collective) || !product || !sum.hasOneUse())
    return ways;
  for (const FreeDimension &free : freeDimensions(product)) {
    int64_t dim = free.inResult, part = sizeOf(target, dim);
    int64_t ranks = sizeOf(sum, dim) == part ? 1 : trafficOf(collective).ranks;
    if (ranks * part == sizeOf(sum, dim)) // no padded parts
      ways.push_back({collective,
                      product,
                      free.operand,
                      {free.inOperand, ranks},
                      {dim, ranks},
                      {dim},
                      part});
  }
  llvm::sort(ways, [](const Reduction &a, const Reduction &b) {
    return std::tuple(a.copiedBytes(), a.result.dim) <
           std::tuple(b.copiedBytes(), b.result.dim);
  });
  return ways;
}

static void apply(const Reduction &reduction, int64_t pieces) {
  Operation *collective = reduction.collective;
  Operation *product = reduction.product;
  OpBuilder builder(collective);
  SmallVector<Value> results;
  for (Value piece : cutPieces(builder, product->getOperand(reduction.operand),
                               reduction.source, pieces)) {
    Value sum = pieceOfOp(builder, product, reduction.operand, piece,
                          reduction.sum, pieces);
    results.push_back(
        pieceOfOp(builder, collective, 0, sum, reduction.result, pieces));
  }
  collective->getResult(0).replaceAllUsesWith(joinPieces(
      builder, collective->getResult(0).getType(), reduction.result, results));
  collective->erase();
  product->erase();
}

/// Of the ways, `ring` takes the first that has pieces, and `auto` the one that
/// saves most time, if any does.
void SplitCollectives::splitReduction(CollectiveOpInterface collective) {
  SmallVector<Reduction> ways = waysToCut(collective);
  Traffic traffic = trafficOf(collective);
  const Reduction *best = nullptr;
  int64_t bestCount = 1;
  PieceTimes times;
  for (const Reduction &way : ways)
    for (int64_t count = kMostPieces; count > 1; count /= 2) {
      PieceTimes own = timesOfPieces(machine, traffic, way.product,
                                     way.copiedBytes(), count);
      bool isBetter = isAuto() ? own.saved() > times.saved() : !best;
      if (way.size % count != 0 || !isBetter)
        continue;
      best = &way;
      bestCount = count;
      times = own;
    }
  if (!best)
    return;
  remarkPieces(collective, bestCount, times);
  apply(*best, bestCount);
  ++reductions;
}

/// The way to cut the gather that copies the fewest bytes.
static std::optional<Gather> wayToCut(AllGatherOp op) {
  std::optional<Gather> best;
  auto shape = cast<RankedTensorType>(op.getInput().getType()).getShape();
  for (auto [index, size] : llvm::enumerate(shape)) {
    auto dim = int64_t(index);
    int64_t ranks = sizeOf(op.getResult(), dim) / size;
    Gather way{op, {dim}, {dim, ranks}, size};
    if (size % 2 == 0 && size * ranks == sizeOf(op.getResult(), dim) &&
        (!best || way.copiedBytes() < best->copiedBytes()))
      best = way;
  }
  return best;
}

/// As many pieces as divide the gather: by costs, so many that a piece travels
/// for longer than two starts of transfers take.
static int64_t piecesOf(const Machine &machine, const Gather &gather,
                        bool byCosts) {
  Traffic traffic = trafficOf(gather.op);
  auto secondsOf = [&](double bytes) {
    return machine.secondsOfCollective(bytes, traffic.group);
  };
  for (int64_t count = kMostPieces; count > 1; count /= 2)
    if (gather.size % count == 0 &&
        (!byCosts ||
         secondsOf(double(traffic.bytes) / double(count)) > 3 * secondsOf(0)))
      return count;
  return 1;
}

/// How a product reads pieces of the gather, if its result has pieces, too.
static std::optional<PieceReader> readerOf(const Gather &gather,
                                           Operation *user) {
  auto product = dyn_cast<EinsumOp>(user);
  if (!product || llvm::count(product->getOperands(), gather.result()) != 1)
    return std::nullopt;
  for (const FreeDimension &free : freeDimensions(product))
    if (product->getOperand(free.operand) == gather.result() &&
        free.inOperand == gather.whole.dim)
      return PieceReader{
          user, free.operand, {free.inResult, gather.whole.ranks}};
  return std::nullopt;
}

/// The products that take pieces. Each is asked for itself.
SmallVector<PieceReader> SplitCollectives::readersOf(const Gather &gather,
                                                     int64_t pieces) {
  SmallVector<PieceReader> readers;
  Traffic traffic = trafficOf(gather.op);
  for (Operation *user : gather.result().getUsers()) {
    std::optional<PieceReader> reader = readerOf(gather, user);
    if (!reader)
      continue;
    int64_t copied =
        gather.copiedBytes() + reader->result.copiedBytes(user->getResult(0));
    PieceTimes times = timesOfPieces(machine, traffic, user, copied, pieces);
    if (isAuto() && times.saved() <= 0)
      continue;
    remarkPieces(user, pieces, times);
    readers.push_back(*reader);
  }
  return readers;
}

/// Puts the pieces together in front of the first that reads the whole.
static void joinForOthers(const Gather &gather, ArrayRef<Value> pieces) {
  Value whole = gather.result();
  if (whole.use_empty())
    return;
  Operation *first =
      *llvm::min_element(whole.getUsers(), [](Operation *a, Operation *b) {
        return a->isBeforeInBlock(b);
      });
  OpBuilder builder(first);
  whole.replaceAllUsesWith(
      joinPieces(builder, whole.getType(), gather.whole, pieces));
}

void SplitCollectives::splitGather(AllGatherOp op) {
  std::optional<Gather> way = wayToCut(op);
  int64_t pieces = way ? piecesOf(machine, *way, isAuto()) : 1;
  SmallVector<PieceReader> readers;
  if (pieces > 1)
    readers = readersOf(*way, pieces);
  if (readers.empty())
    return;
  OpBuilder builder(op);
  SmallVector<Value> parts;
  for (Value piece : cutPieces(builder, op.getInput(), way->part, pieces))
    parts.push_back(pieceOfOp(builder, op, 0, piece, way->whole, pieces));
  for (const PieceReader &reader : readers) {
    builder.setInsertionPoint(reader.product);
    SmallVector<Value> results;
    for (Value part : parts)
      results.push_back(pieceOfOp(builder, reader.product, reader.operand, part,
                                  reader.result, pieces));
    Value result = reader.product->getResult(0);
    result.replaceAllUsesWith(
        joinPieces(builder, result.getType(), reader.result, results));
    reader.product->erase();
  }
  joinForOthers(*way, parts);
  op->erase();
  ++gathers;
}

/// The choice depends on a collective and its product alone, not on what is
/// around them: a product that backward computes again has the same bits.
void SplitCollectives::runOnOperation() {
  if (tensorExchange == TensorExchange::Gather)
    return;
  machine = machineOf(getOperation());
  SmallVector<CollectiveOpInterface> collectives;
  getOperation().walk([&](CollectiveOpInterface collective) {
    if (trafficOf(collective).bytes > 0)
      collectives.push_back(collective);
  });
  for (CollectiveOpInterface collective : collectives)
    if (auto gather = dyn_cast<AllGatherOp>(collective.getOperation()))
      splitGather(gather);
    else
      splitReduction(collective);
}
