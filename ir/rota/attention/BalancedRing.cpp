// SPDX-License-Identifier: Apache-2.0
//
// The part on one rank of causal attention around a ring in which all ranks
// have equal work. Of the 2 C half-blocks of the sequence rank r keeps number
// 2 r, its first, and gives its second to the rank C - 1 - r, whose second it
// gets: number 2 C - 1 - 2 r. So each rank has an early half-block and a late
// one, and of their pairs with those of any other rank half are seen.
//
//   C = 4           rank 0   rank 1   rank 2   rank 3
//   its block       0 1      2 3      4 5      6 7
//   works on        0 7      2 5      4 3      6 1
//
// Which pairs are seen differs between ranks: all four attentions of a step
// stand in the code, with the numbers of both half-blocks, and two of them do
// nothing. In the own step the two of a half-block with itself are causal.
//
// The order is called zigzag (Zhu 2024) or head-tail as well.
#include "ir/rota/attention/Ring.h"

using namespace mlir;
using namespace mlir::rota;

using Parts = FailureOr<SmallVector<Value>>;

static constexpr StringLiteral kSwap = "halves of blocks travel for equal work";
static constexpr StringLiteral kSwapBack = "halves of blocks travel back";

namespace {
/// The half-blocks that a rank works on: its own first, and the mirrored rank's
/// second.
using Halves = std::array<Value, 2>;

/// Keys and values of both halves in flight around the ring.
struct TravellingHalves {
  Halves keys, values;
};

/// Attention of half `query` of the rank's queries to half `key` of the keys
/// of the rank `distance` positions before.
struct HalfStep {
  int64_t distance;
  unsigned query, key;

  bool isOwn() const { return distance == 0 && query == key; }
};

/// The walk around the ring that attention and its derivative share.
class BalancedRing {
public:
  BalancedRing(Ring &ring, OpBuilder &builder, Location loc)
      : ring(ring), builder(builder), loc(loc) {}
  virtual ~BalancedRing() = default;

  static RankedTensorType halfType(Type type, int64_t dim = 1) {
    auto tensor = cast<RankedTensorType>(type);
    SmallVector<int64_t> shape(tensor.getShape());
    shape[dim] /= 2;
    return tensor.clone(shape);
  }

protected:
  /// The four attentions of each step in order. Keys and values of a half are
  /// sent on before the first attention to them. Second halves have yet to come
  /// when the own step begins, and go back when the last one ends.
  void walk(Value keys, Value values) {
    TravellingHalves now{divide(keys), divide(values)}, next;
    for (int64_t distance = 0; distance < ring.size(); ++distance) {
      auto send = [&](unsigned half) {
        if (isLast(distance))
          return;
        next.keys[half] = ring.shift(now.keys[half], 1, Ring::kKeys);
        next.values[half] = ring.shift(now.values[half], 1, Ring::kValues);
      };
      auto step = [&](unsigned query, unsigned key) {
        attend({distance, query, key}, now.keys[key], now.values[key]);
      };
      unsigned first = distance == 0 ? 0 : 1, other = 1 - first;
      send(first);
      step(first, first);
      send(other);
      step(first, other);
      queriesDone(distance, first);
      step(other, other);
      keysDone(distance, other);
      step(other, first);
      keysDone(distance, first);
      queriesDone(distance, other);
      now = next;
    }
  }

  virtual void attend(const HalfStep &step, Value key, Value value) = 0;
  /// After the attentions of a step of that half of the queries, or to that
  /// half of the keys.
  virtual void queriesDone(int64_t distance, unsigned half) = 0;
  virtual void keysDone(int64_t, unsigned) {}

  bool isLast(int64_t distance) const { return distance + 1 == ring.size(); }

