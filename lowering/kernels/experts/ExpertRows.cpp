// SPDX-License-Identifier: Apache-2.0
//
// The places of choices, and what tokens get from the rows of their places, on
// every device. Places are found part by part of the sequences; tokens and
// choices are done one by one, each by one kernel row, so that every element
// has one writer and one order of sums.
#include "lowering/kernels/experts/ExpertRows.h"

using namespace mlir;

namespace rota::lowering {
namespace {

/// Sizes of `rota.expert_places`, of one part of a sequence.
struct PlaceShape : PartShape {
  explicit PlaceShape(mlir::rota::ExpertPlacesOp op)
      : PartShape(op), choices(tokens * k),
        experts(op.getCounts().getType().getDimSize(1)), rows(op.getRows()),
        blocks(op.getBlocks()), capacity(op.getCapacity().value_or(0)),
        hasOthers(bool(op.getOthers())) {}

  std::string key() const {
    std::string key;
    llvm::raw_string_ostream(key)
        << choices << " of " << experts << " in " << rows << '/' << blocks
        << " up to " << capacity << PartShape::key()
        << (hasOthers ? " after others" : "");
    return key;
  }
  /// Whether an expert takes fewer choices after those of earlier parts.
  bool countsEarlier() const { return capacity && (parts > 1 || hasOthers); }

