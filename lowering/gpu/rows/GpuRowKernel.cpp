// SPDX-License-Identifier: Apache-2.0
//
// Rows in the three forms of RowGeometry.
#include "lowering/gpu/rows/GpuRowKernel.h"

using namespace mlir;
using mlir::rota::ReduceOp;

namespace rota::lowering {

using Form = RowGeometry::Form;
using Sums = RowGeometry::Sums;

/// Multiprocessors of a large GPU. Blocks that are as many for each of them
/// find room at once, so that no few of them come last.
static constexpr int64_t kMultiprocessors = 128;

/// After so many chunks of sums in shared memory so many f32 are left free: a
/// thread accesses a chunk of 8 in two halves, and then each half of eight
/// neighbours lies in banks of its own.
static constexpr int64_t kGap = 4;

void GpuRowKernel::emit(GpuBuilder &k) {
  SmallVector<Value> operands;
  for (unsigned i = 0; i < body.getOperands().size(); ++i)
    operands.push_back(k.argument(i, k.ops().getI8Type()).base);
  values.begin(k.ops(), operands);
  if (geometry.form == Form::Chunks)
    emitChunks(k);
  else
    emitSlots(k);
}

Memory GpuRowKernel::resultMemory(GpuBuilder &k, unsigned result) {
  Type element = body.isSum(result)
                     ? k.ops().getF32Type()
                     : RowBody::elementOf(body.getResults()[result]);
  return k.argument(body.getOperands().size() + result, element);
}

GpuRowKernel::Place GpuRowKernel::placeOf(GpuBuilder &k, Value row, Value chunk,
                                          RowValues::Values *atColumns) {
  Value column = k.mul(k.widen(chunk), std::max<int64_t>(geometry.width, 1));
  return {row, column, geometry.width, kAccessBytes, atColumns};
}

Value GpuRowKernel::both(GpuBuilder &k, Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return k.both(a, b);
}

void GpuRowKernel::whenAll(GpuBuilder &k, Value condition,
                           llvm::function_ref<void()> code) {
  if (condition)
    k.when(condition, code);
  else
    code();
}

//===----------------------------------------------------------------------===//
// Independent chunks
//===----------------------------------------------------------------------===//

void GpuRowKernel::emitChunks(GpuBuilder &k) {
  auto emit = [&](Value number) { emitChunk(k, number); };
  if (!rowCount)
    return k.each(rows * geometry.pieces(), geometry.blockThreads, emit);
  Value number = k.add(k.mul(k.widen(k.block()), geometry.blockThreads),
                       k.widen(k.thread()));
  k.when(k.isLess(number, k.mul(rowCount, geometry.pieces())),
         [&] { emit(number); });
}

void GpuRowKernel::emitChunk(GpuBuilder &k, Value number) {
  Value row = k.widen(k.div(number, geometry.pieces()));
  Value piece = k.rem(number, geometry.pieces());
  auto emitWhole = [&] { emitPiece(k, piece, placeOf(k, row, piece, {})); };
  if (geometry.tail == 0)
    return emitWhole();
  k.branch(k.isWithin(piece, geometry.chunks), emitWhole, [&] {
    int64_t skipped = geometry.chunks * (geometry.width - 1);
    emitPiece(k, piece, {row, k.add(k.widen(piece), skipped), 0, 0, {}});
  });
}

void GpuRowKernel::emitPiece(GpuBuilder &k, Value piece, Place place) {
  RowValues::Values atColumns;
  place.values = &atColumns;
  values.beginRow();
  SmallVector<Store> columns, scalars;
  collectStores(k, /*rank=*/1, place, columns);
  collectStores(k, /*rank=*/0, {place.row, {}, 0, 0, nullptr}, scalars);
  storeAll(k, columns);
  if (!scalars.empty())
    whenAll(k, geometry.pieces() > 1 ? k.isWithin(piece, 1) : Value(),
            [&] { storeAll(k, scalars); });
}

//===----------------------------------------------------------------------===//
// Rows of several threads
//===----------------------------------------------------------------------===//

/// Sets the slot and the places of this thread in its row.
void GpuRowKernel::findRow(GpuBuilder &k) {
  Value thread = k.thread(), block = k.block();
  local = thread;
  slot = block;
  first = k.i32(0);
  if (geometry.parts > 1) {
    Value before = k.mul(k.rem(block, geometry.parts), geometry.threads);
    local = k.add(thread, before);
    slot = k.div(block, geometry.parts);
    first = k.sub(first, before);
  }
  if (geometry.rowsPerBlock > 1) {
    Value ofBlock = k.div(thread, geometry.threads);
    local = k.rem(thread, geometry.threads);
    slot = k.add(k.mul(block, geometry.rowsPerBlock), ofBlock);
    first = k.mul(ofBlock, geometry.chunks);
  }
  slot = k.widen(slot);
}

void GpuRowKernel::emitSlots(GpuBuilder &k) {
  findRow(k);
  // Threads without a row compute on the block's first one, where no other
  // block overwrites what they read.
  Value ownRow =
      k.widen(k.mul(k.div(k.block(), geometry.parts), geometry.rowsPerBlock));

  int64_t trips = rowCount ? 1 : llvm::divideCeil(rows, geometry.slots);
  int64_t atOnce = geometry.blocks / geometry.parts * geometry.rowsPerBlock;
  bool ragged = rowCount ? geometry.rowsPerBlock > 1 : rows % atOnce != 0;
  auto rowAt = [&](Value number, Value turn) {
    Row row{number, {}, turn};
    if (ragged) {
      Value end = rowCount ? rowCount : k.i64(rows);
      row.inRange = k.isLess(number, end);
      row.number = k.select(row.inRange, number, ownRow);
    }
    return row;
  };
  allocateSums(k);
  clearSums(k);
  SmallVector<Value> carried = emptySums(k);
  if (trips == 1) {
    SmallVector<RowValues::Values> chunks(geometry.perThread);
    storeSums(k, emitRow(k, rowAt(slot, {}), chunks, carried));
    return copySums(k);
  }
  // While a row is combined the next ones are on their way.
  unsigned sumCount = carried.size(), loadedCount = 0;
  bool isAhead = geometry.form == Form::Registers;
  auto loadRow = [&](Value number, Value otherwise) {
    Value exists = k.isLess(number, k.i64(rows));
    return loadAhead(k, k.select(exists, number, otherwise));
  };
  if (isAhead) {
    leaveRegistersFor(k, llvm::divideCeil(geometry.blocks, kMultiprocessors));
    Value own = rowAt(slot, {}).number;
    carried.append(loadAhead(k, own));
    loadedCount = carried.size() - sumCount;
    for (int64_t i = 1; i < geometry.ahead; ++i)
      carried.append(loadRow(k.add(slot, i * geometry.slots), own));
  }
  carried = k.loop(
      k.i32(0), k.i32(trips), 1, carried, [&](Value trip, ValueRange before) {
        Value number = k.add(slot, k.mul(k.widen(trip), geometry.slots));
        Row row = rowAt(number, k.rem(trip, 2));
        SmallVector<RowValues::Values> chunks(geometry.perThread);
        SmallVector<Value> ahead;
        if (isAhead) {
          ValueRange loaded = before.drop_front(sumCount);
          setLoaded(loaded.take_front(loadedCount), chunks);
          llvm::append_range(ahead, loaded.drop_front(loadedCount));
          Value next = k.add(number, geometry.ahead * geometry.slots);
          llvm::append_range(ahead, loadRow(next, row.number));
        }
        SmallVector<Value> sums =
            emitRow(k, row, chunks, before.take_front(sumCount));
        sums.append(ahead);
        return sums;
      });
  storeSums(k, ValueRange(carried).take_front(sumCount));
  copySums(k);
}

bool GpuRowKernel::isLoadedAhead(BlockArgument operand) {
  return RowBody::rankOf(operand) == 1 &&
         body.getMap(operand.getArgNumber()).isIdentity();
}

SmallVector<Value> GpuRowKernel::loadAhead(GpuBuilder &k, Value row) {
  SmallVector<Value> loaded;
  for (int64_t i = 0; i < geometry.perThread; ++i) {
    RowValues::Values atColumns;
    Place place = placeOf(k, row, chunkOf(k, i), &atColumns);
    for (BlockArgument operand : body.getOperands())
      if (isLoadedAhead(operand))
        loaded.push_back(values.stored(k.ops(), operand, place));
  }
  return loaded;
}

void GpuRowKernel::setLoaded(ValueRange loaded,
                             MutableArrayRef<RowValues::Values> chunks) {
  for (RowValues::Values &ofChunk : chunks)
    for (BlockArgument operand : body.getOperands()) {
      if (!isLoadedAhead(operand))
        continue;
      bool isNarrow = RowBody::elementOf(operand).isBF16();
      Value value = loaded.front();
      ofChunk[operand] = {isNarrow ? Value() : value,
                          isNarrow ? value : Value()};
      loaded = loaded.drop_front();
    }
}

SmallVector<Value>
GpuRowKernel::emitRow(GpuBuilder &k, const Row &row,
                      MutableArrayRef<RowValues::Values> chunks,
                      ValueRange sums) {
  values.beginRow();
  for (int pass = 0; pass < body.getPasses(); ++pass) {
    emitScalars(k, pass, row);
    if (geometry.form == Form::Registers)
      emitPassInRegisters(k, pass, row, chunks);
    else
      emitPassInLoop(k, pass, row);
  }
  // All is read before anything is stored.
  SmallVector<SmallVector<Store>> stores(geometry.perThread);
  if (geometry.form == Form::Registers)
    for (int64_t i = 0; i < geometry.perThread; ++i)
      collectStores(k, /*rank=*/1,
                    placeOf(k, row.number, chunkOf(k, i), &chunks[i]),
                    stores[i]);
  SmallVector<Value> added = addSums(k, row, chunks, sums);
  storeColumns(k, row, stores);
  storeScalars(k, row);
  return added;
}

/// In front of loops and branches, so that all code of the pass sees them.
void GpuRowKernel::emitScalars(GpuBuilder &k, int pass, const Row &row) {
  llvm::DenseSet<Value> seen;
  for (ReduceOp reduce : body.getReductions(pass))
    values.emitScalarsOf(k.ops(), reduce.getInput(), row.number, seen);
  if (pass == body.getPasses() - 1)
    for (Value value : body.getResults())
      if (RowBody::rankOf(value) == 1)
        values.emitScalarsOf(k.ops(), value, row.number, seen);
}

Value GpuRowKernel::chunkOf(GpuBuilder &k, int64_t i) {
  Value chunk = k.add(local, i * geometry.rowThreads());
  if (hasChunk(k, i))
    chunk = k.min(chunk, k.i32(geometry.chunks - 1));
  return chunk;
}

Value GpuRowKernel::hasChunk(GpuBuilder &k, int64_t i) {
  int64_t before = i * geometry.rowThreads();
  if (before + geometry.rowThreads() <= geometry.chunks)
    return {};
  return k.isWithin(k.add(local, before), geometry.chunks);
}

void GpuRowKernel::combineRow(GpuBuilder &k, Reductions reductions,
                              const Row &row, ValueRange parts) {
  SmallVector<Value> scalars;
  for (auto [reduce, part] : llvm::zip(reductions, parts))
    scalars.push_back(k.combineElements(part, [&](Value x, Value y) {
      return combineParts(k.ops(), reduce, x, y);
    }));
  scalars = k.combineThreads(
      scalars, geometry.threads,
      [&](ValueRange left, ValueRange right) {
        SmallVector<Value> joined;
        for (auto [reduce, x, y] : llvm::zip(reductions, left, right))
          joined.push_back(combineParts(k.ops(), reduce, x, y));
        return joined;
      },
      row.turn);
  for (auto [reduce, total] : llvm::zip(reductions, scalars))
    values.setTotal(k.ops(), reduce, total);
}

void GpuRowKernel::emitPassInRegisters(
    GpuBuilder &k, int pass, const Row &row,
    MutableArrayRef<RowValues::Values> chunks) {
  SmallVector<ReduceOp> reductions = body.getReductions(pass);
  SmallVector<Value> parts;
  for (ReduceOp reduce : reductions) {
    Value part;
    for (int64_t i = 0; i < geometry.perThread; ++i) {
      Place place = placeOf(k, row.number, chunkOf(k, i), &chunks[i]);
      Value mine = values.wide(k.ops(), reduce.getInput(), place);
      if (Value present = hasChunk(k, i))
        mine =
            k.select(present, mine, k.splat(neutralOf(reduce), geometry.width));
      part = part ? combineParts(k.ops(), reduce, part, mine) : mine;
    }
    parts.push_back(part);
  }
  combineRow(k, reductions, row, parts);
}

void GpuRowKernel::storeColumns(GpuBuilder &k, const Row &row,
                                ArrayRef<SmallVector<Store>> stores) {
  for (auto [i, ofChunk] : llvm::enumerate(stores))
    if (!ofChunk.empty())
      whenAll(k, both(k, row.inRange, hasChunk(k, i)),
              [&] { storeAll(k, ofChunk); });
}

void GpuRowKernel::emitPassInLoop(GpuBuilder &k, int pass, const Row &row) {
  SmallVector<ReduceOp> reductions = body.getReductions(pass);
  bool storing = pass == body.getPasses() - 1;
  SmallVector<Value> initial;
  for (ReduceOp reduce : reductions)
    initial.push_back(k.splat(neutralOf(reduce), geometry.width));
  auto emitChunk = [&](Value chunk, ValueRange carried) {
    RowValues::Values atColumns;
    Place place = placeOf(k, row.number, chunk, &atColumns);
    SmallVector<Value> next;
    for (auto [reduce, part] : llvm::zip(reductions, carried))
      next.push_back(
          combineParts(k.ops(), reduce, part,
                       values.wide(k.ops(), reduce.getInput(), place)));
    if (storing) {
      SmallVector<Store> stores;
      collectStores(k, /*rank=*/1, place, stores);
      whenAll(k, row.inRange, [&] {
        for (auto [number, value] : llvm::enumerate(body.getResults()))
          if (isSumApart(number))
            addSumApart(k, number, chunk, values.wide(k.ops(), value, place));
        storeAll(k, stores);
      });
    }
    return next;
  };
  SmallVector<Value> parts = k.loop(local, k.i32(geometry.chunks),
                                    geometry.rowThreads(), initial, emitChunk);
  combineRow(k, reductions, row, parts);
}

void GpuRowKernel::eachChunk(GpuBuilder &k,
                             llvm::function_ref<void(Value)> body) {
  if (geometry.form == Form::Loop)
    return k.loop(local, k.i32(geometry.chunks), geometry.rowThreads(), body);
  for (int64_t i = 0; i < geometry.perThread; ++i)
    whenAll(k, hasChunk(k, i), [&] { body(chunkOf(k, i)); });
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void GpuRowKernel::collectStores(GpuBuilder &k, int64_t rank,
                                 const Place &place,
                                 SmallVectorImpl<Store> &stores) {
  for (auto [number, value] : llvm::enumerate(body.getResults())) {
    if (RowBody::rankOf(value) != rank || body.isSum(number))
      continue;
    Value index = values.indexOf(k.ops(), value, place.row, place);
    Value stored = accumulate[number] ? values.wide(k.ops(), value, place)
                                      : values.stored(k.ops(), value, place);
    stores.push_back({stored, unsigned(number), index});
  }
}

void GpuRowKernel::storeAll(GpuBuilder &k, ArrayRef<Store> stores) {
  SmallVector<Value> final;
  for (const Store &store : stores) {
    Memory memory = resultMemory(k, store.result);
    Value value = store.value;
    if (accumulate[store.result]) {
      auto vector = dyn_cast<VectorType>(value.getType());
      Value old = vector
                      ? k.loadVector(memory, store.index, vector.getDimSize(0))
                      : k.load(memory, store.index);
      value = k.addf(old, value);
    }
    final.push_back(value);
  }
  for (auto [store, value] : llvm::zip(stores, final))
    k.store(value, resultMemory(k, store.result), store.index);
}

void GpuRowKernel::storeScalars(GpuBuilder &k, const Row &row) {
  SmallVector<Store> stores;
  collectStores(k, /*rank=*/0, {row.number, {}, 0, 0, nullptr}, stores);
  if (stores.empty())
    return;
  if (geometry.overwritesScalars)
    k.barrier();
  Value isFirst = geometry.threads > 1 ? k.isEqual(local, k.i32(0)) : Value();
  whenAll(k, both(k, row.inRange, isFirst), [&] { storeAll(k, stores); });
}

//===----------------------------------------------------------------------===//
// Sums over rows
//===----------------------------------------------------------------------===//

bool GpuRowKernel::isSumApart(unsigned result) const {
  return geometry.sums != Sums::Registers && body.isSum(result) &&
         RowBody::rankOf(body.getResults()[result]) == 1;
}

SmallVector<Value> GpuRowKernel::emptySums(GpuBuilder &k) {
  SmallVector<Value> sums;
  for (auto [number, value] : llvm::enumerate(body.getResults()))
    if (body.isSum(number) && !isSumApart(number))
      sums.append(RowBody::rankOf(value) ? geometry.perThread : 1,
                  RowBody::rankOf(value) ? k.splat(0.0f, geometry.width)
                                         : k.f32(0.0f));
  return sums;
}

SmallVector<Value>
GpuRowKernel::addSums(GpuBuilder &k, const Row &row,
                      MutableArrayRef<RowValues::Values> chunks,
                      ValueRange sums) {
  SmallVector<Value> added;
  auto add = [&](Value mine) {
    Value before = sums[added.size()];
    Value sum = k.addf(before, mine);
    added.push_back(row.inRange ? k.select(row.inRange, sum, before) : sum);
  };
  for (auto [number, value] : llvm::enumerate(body.getResults())) {
    if (!body.isSum(number) ||
        (isSumApart(number) && geometry.form == Form::Loop))
      continue;
    if (RowBody::rankOf(value) == 0) {
      add(values.scalar(k.ops(), value, row.number));
      continue;
    }
    for (int64_t i = 0; i < geometry.perThread; ++i) {
      Value chunk = chunkOf(k, i);
      Value mine = values.wide(k.ops(), value,
                               placeOf(k, row.number, chunk, &chunks[i]));
      if (isSumApart(number))
        whenAll(k, both(k, row.inRange, hasChunk(k, i)),
                [&] { addSumApart(k, number, chunk, mine); });
      else
        add(mine);
    }
  }
  return added;
}

void GpuRowKernel::storeSums(GpuBuilder &k, ValueRange sums) {
  for (auto [number, value] : llvm::enumerate(body.getResults())) {
    if (!body.isSum(number) || isSumApart(number))
      continue;
    Memory memory = resultMemory(k, number);
    if (RowBody::rankOf(value) == 0) {
      Value isFirst =
          geometry.threads > 1 ? k.isEqual(local, k.i32(0)) : Value();
      whenAll(k, isFirst, [&] { k.store(sums.front(), memory, slot); });
      sums = sums.drop_front();
      continue;
    }
    for (int64_t i = 0; i < geometry.perThread; ++i)
      whenAll(k, hasChunk(k, i), [&] {
        Place place = placeOf(k, slot, chunkOf(k, i), nullptr);
        k.store(sums[i], memory, values.indexOf(k.ops(), value, slot, place));
      });
    sums = sums.drop_front(geometry.perThread);
  }
}

void GpuRowKernel::allocateSums(GpuBuilder &k) {
  sharedSums.assign(body.getResults().size(), {});
  if (geometry.sums != Sums::Shared)
    return;
  int64_t chunks = geometry.parts > 1 ? geometry.threads
                                      : geometry.rowsPerBlock * geometry.chunks;
  int64_t elements = chunks * geometry.width + chunks / kGap * kGap;
  for (unsigned i = 0; i < sharedSums.size(); ++i)
    if (isSumApart(i))
      sharedSums[i] = k.allocateShared(elements, k.ops().getF32Type());
}

GpuRowKernel::SumPlace GpuRowKernel::sumPlaceOf(GpuBuilder &k, unsigned result,
                                                Value chunk) {
  if (geometry.sums == Sums::Memory) {
    Place place = placeOf(k, slot, chunk, nullptr);
    Value sum = body.getResults()[result];
    return {resultMemory(k, result), values.indexOf(k.ops(), sum, slot, place)};
  }
  Value number = k.add(first, chunk);
  Value gaps = k.mul(k.div(number, kGap), kGap);
  return {sharedSums[result], k.add(k.mul(number, geometry.width), gaps)};
}

void GpuRowKernel::clearSums(GpuBuilder &k) {
  for (unsigned i = 0; i < body.getResults().size(); ++i)
    if (isSumApart(i))
      eachChunk(k, [&](Value chunk) {
        SumPlace place = sumPlaceOf(k, i, chunk);
        k.store(k.splat(0.0f, geometry.width), place.memory, place.index);
      });
}

void GpuRowKernel::addSumApart(GpuBuilder &k, unsigned result, Value chunk,
                               Value mine) {
  SumPlace place = sumPlaceOf(k, result, chunk);
  Value before = k.loadVector(place.memory, place.index, geometry.width);
  k.store(k.addf(before, mine), place.memory, place.index);
}

void GpuRowKernel::copySums(GpuBuilder &k) {
  if (geometry.sums != Sums::Shared)
    return;
  for (auto [number, value] : llvm::enumerate(body.getResults()))
    if (isSumApart(number))
      eachChunk(k, [&](Value chunk) {
        SumPlace from = sumPlaceOf(k, number, chunk);
        Place place = placeOf(k, slot, chunk, nullptr);
        k.store(k.loadVector(from.memory, from.index, geometry.width),
                resultMemory(k, number),
                values.indexOf(k.ops(), value, slot, place));
      });
}

} // namespace rota::lowering