  /// The halves of a tensor of the rank's block along `dim`.
  Halves divide(Value block, int64_t dim = 1) {
    RankedTensorType half = halfType(block.getType(), dim);
    auto parts =
        SplitOp::create(builder, loc, TypeRange{half, half}, block, dim)
            .getParts();
    return {parts[0], ring.mirror(parts[1], kSwap)};
  }
  /// The second half for the rank whose block has it.
  Value giveBack(Value half) { return ring.mirror(half, kSwapBack); }
  /// The rank's block, whose second half was given back.
  Value join(const Halves &halves, int64_t dim = 1) {
    auto half = cast<RankedTensorType>(halves[0].getType());
    SmallVector<int64_t> shape(half.getShape());
    shape[dim] *= 2;
    return ConcatOp::create(builder, loc, half.clone(shape), halves, dim);
  }

  /// The numbers of the half-blocks of queries and keys; null where they are
  /// one half-block.
  Value queryNumber(const HalfStep &step) {
    return step.isOwn() ? Value() : number(step.query, 0);
  }
  Value keyNumber(const HalfStep &step) {
    return step.isOwn() ? Value() : number(step.key, step.distance);
  }

  Ring &ring;
  OpBuilder &builder;
  Location loc;

private:
  Value number(unsigned half, int64_t distance) {
    return half == 0 ? ring.position(distance, 2)
                     : ring.position(distance, -2, 2 * ring.size() - 1);
  }
};

class ForwardRing : public BalancedRing {
public:
  ForwardRing(AttentionOp op, Ring &ring, OpBuilder &builder, TypeRange types)
      : BalancedRing(ring, builder, op.getLoc()), op(op),
        narrow{halfType(types[0]), halfType(types[1], 2)},
        wide{ring.wideType(narrow[0]), narrow[1]} {}

  SmallVector<Value> build() {
    queries = divide(op.getQuery());
    walk(op.getKey(), op.getValue());
    return {join(output), join(logsumexp, 2)};
  }

private:
  void attend(const HalfStep &step, Value key, Value value) override {
    unsigned half = step.query;
    // The last attention of a half is to the keys of the other.
    bool isEnd = isLast(step.distance) && step.key != half;
    auto part = AttentionOp::create(
        builder, loc, TypeRange(isEnd ? narrow : wide), queries[half], key,
        value, output[half], logsumexp[half],
        step.isOwn() ? op.getSinks() : Value(), /*documents=*/Value(),
        queryNumber(step), keyNumber(step), op.getScaleAttr(),
        /*window=*/IntegerAttr(), op.getSoftCapAttr(),
        /*bidirectional=*/UnitAttr(), /*ring=*/UnitAttr(),
        /*balanced=*/UnitAttr(), /*behind=*/IntegerAttr());
    output[half] = part.getOutput();
    logsumexp[half] = part.getLogsumexp();
  }

  void queriesDone(int64_t distance, unsigned half) override {
    if (!isLast(distance) || half == 0)
      return;
    output[half] = giveBack(output[half]);
    logsumexp[half] = giveBack(logsumexp[half]);
  }

  AttentionOp op;
  SmallVector<Type, 2> narrow, wide; // results; in between they are wide
  Halves queries{}, output{}, logsumexp{};
};

/// The sum of cotangents of keys or values, of which those of other ranks are
/// in flight to their rank while the next step works.
class HomeSum {
public:
  HomeSum(Ring &ring, Type type)
      : ring(ring), type(BalancedRing::halfType(type)) {}

  /// Adds a term to the sum of the half-block that is here.
  void add(unsigned half, Value term) {
    here[half] = ring.add(here[half], ring.widen(term));
  }
  /// Sends the sum of the half-block that is here to its rank, and adds what
  /// was sent before.
  void send(unsigned half, int64_t distance) {
    arrive(half);
    if (distance == 0)
      sums[half] = here[half];
    else
      coming[half] =
          ring.shiftBack(ring.narrow(here[half], type), distance, Ring::kHome);
    here[half] = {};
  }
  Value finish(unsigned half) {
    arrive(half);
    return ring.narrow(sums[half], type);
  }

private:
  void arrive(unsigned half) {
    if (coming[half])
      sums[half] = ring.add(sums[half], ring.widen(coming[half]));
    coming[half] = {};
  }

