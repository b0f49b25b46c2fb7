// SPDX-License-Identifier: Apache-2.0
//
// Tokens to the rows of their choices, in one launch. The first blocks clear
// rows without a choice: each has a range of the rows of a part, and finds
// those that are the place of one of the part's choices. In the other blocks a
// thread has a chunk of a token, which it stores in the row of each choice.
#include "lowering/gpu/GpuBuilder.h"
#include "lowering/kernels/Emit.h"
#include "lowering/kernels/experts/ExpertRows.h"

using namespace mlir;

namespace rota::lowering {
namespace {

constexpr int64_t kThreads = kAloneThreads;
/// Rows that a block clears: each such block reads all choices of the part.
constexpr int64_t kLeastRange = 256, kMostRange = 2048;
/// Ranges of a part, where that leaves a range enough rows.
constexpr int64_t kRanges = 16;
/// Vectors of places that a thread loads before it looks at them.
constexpr int64_t kInFlight = 4;

/// Arguments: tokens, rows, then the choices.
class DispatchCode {
public:
  DispatchCode(GpuBuilder &k, const MoveShape &shape)
      : k(k), shape(shape), tokens(k.argument(0, shape.element)),
        rows(k.argument(1, shape.element)),
        places(k.argument(2, k.ops().getI32Type())),
        chunk(chunkWidth(shape.width, shape.element)),
        chunks(shape.width / chunk) {}

  static int64_t rangeOf(const MoveShape &shape) {
    return std::clamp(shape.rows / kRanges, kLeastRange, kMostRange);
  }
  static int64_t rangesOf(const MoveShape &shape) {
    return llvm::divideCeil(shape.rows, rangeOf(shape));
  }
  static int64_t clearingBlocks(const MoveShape &shape) {
    return shape.count() * rangesOf(shape);
  }
  static int64_t movingThreads(const MoveShape &shape) {
    int64_t chunks = shape.width / chunkWidth(shape.width, shape.element);
    return shape.count() * shape.tokens * chunks;
  }

  void emit() {
    Value block = k.block();
    int64_t clearing = clearingBlocks(shape);
    SmallVector<Value> arguments;
    for (unsigned i = 0; i < 2 + shape.choiceArguments(); ++i)
      arguments.push_back(k.argument(i, k.ops().getI8Type()).base);
    k.branch(
        k.isLess(block, k.i32(clearing)), [&] { clearRange(block); },
        [&] {
          k.enterLaunch(arguments, k.add(block, -clearing));
          k.each(movingThreads(shape), kThreads,
                 [&](Value number) { moveChunk(number); });
        });
  }

private:
  /// The row of a place, both i32; one that is not in the part is none.
  Value rowOf(Value place) {
    if (!shape.isPart)
      return place;
    unsigned offset = 2 + shape.choiceArguments() - 1;
    Value first = k.load(k.argument(offset, k.ops().getI32Type()), k.i32(0));
    return k.sub(place, first);
  }
  /// The first element of a row of a part, both i64.
  Value elementOf(Value part, Value row) {
    return k.mul(k.add(k.mul(part, shape.rows), row), shape.width);
  }

  /// The values of the choices of a token, in as few loads as there can be.
  SmallVector<Value> loadChoices(Memory values, Value token) {
    int64_t width = chunkWidth(shape.k, values.element);
    SmallVector<Value> vectors, loaded;
    for (int64_t i = 0; i < shape.k; i += width)
      vectors.push_back(
          k.loadVector(values, k.add(k.mul(token, shape.k), i), width));
    for (Value vector : vectors)
      for (int64_t i = 0; i < width; ++i)
        loaded.push_back(k.extract(vector, i));
    return loaded;
  }

  void moveChunk(Value number) {
    Value token = k.widen(k.div(number, chunks));
    Value column = k.widen(k.mul(k.rem(number, chunks), chunk));
    Value from = k.add(k.mul(token, shape.width), column);
    Value part = shape.partOf(k, token);
    SmallVector<Value> weights, own = loadChoices(places, token);
    if (shape.weighed)
      weights = loadChoices(k.argument(3, k.ops().getF32Type()), token);
    Value value = shape.weighed ? k.loadVector(tokens, from, chunk)
                                : load(k.ops(), tokens.base, shape.element,
                                       from, chunk, kAccessBytes);
    for (auto [j, place] : llvm::enumerate(own)) {
      Value row = rowOf(place);
      k.when(k.isWithin(row, shape.rows), [&] {
        Value to = k.add(elementOf(part, k.widen(row)), column);
        if (shape.weighed)
          k.store(k.mulf(k.splat(weights[j], chunk), value), rows, to);
        else
          store(k.ops(), value, rows.base, to, kAccessBytes);
      });
    }
  }

