// SPDX-License-Identifier: Apache-2.0
//
// The places of choices, and the moves between tokens and the rows of their
// places, on every device. Places are found part by part of the sequences;
// tokens, rows and choices are moved one by one, each by one kernel row, so
// that every element has one writer and one order of sums.
#include "ir/rota/experts/Experts.h"
#include "lowering/kernels/RowBuilder.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace rota::lowering {
namespace {

/// Sequences in `parts` parts of `tokens` tokens with `k` choices each.
struct PartShape {
  template <typename Op>
  explicit PartShape(Op op)
      : batch(op.getPlaces().getType().getDimSize(0)), parts(op.getParts()),
        tokens(op.getPlaces().getType().getDimSize(1) / parts),
        k(op.getPlaces().getType().getDimSize(2)) {}

  /// A text that determines where parts lie.
  std::string key() const {
    return parts == 1 ? ""
                      : llvm::formatv(" {0} parts of {1}", parts, batch).str();
  }

  /// The number of the first choice of that part.
  Value firstChoice(RowBuilder &b, Value part) const {
    return b.mul(inSequences(b, part, batch, parts), tokens * k);
  }
  /// The part of the token of that number.
  Value partOf(RowBuilder &b, Value token) const {
    return inSequences(b, b.div(token, tokens), parts, batch);
  }

  int64_t count() const { return parts * batch; }

  int64_t batch, parts, tokens, k;

private:
  /// `number` of a table [rows, columns] in the table [columns, rows].
  Value inSequences(RowBuilder &b, Value number, int64_t columns,
                    int64_t rows) const {
    if (parts == 1)
      return number;
    Value row = b.div(number, columns);
    return b.add(b.mul(b.sub(number, b.mul(row, columns)), rows), row);
  }
};

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

/// The number of each choice among those of its expert, or -1, and the counts.
/// With `room`, an expert takes no more choices than that says.
void emitCounts(RowBuilder &k, const PlaceShape &shape, Memory experts,
                Memory places, Memory counts, std::optional<Memory> room) {
  k.each(shape.choices, [&](Value i) { k.storeIndex(k.i64(-1), places, i); });
  k.sync();
  auto take = [&](Value i, Value expert, Value count) {
    if (shape.capacity == 0) {
      k.storeIndex(count, places, i);
      return k.add(count, 1);
    }
    Value most = room ? k.loadIndex(*room, expert) : k.i64(shape.capacity);
    Value fits = k.isLess(count, most);
    k.when(fits, [&] { k.storeIndex(count, places, i); });
    return k.select(fits, k.add(count, 1), count);
  };
  k.forEachKey(experts, shape.choices, shape.experts, counts, take);
  k.sync();
}

/// The place of each choice from its number in its expert.
void emitPlaces(RowBuilder &k, const PlaceShape &shape, Memory experts,
                Memory places, Memory counts) {
  int64_t ofBlock = shape.experts / shape.blocks;
  int64_t rows = shape.rows / shape.blocks;
  Memory starts = k.local(shape.experts, k.ops().getI32Type());
  k.each(shape.blocks, [&](Value block) {
    Value first = k.mul(block, ofBlock);
    k.loop(k.i64(0), k.i64(ofBlock), 1, {k.i64(0)},
           [&](Value i, ValueRange used) -> SmallVector<Value> {
             Value expert = k.add(first, i);
             k.storeIndex(used[0], starts, expert);
             return {k.add(used[0], k.loadIndex(counts, expert))};
           });
  });
  k.sync();
  k.each(shape.choices, [&](Value i) {
    Value number = k.loadIndex(places, i);
    k.when(k.isLess(k.i64(-1), number), [&] {
      Value expert = k.loadIndex(experts, i);
      Value inBlock = k.add(k.loadIndex(starts, expert), number);
      Value place = k.add(k.mul(k.div(expert, ofBlock), rows), inBlock);
      Value overflow = k.add(inBlock, shape.rows - rows);
      k.storeIndex(k.select(k.isLess(inBlock, k.i64(rows)), place, overflow),
                   places, i);
    });
  });
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
  emitCounts(k, shape, own, to, of, room);
  emitPlaces(k, shape, own, to, of);
}

/// The choices of each expert in a part. Arguments: experts, choices.
void emitChoices(RowBuilder &k, const PlaceShape &shape, Value part) {
  Type i32 = k.ops().getI32Type();
  Memory experts = k.offset(k.argument(0, i32), shape.firstChoice(k, part));
  Memory own = k.offset(k.argument(1, i32), k.mul(part, shape.experts));
  k.forEachKey(experts, shape.choices, shape.experts, own,
               [&](Value, Value, Value count) { return k.add(count, 1); });
}

/// Tokens [batch, parts * tokens, width], their choices, and rows [parts *
/// batch, rows, width].
struct MoveShape : PartShape {
  template <typename Op>
  explicit MoveShape(Op op, Value weights)
      : PartShape(op), rows(op.getRows().getType().getDimSize(1)),
        width(op.getRows().getType().getDimSize(2)),
        element(op.getRows().getType().getElementType()),
        weighed(bool(weights)), isPart(bool(op.getOffset())) {}