  Ring &ring;
  RankedTensorType type;
  Halves here{}, coming{}, sums{};
};

/// Each half-block's cotangents are sums in the order of the ranks that come
/// after it in the ring, its own first.
class BackwardRing : public BalancedRing {
public:
  BackwardRing(AttentionGradOp op, Ring &ring, OpBuilder &builder,
               TypeRange types)
      : BalancedRing(ring, builder, op.getLoc()), op(op),
        results{ring.wideType(halfType(types[0])), halfType(types[1]),
                halfType(types[2])},
        queryType(halfType(types[0])), keySums(ring, types[1]),
        valueSums(ring, types[2]) {}

  SmallVector<Value> build() {
    queries = divide(op.getQuery());
    output = divide(op.getOutput());
    cotangent = divide(op.getCotangent());
    logsumexp = divide(op.getLogsumexp(), 2);
    walk(op.getKey(), op.getValue());
    SmallVector<Value> all{join(querySum)};
    for (HomeSum *sum : {&keySums, &valueSums}) {
      Value second = giveBack(sum->finish(1));
      all.push_back(join(Halves{sum->finish(0), second}));
    }
    if (sinksSum)
      all.push_back(sinksSum);
    return all;
  }

private:
  void attend(const HalfStep &step, Value key, Value value) override {
    unsigned half = step.query;
    SmallVector<Type> types(results);
    Value sinks = step.isOwn() ? op.getSinks() : Value();
    if (sinks)
      types.push_back(sinks.getType());
    auto part = AttentionGradOp::create(
        builder, loc, types, cotangent[half], queries[half], key, value,
        output[half], logsumexp[half], sinks, /*documents=*/Value(),
        queryNumber(step), keyNumber(step), op.getScaleAttr(),
        /*window=*/IntegerAttr(), op.getSoftCapAttr(),
        /*bidirectional=*/UnitAttr(), /*ring=*/UnitAttr(),
        /*balanced=*/UnitAttr(), /*behind=*/IntegerAttr());
    querySum[half] = ring.add(querySum[half], part.getQueryCotangent());
    keySums.add(step.key, part.getKeyCotangent());
    valueSums.add(step.key, part.getValueCotangent());
    if (sinks)
      sinksSum = ring.add(sinksSum, part.getSinksCotangent());
  }

  void queriesDone(int64_t distance, unsigned half) override {
    if (!isLast(distance))
      return;
    querySum[half] = ring.narrow(querySum[half], queryType);
    if (half == 1)
      querySum[half] = giveBack(querySum[half]);
  }

  void keysDone(int64_t distance, unsigned half) override {
    keySums.send(half, distance);
    valueSums.send(half, distance);
  }

  AttentionGradOp op;
  SmallVector<Type> results;
  Type queryType;
  Halves queries{}, output{}, cotangent{}, logsumexp{};
  Halves querySum{};
  HomeSum keySums, valueSums;
  Value sinksSum;
};
} // namespace

/// A block has two halves.
template <typename Op> static LogicalResult checkLength(Op op) {
  int64_t length = cast<RankedTensorType>(op.getKey().getType()).getDimSize(1);
  if (length % 2 == 0)
    return success();
  return op.emitOpError("expected blocks of an even length in balanced order, "
                        "got ")
         << length << " positions";
}

Parts mlir::rota::buildBalancedPart(AttentionOp op, Ring &ring,
                                    OpBuilder &builder, TypeRange types) {
  if (failed(checkLength(op)))
    return failure();
  return ForwardRing(op, ring, builder, types).build();
}

Parts mlir::rota::buildBalancedPart(AttentionGradOp op, Ring &ring,
                                    OpBuilder &builder, TypeRange types) {
  if (failed(checkLength(op)))
    return failure();
  return BackwardRing(op, ring, builder, types).build();
}
