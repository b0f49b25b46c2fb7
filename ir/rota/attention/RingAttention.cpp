// SPDX-License-Identifier: Apache-2.0
//
// The part on one rank of attention whose sequence is divided: attention to the
// rank's own block of keys, then to each block that comes around the ring of
// ranks (Liu, Zaharia and Abbeel 2023). The keys of the next block travel while
// the rank works on one.
//
//   C = 4, rank 2          block 2    block 1    block 0    block 3
//   attention to keys of   2          1          0          none: 3 is later
//   receives meanwhile     1          0          3
#include "ir/rota/attention/Ring.h"

using namespace mlir;
using namespace mlir::rota;

using Axes = SmallVector<AxisRefAttr, 2>;
using Parts = FailureOr<SmallVector<Value>>;

/// Blocks of keys, besides the own, that queries of some rank see.
template <typename Op> static int64_t othersOf(Op op, const Ring &ring) {
  if (!op.getWindow())
    return ring.size() - 1;
  int64_t length = cast<RankedTensorType>(op.getKey().getType()).getDimSize(1);
  return std::min<int64_t>(
      ring.size() - 1, llvm::divideCeil(int64_t(*op.getWindow()) - 1, length));
}

namespace {
/// Keys or values in flight around the ring.
struct Travellers {
  Value keys, values;
};
} // namespace

Parts AttentionOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                             ArrayRef<int64_t>, TypeRange types) {
  Ring ring(*this, getQuery(), builder, factors);
  if (!ring.isDivided())
    return SmallVector<Value>();
  if (getBalanced())
    return buildBalancedPart(*this, ring, builder, types);
  int64_t last = othersOf(*this, ring);
  Value position = last > 0 ? ring.position() : Value();
  Travellers now{getKey(), getValue()}, next;
  Value output, logsumexp;
  for (int64_t distance = 0; distance <= last; ++distance) {
    if (distance < last)
      next = {ring.shift(now.keys, 1, Ring::kKeys),
              ring.shift(now.values, 1, Ring::kValues)};
    bool own = distance == 0;
    Type type = distance == last ? types[0] : Type(ring.wideType(types[0]));
    auto part = create(
        builder, getLoc(), TypeRange{type, types[1]}, getQuery(), now.keys,
        now.values, output, logsumexp, own ? getSinks() : Value(),
        getDocuments(), own ? Value() : position,
        /*key_position=*/Value(), getScaleAttr(), getWindowAttr(),
        getSoftCapAttr(), getBidirectionalAttr(), /*ring=*/UnitAttr(),
        /*balanced=*/UnitAttr(),
        own ? IntegerAttr() : builder.getI64IntegerAttr(distance));
    output = part.getOutput();
    logsumexp = part.getLogsumexp();
    now = next;
  }
  return SmallVector<Value>{output, logsumexp};
}

/// Each block's cotangents are sums in the order of the ranks that come after
/// it in the ring, its own first.
Parts AttentionGradOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                                 ArrayRef<int64_t>, TypeRange types) {
  Ring ring(*this, getQuery(), builder, factors);
  if (!ring.isDivided())
    return SmallVector<Value>();
  if (getBalanced())
    return buildBalancedPart(*this, ring, builder, types);
  int64_t last = othersOf(*this, ring);
  Value position = last > 0 ? ring.position() : Value();
  Travellers now{getKey(), getValue()}, next, home;
  Value query, key, value, sinks;
  auto addHome = [&] {
    if (!home.keys)
      return;
    key = ring.add(key, ring.widen(home.keys));
    value = ring.add(value, ring.widen(home.values));
  };
  for (int64_t distance = 0; distance <= last; ++distance) {
    if (distance < last)
      next = {ring.shift(now.keys, 1, Ring::kKeys),
              ring.shift(now.values, 1, Ring::kValues)};
    bool own = distance == 0;
    SmallVector<Type> results{last > 0 ? Type(ring.wideType(types[0]))
                                       : types[0],
                              types[1], types[2]};
    if (own && getSinks())
      results.push_back(types[3]);
    auto part = create(
        builder, getLoc(), results, getCotangent(), getQuery(), now.keys,
        now.values, getOutput(), getLogsumexp(), own ? getSinks() : Value(),
        getDocuments(), own ? Value() : position,
        /*key_position=*/Value(), getScaleAttr(), getWindowAttr(),
        getSoftCapAttr(), getBidirectionalAttr(), /*ring=*/UnitAttr(),
        /*balanced=*/UnitAttr(),
        own ? IntegerAttr() : builder.getI64IntegerAttr(distance));
    if (own) {
      query = part.getQueryCotangent();
      key = last > 0 ? ring.widen(part.getKeyCotangent())
                     : part.getKeyCotangent();
      value = last > 0 ? ring.widen(part.getValueCotangent())
                       : part.getValueCotangent();
      sinks = part.getSinksCotangent();
    } else {
      query = ring.add(query, part.getQueryCotangent());
      addHome();
      home = {ring.shiftBack(part.getKeyCotangent(), distance, Ring::kHome),
              ring.shiftBack(part.getValueCotangent(), distance, Ring::kHome)};
    }
    now = next;
  }
  addHome();
  SmallVector<Value> results{ring.narrow(query, types[0]),
                             ring.narrow(key, types[1]),
                             ring.narrow(value, types[2])};
  if (sinks)
    results.push_back(sinks);
  return results;
}