  std::string key() const {
    std::string key;
    llvm::raw_string_ostream(key)
        << tokens << 'x' << k << " to " << rows << 'x' << width << 'x'
        << element << (weighed ? " weighed" : "")
        << (isPart ? " from an offset" : "") << PartShape::key();
    return key;
  }

  /// A kernel of `count` rows, each of one row of elements.
  RowForm space(int64_t count) const {
    return {count, width, element.getIntOrFloatBitWidth()};
  }

  int64_t rows, width;
  mlir::Type element;
  bool weighed, isPart;
};

/// A kernel's memory: places, where a rank's rows begin, and weights where
/// there are some.
struct Choices {
  /// From argument `next` on: places, weights, offset.
  Choices(RowBuilder &k, const MoveShape &shape, unsigned next)
      : k(k), shape(shape), places(k.argument(next++, k.ops().getI32Type())) {
    if (shape.weighed)
      weights = k.argument(next++, k.ops().getF32Type());
    if (shape.isPart)
      first = k.loadIndex(k.argument(next, k.ops().getI32Type()), k.i64(0));
  }

  /// The row of choice `i` in its part; see isRow.
  Value rowOf(Value i) {
    Value place = k.loadIndex(places, i);
    return first ? k.sub(place, first) : place;
  }
  Value isRow(Value row) { return k.isWithin(row, shape.rows); }
  Value weightOf(Value i) { return k.load(weights, i); }

