// SPDX-License-Identifier: Apache-2.0
//
// The tables of rows of experts, in one launch of one block: the counts of all
// sequences are added up in a row, and give the first row of each expert; then
// an expert's rows are added up over the sequences.
#include "lowering/gpu/experts/ExpertTables.h"

#include "runtime/device/FullExperts.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <array>
#include <cstddef>

using namespace mlir;

namespace rota::lowering {
namespace {

/// Numbers of tables that are made in shared memory at most: 96 KB.
constexpr int64_t kMostShared = 24 * 1024;
/// The place of RotaGpuLaunch::noteAt, and its arguments.
constexpr unsigned kNoteAt = 3, kNoteArguments = 2;
/// Threads of the block.
constexpr int64_t kLeastThreads = 128, kMostThreads = 1024;

/// The first of `count` numbers for which `isSo`, or -1 (i64).
Value firstOf(GpuBuilder &k, int64_t count,
              llvm::function_ref<Value(Value number)> isSo) {
  return k.loop(k.i64(0), k.i64(count), 1, {k.i64(-1)},
                [&](Value i, ValueRange found) -> SmallVector<Value> {
                  Value number = k.sub(k.i64(count - 1), i);
                  return {k.select(isSo(number), number, found[0])};
                })[0];
}

int64_t tableThreads(const GroupShape &shape) {
  return std::clamp<int64_t>(llvm::PowerOf2Ceil(shape.batch * shape.experts),
                             kLeastThreads, kMostThreads);
}

class ExpertTableCode {
public:
  /// Writes the tables to `groups` and `experts`.
  ExpertTableCode(GpuBuilder &k, const GroupShape &shape, int64_t tileRows,
                  Value groups, Value experts)
      : k(k), shape(shape), threads(tableThreads(shape)), tileRows(tileRows),
        groups(shape, groups), experts(shape, experts) {}

  /// Arguments: counts.
  void emitGroups();
  void emitTiles();
  /// Argument kNoteAt becomes a FullExperts, by one thread.
  void noteFullExperts(bool hasOffset);

private:
  using Number = llvm::function_ref<Value(Value i)>;
  using Use = llvm::function_ref<void(Value i, Value value, Value before)>;
  /// Calls use(i, valueOf(i), sum of the values before i) for each i below
  /// `count`, i32. A thread calls both for the same numbers.
  void addUp(int64_t count, Number valueOf, Use use);
  /// The sequence and the expert of a count.
  std::pair<Value, Value> locate(Value i) {
    return {k.div(i, shape.experts), k.rem(i, shape.experts)};
  }
  Type i32() { return k.ops().getI32Type(); }