  void clearRange(Value block) {
    int64_t range = rangeOf(shape);
    Value part = k.widen(k.div(block, rangesOf(shape)));
    Value low = k.mul(k.rem(block, rangesOf(shape)), range);
    Memory isFilled = k.allocateShared(range, k.ops().getI32Type());
    k.loop(k.thread(), k.i32(range), kThreads,
           [&](Value i) { k.store(k.i32(0), isFilled, i); });
    k.barrier();
    markFilled(part, low, isFilled);
    k.barrier();
    // A warp clears a row at a time.
    Value warp = k.div(k.thread(), kWarp), lane = k.rem(k.thread(), kWarp);
    Value count = k.min(k.i32(range), k.sub(k.i32(shape.rows), low));
    k.loop(warp, count, kThreads / kWarp, [&](Value i) {
      Value first = elementOf(part, k.widen(k.add(low, i)));
      k.when(k.isEqual(k.load(isFilled, i), k.i32(0)), [&] {
        k.loop(lane, k.i32(chunks), kWarp, [&](Value number) {
          Value at = k.add(first, k.widen(k.mul(number, chunk)));
          k.store(k.splat(0.0f, chunk), rows, at);
        });
      });
    });
  }

  /// Stores 1 for the rows from `low` on that are places of choices of `part`.
  void markFilled(Value part, Value low, Memory isFilled) {
    int64_t choices = shape.tokens * shape.k, range = rangeOf(shape);
    int64_t width = chunkWidth(choices, places.element);
    int64_t vectors = choices / width;
    int64_t inFlight =
        std::min<int64_t>(kInFlight, llvm::divideCeil(vectors, kThreads));
    Memory own = k.offset(places, shape.firstChoice(k, part));
    k.loop(k.thread(), k.i32(vectors), kThreads * inFlight, [&](Value first) {
      SmallVector<Value> numbers, loaded;
      for (int64_t i = 0; i < inFlight; ++i) {
        numbers.push_back(k.add(first, i * kThreads));
        Value last = k.min(numbers[i], k.i32(vectors - 1));
        loaded.push_back(k.loadVector(own, k.mul(last, width), width));
      }
      for (auto [number, vector] : llvm::zip(numbers, loaded))
        for (int64_t i = 0; i < width; ++i) {
          Value row = k.sub(rowOf(k.extract(vector, i)), low);
          Value isOwn =
              k.both(k.isWithin(number, vectors), k.isWithin(row, range));
          k.when(isOwn, [&] { k.store(k.i32(1), isFilled, row); });
        }
    });
  }

  GpuBuilder &k;
  const MoveShape &shape;
  Memory tokens, rows, places;
  int64_t chunk, chunks; // of a row
};

} // namespace

static FailureOr<KernelPlan> planDispatch(mlir::rota::DispatchOp op,
                                          KernelLibrary &library) {
  MoveShape shape(op, op.getWeights());
  int64_t blocks =
      DispatchCode::clearingBlocks(shape) +
      llvm::divideCeil(DispatchCode::movingThreads(shape), kThreads);
  std::string key = shape.key() + " of " + std::to_string(shape.count());
  FailureOr<std::string> symbol = emitGpuKernel(
      library, op->getLoc(), "dispatch", key, 2 + shape.choiceArguments(),
      blocks, kThreads, [&](GpuBuilder &k) { DispatchCode(k, shape).emit(); });
  auto plan = planCall(symbol, shape.count() * shape.rows, 1, /*operands=*/1);
  if (succeeded(plan))
    shape.addChoices(plan->calls.back(), 1);
  return plan;
}

void addGpuDispatchEmitters(KernelEmitters &emitters) {
  emitters.add<planDispatch>();
}

} // namespace rota::lowering