  RowBuilder &k;
  const MoveShape &shape;
  Memory places, weights{};
  Value first;
};

/// The number of the choice of each row of a part, or -1.
/// Arguments: numbers [parts * batch, rows], then those of Choices.
void emitInverse(RowBuilder &k, const MoveShape &shape, Value part) {
  Memory numbers = k.argument(0, k.ops().getI32Type());
  Choices choices(k, shape, 1);
  Memory own = k.offset(numbers, k.mul(part, shape.rows));
  Value start = shape.firstChoice(k, part);
  k.each(shape.rows, [&](Value row) { k.storeIndex(k.i64(-1), own, row); });
  k.sync();
  k.each(shape.tokens * shape.k, [&](Value i) {
    Value choice = k.add(start, i), row = choices.rowOf(choice);
    k.when(choices.isRow(row), [&] { k.storeIndex(choice, own, row); });
  });
}

/// Arguments: numbers, tokens, rows, then those of Choices.
void emitDispatch(RowBuilder &k, const MoveShape &shape, Value row) {
  Memory numbers = k.argument(0, k.ops().getI32Type());
  Memory tokens = k.argument(1, shape.element);
  Memory rows = k.argument(2, shape.element);
  Choices choices(k, shape, 3);
  Memory to = k.offset(rows, k.mul(row, shape.width));
  Value choice = k.loadIndex(numbers, row);
  auto move = [&] {
    Memory from = k.offset(tokens, k.mul(k.div(choice, shape.k), shape.width));
    if (!shape.weighed)
      return k.copyRow(from, to, shape.width);
    Value weight = k.broadcast(choices.weightOf(choice));
    k.overColumns(shape.width, [&](Value at, ArrayRef<int64_t> counts) {
      for (int64_t count : counts) {
        k.storeVector(k.mulf(weight, k.loadVector(from, at, count)), to, at,
                      count);
        at = k.add(at, k.lanes());
      }
    });
  };
  k.branch(k.isLess(k.i64(-1), choice), move,
           [&] { k.clearRow(to, shape.width); });
}

/// Arguments: rows, tokens, then those of Choices.
void emitCombine(RowBuilder &k, const MoveShape &shape, Value token) {
  Memory rows = k.argument(0, shape.element);
  Memory tokens = k.argument(1, shape.element);
  Choices choices(k, shape, 2);
  Memory to = k.offset(tokens, k.mul(token, shape.width));
  Value start = k.mul(token, shape.k);
  Value base = k.mul(shape.partOf(k, token), shape.rows);
  k.overColumns(shape.width, [&](Value first, ArrayRef<int64_t> counts) {
    SmallVector<Value> zeros(counts.size(), k.splat(0.0f));
    auto add = [&](Value j, ValueRange sums) -> SmallVector<Value> {
      Value choice = k.add(start, j), row = choices.rowOf(choice);
      auto added = [&] {
        Value at = k.add(base, row);
        at = k.add(k.mul(at, shape.width), first);
        SmallVector<Value> result;
        for (auto [sum, count] : llvm::zip(sums, counts)) {
          Value value = k.loadVector(rows, at, count);
          result.push_back(
              shape.weighed
                  ? k.fma(k.broadcast(choices.weightOf(choice)), value, sum)
                  : k.addf(sum, value));
          at = k.add(at, k.lanes());
        }
        return result;
      };
      return k.choose(choices.isRow(row), added,
                      [&] { return SmallVector<Value>(sums); });
    };
    auto sums = k.loop(k.i64(0), k.i64(shape.k), 1, zeros, add);
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

using Kind = KernelArgument::Kind;

/// The arguments of Choices, whose operands begin at `next`.
void addChoices(KernelCall &call, const MoveShape &shape, unsigned next) {
  for (unsigned i = 0; i < 1u + shape.weighed + shape.isPart; ++i)
    call.arguments.push_back({Kind::Operand, next + i});
}

unsigned choiceArguments(const MoveShape &shape) {
  return 1 + shape.weighed + shape.isPart;
}

} // namespace

static FailureOr<KernelPlan> planExpertPlaces(mlir::rota::ExpertPlacesOp op,
                                              KernelLibrary &library) {
  PlaceShape shape(op);
  // Choices of all parts come from `others`, or from a kernel before.
  unsigned extra = shape.countsEarlier() ? 1 + shape.hasOthers : 0;
  RowForm space{shape.count(), shape.choices, 32};
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

static FailureOr<KernelPlan> planDispatch(mlir::rota::DispatchOp op,
                                          KernelLibrary &library) {
  MoveShape shape(op, op.getWeights());
  int64_t rows = shape.count() * shape.rows;
  FailureOr<std::string> inverse = emitRowCode(
      library, op->getLoc(), "rows_of_choices", shape.key(),
      1 + choiceArguments(shape), {shape.count(), shape.rows, 32},
      [&](RowBuilder &k, Value part) { emitInverse(k, shape, part); });
  FailureOr<std::string> move = emitRowCode(
      library, op->getLoc(), "dispatch", shape.key(),
      3 + choiceArguments(shape), shape.space(rows),
      [&](RowBuilder &k, Value row) { emitDispatch(k, shape, row); });
  if (failed(inverse) || failed(move))
    return failure();
  KernelPlan plan;
  plan.temporaries = {shape.count() * shape.rows * 4};
  KernelCall first{*inverse, shape.count(), 1, {{Kind::Temporary, 0}}};
  addChoices(first, shape, 1);
  KernelCall second{
      *move,
      rows,
      1,
      {{Kind::Temporary, 0}, {Kind::Operand, 0}, {Kind::Result, 0}}};
  addChoices(second, shape, 1);
  plan.calls = {first, second};
  return plan;
}

static FailureOr<KernelPlan> planCombine(mlir::rota::CombineOp op,
                                         KernelLibrary &library) {
  MoveShape shape(op, op.getWeights());
  int64_t tokens = shape.count() * shape.tokens;
  FailureOr<std::string> symbol = emitRowCode(
      library, op->getLoc(), "combine", shape.key(), 2 + choiceArguments(shape),
      shape.space(tokens),
      [&](RowBuilder &k, Value token) { emitCombine(k, shape, token); });
  auto plan = planCall(symbol, tokens, 1, /*operands=*/1);
  if (succeeded(plan))
    addChoices(plan->calls.back(), shape, 1);
  return plan;
}

static FailureOr<KernelPlan> planChoiceDot(mlir::rota::ChoiceDotOp op,
                                           KernelLibrary &library) {
  MoveShape shape(op, Value());
  int64_t choices = shape.count() * shape.tokens * shape.k;
  FailureOr<std::string> symbol = emitRowCode(
      library, op->getLoc(), "choice_dot", shape.key(),
      3 + choiceArguments(shape), shape.space(choices),
      [&](RowBuilder &k, Value choice) { emitDot(k, shape, choice); });
  auto plan = planCall(symbol, choices, 1, /*operands=*/2);
  if (succeeded(plan))
    addChoices(plan->calls.back(), shape, 2);
  return plan;
}

void addExpertRowsEmitters(KernelEmitters &emitters) {
  emitters.add<planExpertPlaces>();
  emitters.add<planDispatch>();
  emitters.add<planCombine>();
  emitters.add<planChoiceDot>();
}

} // namespace rota::lowering