  GpuBuilder &k;
  const GroupShape &shape;
  int64_t threads, tileRows;
  GroupTable groups;
  ExpertTiles experts;
};

void ExpertTableCode::addUp(int64_t count, Number valueOf, Use use) {
  // A thread has neighbouring numbers, of which the last thread lacks some.
  int64_t ofThread = llvm::divideCeil(count, threads);
  Value first = k.mul(k.thread(), ofThread);
  SmallVector<Value> zeros(ofThread, k.i32(0));
  auto load = [&] {
    SmallVector<Value> values;
    for (int64_t i = 0; i < ofThread; ++i) {
      Value number = k.add(first, i);
      Value value = valueOf(k.min(number, k.i32(count - 1)));
      values.push_back(k.select(k.isWithin(number, count), value, k.i32(0)));
    }
    return values;
  };
  SmallVector<Value> values =
      k.choose(k.isLess(first, k.i32(count)), load, [&] { return zeros; });
  Value own = values[0];
  for (Value value : ArrayRef(values).drop_front())
    own = k.add(own, value);
  Value before = k.sub(k.sumUpToHere(own, threads), own);
  for (auto [i, value] : llvm::enumerate(values)) {
    Value number = k.add(first, int64_t(i));
    k.when(k.isWithin(number, count), [&] { use(number, value, before); });
    before = k.add(before, value);
  }
}

void ExpertTableCode::emitGroups() {
  int64_t count = shape.batch * shape.experts, ofBlock = shape.expertsOfBlock();
  Memory counts = k.argument(0, i32());
  // The sum of the counts before each block of each sequence.
  Memory starts = k.allocateShared(count / ofBlock, i32());
  addUp(
      count, [&](Value i) { return k.load(counts, i); },
      [&](Value i, Value value, Value before) {
        auto [sequence, expert] = locate(i);
        k.store(before, groups.firsts(k, sequence), expert);
        k.store(k.add(before, value), groups.ends(k, sequence), expert);
        k.when(k.isEqual(k.rem(i, ofBlock), k.i32(0)),
               [&] { k.store(before, starts, k.div(i, ofBlock)); });
      });
  k.barrier();
  k.loop(k.thread(), k.i32(count), threads, [&](Value i) {
    auto [sequence, expert] = locate(i);
    Value block = k.div(expert, ofBlock);
    Value low = k.mul(block, shape.rowsOfBlock());
    Value high = k.add(low, shape.rowsOfBlock());
    Value shift = k.sub(low, k.load(starts, k.div(i, ofBlock)));
    Memory firsts = groups.firsts(k, sequence), ends = groups.ends(k, sequence);
    Value first = k.add(k.load(firsts, expert), shift);
    Value whole = k.add(k.load(ends, expert), shift);
    k.store(k.min(first, high), firsts, expert);
    k.store(k.min(whole, high), ends, expert);
    // The last expert of a block says for how many rows there is no room.
    k.when(k.isEqual(k.rem(i, ofBlock), k.i32(ofBlock - 1)), [&] {
      Value needed =
          k.select(k.isLess(high, whole), k.sub(whole, low), k.i32(0));
      k.store(needed, groups.overfull(k, sequence), block);
    });
  });
}

void ExpertTableCode::emitTiles() {
  auto tilesOf = [&](Value expert) {
    Memory befores = experts.befores(k, expert);
    Value block = k.div(expert, shape.expertsOfBlock());
    SmallVector<Value> sums =
        k.loop(k.i32(0), k.i32(shape.batch), 1, {k.i32(0), k.i32(0)},
               [&](Value sequence, ValueRange before) -> SmallVector<Value> {
                 k.store(before[0], befores, sequence);
                 Value rows = k.sub(k.load(groups.ends(k, sequence), expert),
                                    k.load(groups.firsts(k, sequence), expert));
                 return {k.add(before[0], rows),
                         k.max(before[1],
                               k.load(groups.overfull(k, sequence), block))};
               });
    k.store(sums[0], befores, k.i32(shape.batch));
    k.store(sums[1], experts.overfull(k, expert), k.i32(0));
    return k.div(k.add(sums[0], tileRows - 1), tileRows);
  };
  Memory starts = experts.starts(k);
  addUp(shape.experts, tilesOf, [&](Value expert, Value value, Value before) {
    k.store(before, starts, expert);
    k.when(k.isEqual(expert, k.i32(shape.experts - 1)), [&] {
      k.store(k.add(before, value), starts, k.i32(shape.experts));
    });
  });
}

void ExpertTableCode::noteFullExperts(bool hasOffset) {
  Type i64 = k.ops().getI64Type();
  auto rowsOf = [&](Value sequence, Value block) {
    return k.loadIndex(groups.overfull(k, sequence), block);
  };
  Value block = firstOf(k, shape.blocks, [&](Value number) {
    Value expert = k.mul(number, shape.expertsOfBlock());
    return k.isLess(k.i64(0),
                    k.loadIndex(experts.overfull(k, expert), k.i64(0)));
  });
  Memory note = k.argument(kNoteAt, i32());
  Value place = LLVM::PtrToIntOp::create(k.ops(), i64, note.base);
  Value call = LLVM::PtrToIntOp::create(k.ops(), i64,
                                        k.argument(kNoteAt + 1, i32()).base);
  auto write = [&] {
    Value sequence = firstOf(k, shape.batch, [&](Value number) {
      return k.isLess(k.i64(0), rowsOf(number, block));
    });
    Value first = k.mul(block, shape.expertsOfBlock());
    if (hasOffset)
      first =
          k.add(first, k.loadIndex(k.argument(kNoteAt + kNoteArguments, i32()),
                                   k.i64(0)));
    constexpr int64_t half = int64_t(1) << 32;
    auto store = [&](size_t byte, Value value) {
      k.store(k.narrow(value), note, k.i64(byte / sizeof(int32_t)));
    };
    store(offsetof(FullExperts, rows), rowsOf(sequence, block));
    store(offsetof(FullExperts, room), k.i64(shape.rowsOfBlock()));
    store(offsetof(FullExperts, firstExpert), first);
    store(offsetof(FullExperts, experts), k.i64(shape.expertsOfBlock()));
    store(offsetof(FullExperts, sequence), sequence);
    store(offsetof(FullExperts, action), k.div(call, half));
    store(offsetof(FullExperts, layer), call);
  };
  k.when(k.isLess(k.i64(-1), block), [&] {
    k.when(k.isLess(k.i64(0), place), [&] {
      Value isFirst = k.isEqual(k.loadIndex(note, k.i64(0)), k.i64(0));
      k.when(isFirst, write);
    });
  });
}

/// Makes both tables in one block of tableThreads(shape) threads. Arguments:
/// counts, groups, tiles of experts; with `notes` memory for a note or null,
/// and the call's name; with `hasOffset` the number of the first expert.
void emitTables(GpuBuilder &k, const GroupShape &shape, const TableForm &form) {
  Type i32 = k.ops().getI32Type();
  std::array<Memory, 2> results{k.argument(1, i32), k.argument(2, i32)};
  std::array<int64_t, 2> counts{shape.batch * GroupTable::stride(shape),
                                ExpertTiles::count(shape)};
  std::array<Memory, 2> made = results;
  bool isShared = counts[0] + counts[1] <= kMostShared;
  for (int i = 0; isShared && i < 2; ++i)
    made[i] = k.allocateShared(counts[i], i32);
  ExpertTableCode code(k, shape, form.tileRows, made[0].base, made[1].base);
  code.emitGroups();
  k.barrier();
  code.emitTiles();
  k.barrier();
  for (int i = 0; isShared && i < 2; ++i)
    k.loop(k.thread(), k.i32(counts[i]), tableThreads(shape),
           [&](Value at) { k.store(k.load(made[i], at), results[i], at); });
  if (form.notes)
    k.when(k.isEqual(k.thread(), k.i32(0)),
           [&] { code.noteFullExperts(form.hasOffset); });
}

} // namespace

FailureOr<KernelPlan> planExpertTables(Operation *op, const GroupShape &shape,
                                       const TableForm &form,
                                       KernelLibrary &library) {
  using Kind = KernelArgument::Kind;
  KernelPlan plan;
  plan.temporaries = {shape.batch * GroupTable::stride(shape) * 4,
                      ExpertTiles::count(shape) * 4};
  KernelCall call{
      "",
      1,
      1,
      {{Kind::Operand, 2}, {Kind::Temporary, 0}, {Kind::Temporary, 1}}};
  for (unsigned note = 0; form.notes && note < kNoteArguments; ++note)
    call.arguments.push_back({Kind::Scalar, 0}); // the device gives them
  if (form.hasOffset)
    call.arguments.push_back({Kind::Operand, 3});
  std::string key;
  llvm::raw_string_ostream(key)
      << shape.key() << " of " << form.tileRows << (form.notes ? " noted" : "")
      << (form.hasOffset ? " from an offset" : "");
  FailureOr<std::string> symbol = emitGpuKernel(
      library, op->getLoc(), "tiles_of_experts", key, call.arguments.size(),
      /*blocks=*/1, tableThreads(shape),
      [&](GpuBuilder &k) { emitTables(k, shape, form); });
  if (failed(symbol))
    return failure();
  if (form.notes) {
    LaunchShape launch = library.getLaunchShape(*symbol);
    launch.noteAt = kNoteAt;
    library.setLaunchShape(*symbol, launch);
  }
  call.symbol = *symbol;
  plan.calls = {std::move(call)};
  return plan;
}

} // namespace rota::lowering