  int64_t choices, experts, rows, blocks, capacity; // capacity 0: all
  bool hasOthers;
};

/// The choices that each expert may still take: its capacity without those of
/// the same sequence's earlier parts. `all` [number of parts, batch, experts]
/// are the choices of all parts, of which part `part` of this rank is number
/// `first + part / batch`.
void emitRoom(RowBuilder &k, const PlaceShape &shape, Memory all, Value part,
              Value first, Memory room) {
  Value own = k.div(part, shape.batch);
  Value sequence = k.sub(part, k.mul(own, shape.batch));
  k.each(shape.experts, [&](Value expert) {
    Value taken =
        k.loop(k.i64(0), k.add(first, own), 1, {k.i64(0)},
               [&](Value earlier, ValueRange sum) -> SmallVector<Value> {
                 Value row = k.add(k.mul(earlier, shape.batch), sequence);
                 Value at = k.add(k.mul(row, shape.experts), expert);
                 return {k.add(sum[0], k.loadIndex(all, at))};
               })[0];
    Value left = k.sub(k.i64(shape.capacity), taken);
    k.storeIndex(k.max(left, k.i64(0)), room, expert);
  });
  k.sync();
}

/// The choices that each expert takes, at most what `room` says if there is
/// some, and the place of its first choice in its block. `taken` has all of its
/// choices before.
void emitStarts(RowBuilder &k, const PlaceShape &shape, Memory taken,
                std::optional<Memory> room, Memory counts, Memory starts) {
  k.each(shape.experts, [&](Value expert) {
    Value count = k.loadIndex(taken, expert);
    if (shape.capacity) {
      Value most = room ? k.loadIndex(*room, expert) : k.i64(shape.capacity);
      count = k.min(count, most);
      k.storeIndex(count, taken, expert);
    }
    k.storeIndex(count, counts, expert);
  });
  k.sync();
  int64_t ofBlock = shape.experts / shape.blocks;
  k.each(shape.experts, [&](Value expert) {
    Value first = k.mul(k.div(expert, ofBlock), ofBlock);
    Value start = k.loop(first, expert, 1, {k.i64(0)},
                         [&](Value x, ValueRange sum) -> SmallVector<Value> {
                           return {k.add(sum[0], k.loadIndex(taken, x))};
                         })[0];
    k.storeIndex(start, starts, expert);
  });
}

/// The place of choice `number` of an expert whose first one has place `start`
/// of its block.
Value placeOf(RowBuilder &k, const PlaceShape &shape, Value expert, Value start,
              Value number) {
  int64_t rows = shape.rows / shape.blocks;
  Value inBlock = k.add(start, number);
  Value block = k.div(expert, shape.experts / shape.blocks);
  Value place = k.add(k.mul(block, rows), inBlock);
  Value overflow = k.add(inBlock, shape.rows - rows);
  return k.select(k.isLess(inBlock, k.i64(rows)), place, overflow);
}

/// Places and counts of a part. Arguments: experts; with countsEarlier the
/// choices of all parts and, of others, the number of the first part here;
/// places, counts.
void emitPlacesOfPart(RowBuilder &k, const PlaceShape &shape, Value part) {
  Type i32 = k.ops().getI32Type();
  unsigned next = 0;
  Memory experts = k.argument(next++, i32);
  std::optional<Memory> all, room;
  Value before = k.i64(0);
  if (shape.countsEarlier()) {
    all = k.argument(next++, i32);
    room = k.local(shape.experts, i32);
  }
  if (shape.hasOthers)
    before = k.loadIndex(k.argument(next++, i32), k.i64(0));
  Memory places = k.argument(next++, i32), counts = k.argument(next, i32);
  Value first = shape.firstChoice(k, part);
  Memory own = k.offset(experts, first), to = k.offset(places, first),
         of = k.offset(counts, k.mul(part, shape.experts));
  if (room)
    emitRoom(k, shape, *all, part, before, *room);
  k.each(shape.choices, [&](Value i) { k.storeIndex(k.i64(-1), to, i); });
  Memory taken = k.local(shape.experts, i32);
  Memory starts = k.local(shape.experts, i32);
  k.rankKeys(
      own, shape.choices, shape.experts, taken,
      [&] { emitStarts(k, shape, taken, room, of, starts); },
      [&](Value i, Value expert, Value number) {
        auto place = [&] {
          Value start = k.loadIndex(starts, expert);
          k.storeIndex(placeOf(k, shape, expert, start, number), to, i);
        };
        if (!shape.capacity)
          return place();
        k.when(k.isLess(number, k.loadIndex(taken, expert)), place);
      });
}

/// The choices of each expert in a part. Arguments: experts, choices.
void emitChoices(RowBuilder &k, const PlaceShape &shape, Value part) {
  Type i32 = k.ops().getI32Type();
  Memory experts = k.offset(k.argument(0, i32), shape.firstChoice(k, part));
  Memory own = k.offset(k.argument(1, i32), k.mul(part, shape.experts));
  k.rankKeys(experts, shape.choices, shape.experts, own, nullptr, nullptr);
}

/// Rows of a token that are loaded before they are added.
constexpr int64_t kRowsInFlight = 4;

/// Arguments: rows, tokens, then those of Choices.
void emitCombine(RowBuilder &k, const MoveShape &shape, Value token) {
  Memory rows = k.argument(0, shape.element);
  Memory tokens = k.argument(1, shape.element);
  Choices choices(k, shape, 2);
  Memory to = k.offset(tokens, k.mul(token, shape.width));
  Value start = k.mul(token, shape.k);
  Value base = k.mul(shape.partOf(k, token), shape.rows);
  k.overColumns(shape.width, [&](Value first, ArrayRef<int64_t> counts) {
    // Choices without a row load row 0, and do not add it.
    auto addRows = [&](Value j, int64_t number, ValueRange before) {
      SmallVector<Value> isRow, weights, loaded;
      for (int64_t n = 0; n < number; ++n) {
        Value choice = k.add(start, k.add(j, n)), row = choices.rowOf(choice);
        isRow.push_back(choices.isRow(row));
        Value at = k.add(base, k.select(isRow[n], row, k.i64(0)));
        at = k.add(k.mul(at, shape.width), first);
        if (shape.weighed)
          weights.push_back(k.broadcast(choices.weightOf(choice)));
        for (int64_t count : counts) {
          loaded.push_back(k.loadVector(rows, at, count));
          at = k.add(at, k.lanes());
        }
      }
      SmallVector<Value> sums(before);
      for (auto [i, value] : llvm::enumerate(loaded)) {
        size_t n = i / counts.size();
        Value &sum = sums[i % counts.size()];
        Value next =
            shape.weighed ? k.fma(weights[n], value, sum) : k.addf(sum, value);
        sum = k.select(isRow[n], next, sum);
      }
      return sums;
    };
    SmallVector<Value> sums(counts.size(), k.splat(0.0f));
    int64_t whole = shape.k / kRowsInFlight * kRowsInFlight;
    if (whole > 0)
      sums = k.loop(k.i64(0), k.i64(whole), kRowsInFlight, sums,
                    [&](Value j, ValueRange before) {
                      return addRows(j, kRowsInFlight, before);
                    });
    if (whole < shape.k)
      sums = addRows(k.i64(whole), shape.k - whole, sums);
    Value at = first;
    for (auto [sum, count] : llvm::zip(sums, counts)) {
      k.storeVector(sum, to, at, count);
      at = k.add(at, k.lanes());
    }
  });
}

/// Arguments: tokens, rows, result, then those of Choices.
void emitDot(RowBuilder &k, const MoveShape &shape, Value choice) {
  Memory tokens = k.argument(0, shape.element);
  Memory rows = k.argument(1, shape.element);
  Memory result = k.argument(2, k.ops().getF32Type());
  Choices choices(k, shape, 3);
  Value row = choices.rowOf(choice);
  auto dot = [&] {
    Value token = k.div(choice, shape.k);
    Value base = k.mul(shape.partOf(k, token), shape.rows);
    Memory a = k.offset(tokens, k.mul(token, shape.width));
    Memory b = k.offset(rows, k.mul(k.add(base, row), shape.width));
    Value sum = k.sumOfRow(k.foldColumns(
        shape.width, k.splat(0.0f), [&](Value at, int64_t count, Value sum) {
          return k.fma(k.loadVector(a, at, count), k.loadVector(b, at, count),
                       sum);
        }));
    k.once([&] { k.store(sum, result, choice); });
  };
  k.branch(choices.isRow(row), dot,
           [&] { k.once([&] { k.store(k.f32(0.0f), result, choice); }); });
}

} // namespace

using Kind = KernelArgument::Kind;

static FailureOr<KernelPlan> planExpertPlaces(mlir::rota::ExpertPlacesOp op,
                                              KernelLibrary &library) {
  PlaceShape shape(op);
  // Choices of all parts come from `others`, or from a kernel before.
  unsigned extra = shape.countsEarlier() ? 1 + shape.hasOthers : 0;
  RowForm space{shape.count(), shape.choices, 32, /*most=*/1024};
  FailureOr<std::string> symbol = emitRowCode(
      library, op->getLoc(), "expert_places", shape.key(), 3 + extra, space,
      [&](RowBuilder &k, Value part) { emitPlacesOfPart(k, shape, part); });
  if (failed(symbol))
    return failure();
  KernelPlan plan;
  KernelCall call{*symbol, shape.count(), 1, {{Kind::Operand, 0}}};
  if (shape.hasOthers) {
    call.arguments.append({{Kind::Operand, 1}, {Kind::Operand, 2}});
  } else if (extra) {
    FailureOr<std::string> choices = emitRowCode(
        library, op->getLoc(), "choices_of_parts", shape.key(), 2, space,
        [&](RowBuilder &k, Value part) { emitChoices(k, shape, part); });
    if (failed(choices))
      return failure();
    plan.temporaries = {shape.count() * shape.experts * 4};
    plan.calls.push_back({*choices,
                          shape.count(),
                          1,
                          {{Kind::Operand, 0}, {Kind::Temporary, 0}}});
    call.arguments.push_back({Kind::Temporary, 0});
  }
  call.arguments.append({{Kind::Result, 0}, {Kind::Result, 1}});
  plan.calls.push_back(call);
  return plan;
}

static FailureOr<KernelPlan> planCombine(mlir::rota::CombineOp op,
                                         KernelLibrary &library) {
  MoveShape shape(op, op.getWeights());
  int64_t tokens = shape.count() * shape.tokens;
  FailureOr<std::string> symbol = emitRowCode(
      library, op->getLoc(), "combine", shape.key(),
      2 + shape.choiceArguments(), shape.space(tokens),
      [&](RowBuilder &k, Value token) { emitCombine(k, shape, token); });
  auto plan = planCall(symbol, tokens, 1, /*operands=*/1);
  if (succeeded(plan))
    shape.addChoices(plan->calls.back(), 1);
  return plan;
}

static FailureOr<KernelPlan> planChoiceDot(mlir::rota::ChoiceDotOp op,
                                           KernelLibrary &library) {
  MoveShape shape(op, Value());
  int64_t choices = shape.count() * shape.tokens * shape.k;
  FailureOr<std::string> symbol = emitRowCode(
      library, op->getLoc(), "choice_dot", shape.key(),
      3 + shape.choiceArguments(), shape.space(choices),
      [&](RowBuilder &k, Value choice) { emitDot(k, shape, choice); });
  auto plan = planCall(symbol, choices, 1, /*operands=*/2);
  if (succeeded(plan))
    shape.addChoices(plan->calls.back(), 2);
  return plan;
}

void addExpertRowsEmitters(KernelEmitters &emitters) {
  emitters.add<planExpertPlaces>();
  emitters.add<planCombine>();
  emitters.add<planChoiceDot>();
}

} // namespace rota::lowering
