// SPDX-License-Identifier: Apache-2.0
//
// Register blocks of attention. Sizes are constants of the emitted code; only
// positions vary at run time.
#include "lowering/kernels/attention/AttentionCode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace rota::lowering {

LogicalResult checkHeadSize(Operation *op, const AttentionShape &shape) {
  constexpr int64_t kLargest = 2048; // some 2 MiB of stack
  if (shape.largestSize() <= kLargest)
    return success();
  return op->emitOpError("expected a head size of at most ")
         << kLargest << ", got " << shape.largestSize();
}

AttentionCode::AttentionCode(KernelBuilder &k, const AttentionShape &shape)
    : k(k), shape(shape),
      pairs(k.pairs() != PairProducts::None && shape.element.isBF16()),
      next(k, shape, queryBlock(), registerRows()) {
  if (shape.hasDocuments)
    starts = k.local(queryBlock(), k.ops().getI32Type());
  if (takesTiles(shape, k.pairs()))
    tiles.emplace(k, shape.largestSize());
}

int64_t AttentionCode::padded(int64_t size) const {
  return llvm::alignTo(size, k.lanes());
}

StridedRows AttentionCode::rowsOf(Memory memory, Value batch, Value head,
                                  int64_t heads, int64_t size) {
  int64_t stride = heads * size;
  Value start = k.add(k.mul(batch, shape.sequence * stride), k.mul(head, size));
  return {k.offset(memory, start), stride, size};
}

void AttentionCode::setNextHead(Value isFirst, Value isThere, Value number,
                                const Operands &operands,
                                ArrayRef<Memory> outputs) {
  Value batch = k.div(number, shape.heads), head = k.rem(number, shape.heads);
  Value keyHead = k.div(head, shape.group());
  SmallVector<StridedRows> rows = {queryRows(operands.query, batch, head),
                                   keyRows(operands.key, batch, keyHead),
                                   valueRows(operands.value, batch, keyHead)};
  for (Memory output : outputs)
    rows.push_back(outputRows(output, batch, head));
  next.set(isFirst, isThere, std::move(rows));
}

void AttentionCode::fillZero(Memory memory, int64_t elements) {
  Value zero = k.splat(0.0f);
  k.loop(0, elements, k.lanes(),
         [&](Value i) { k.storeVector(zero, memory, i, k.lanes()); });
}

void AttentionCode::clearRows(StridedRows rows) {
  k.loop(0, shape.sequence, 1, [&](Value row) {
    sizeChunks(rows.size, [&](Value d, int64_t count) {
      k.storeVector(k.splat(0.0f), rows.memory,
                    k.add(k.mul(row, rows.stride), d), count);
    });
  });
}

void AttentionCode::copyRows(StridedRows from, StridedRows to) {
  k.loop(0, shape.sequence, 1, [&](Value row) {
    sizeChunks(from.size, [&](Value d, int64_t count) {
      Value value =
          k.loadVector(from.memory, k.add(k.mul(row, from.stride), d), count);
      k.storeVector(value, to.memory, k.add(k.mul(row, to.stride), d), count);
    });
  });
}

void AttentionCode::loadBlock(StridedRows rows, Value first, float factor,
                              Memory transposed, const Memory *copy) {
  int64_t lanes = k.lanes();
  k.loop(0, queryBlock(), lanes, [&](Value query) {
    sizeChunks(rows.size, [&](Value d, int64_t count) {
      SmallVector<Value> square;
      for (int64_t r = 0; r < lanes; ++r) {
        Value row = queryRow(k.add(k.add(first, query), r));
        Value value =
            k.loadVector(rows.memory, k.add(k.mul(row, rows.stride), d), count);
        if (factor != 1.0f)
          value = k.mulf(value, k.splat(factor));
        square.push_back(value);
        if (copy)
          k.storeVector(value, *copy,
                        k.add(k.mul(k.add(query, r), padded(rows.size)), d),
                        lanes);
      }
      k.transpose(square);
      for (int64_t j = 0; j < count; ++j)
        k.storeVector(square[j], transposed,
                      k.add(k.mul(k.add(d, j), queryBlock()), query), lanes);
    });
  });
}

void AttentionCode::loadOperand(StridedRows rows, Value first, float factor,
                                Memory transposed, const Memory *copy) {
  if (!pairs)
    return loadBlock(rows, first, factor, transposed, copy);
  int64_t lanes = k.lanes();
  k.loop(0, queryBlock(), lanes, [&](Value query) {
    forChunks(k, rows.size, 2 * lanes, [&](Value d, int64_t count) {
      SmallVector<Value> square;
      for (int64_t r = 0; r < lanes; ++r) {
        Value row = queryRow(k.add(k.add(first, query), r));
        square.push_back(k.loadBf16Pairs(
            rows.memory, k.add(k.mul(row, rows.stride), d), count));
      }
      k.transpose(square);
      for (int64_t j = 0; j < (count + 1) / 2; ++j)
        k.storeVector(square[j], transposed,
                      k.add(k.mul(k.add(k.div(d, 2), j), queryBlock()), query),
                      lanes);
    });
  });
  if (copy)
    k.loop(0, queryBlock(), 2, [&](Value query) {
      Value row = k.add(first, query);
      storePairs(rows, queryRow(row), queryRow(k.add(row, 1)), *copy,
                 k.div(query, 2));
    });
}

void AttentionCode::loadSums(StridedRows rows, Value first, Memory sums) {
  if (!tiles)
    return loadBlock(rows, first, 1.0f, sums, nullptr);
  k.loop(0, queryBlock(), 1, [&](Value i) {
    Value row = k.mul(queryRow(k.add(first, i)), rows.stride);
    sizeChunks(rows.size, [&](Value d, int64_t count) {
      k.storeVector(k.loadVector(rows.memory, k.add(row, d), count), sums,
                    k.add(k.mul(i, padded(rows.size)), d), k.lanes());
    });
  });
}

void AttentionCode::storePairs(StridedRows rows, Value first, Value second,
                               Memory space, Value pair) {
  sizeChunks(rows.size, [&](Value d, int64_t count) {
    auto load = [&](Value row) {
      return row ? k.loadVector(rows.memory, k.add(k.mul(row, rows.stride), d),
                                count)
                 : k.splat(0.0f);
    };
    Value at = tiles ? tiles->panelIndex(pair, d)
                     : k.add(k.mul(pair, padded(rows.size)), d);
    k.storeVector(k.pairOf(load(first), load(second)), space, at, k.lanes());
  });
}

void AttentionCode::storeBlock(Memory sums, ArrayRef<Value> factor,
                               StridedRows rows, Value first) {
  if (tiles)
    return tiles->storeSums(sums, factor, rows.from(k, first),
                            k.sub(queryEnd(first), first));
  int64_t lanes = k.lanes();
  for (int64_t v = 0; v < kVectors; ++v) {
    sizeChunks(rows.size, [&](Value d, int64_t count) {
      SmallVector<Value> square(lanes, k.splat(0.0f));
      for (int64_t j = 0; j < count; ++j)
        square[j] =
            k.mulf(k.loadVector(sums, blockIndex(d, j, v), lanes), factor[v]);
      k.transpose(square);
      for (int64_t r = 0; r < lanes; ++r) {
        Value row = k.add(first, v * lanes + r);
        auto store = [&] {
          k.storeVector(square[r], rows.memory,
                        k.add(k.mul(row, rows.stride), d), count);
        };
        if (isRagged())
          k.when(k.isLess(row, k.i64(shape.sequence)), store);
        else
          store();
      }
    });
  }
}

StridedRows AttentionCode::widenRows(StridedRows rows, Value first, Value count,
                                     Memory space) {
  StridedRows there = rows.from(k, first);
  if (rows.memory.element.isF32() || pairs)
    return there;
  int64_t stride = padded(rows.size);
  k.loop(k.i64(0), count, 1, [&](Value row) {
    sizeChunks(rows.size, [&](Value d, int64_t columns) {
      Value value = k.loadVector(there.memory,
                                 k.add(k.mul(row, rows.stride), d), columns);
      k.storeVector(value, space, k.add(k.mul(row, stride), d), k.lanes());
    });
  });
  return {space, stride, rows.size};
}

StridedRows AttentionCode::pairRows(StridedRows rows, Value count,
                                    Memory space) {
  if (!pairs)
    return rows;
  keyGroups(count, 2, {}, [&](Value row, int64_t found, ValueRange) {
    storePairs(rows, row, found == 2 ? k.add(row, 1) : Value(), space,
               k.div(row, 2));
    return SmallVector<Value>();
  });
  if (tiles)
    tiles->clearPanels(space, rows.size, count);
  return {space, padded(rows.size), rows.size};
}

void AttentionCode::readDocuments(Memory documents, Value batch, Value first) {
  Memory line = k.offset(documents, k.mul(batch, shape.sequence));
  k.loop(0, queryBlock(), 1, [&](Value i) {
    Value row = k.min(k.add(first, i), k.i64(shape.sequence - 1));
    Value start = k.sub(k.add(row, shape.mask.offset), k.loadIndex(line, row));
    k.storeIndex(start, starts, i);
  });
}

SmallVector<Value> AttentionCode::keyBlocks(Value first, ValueRange initial,
                                            BlockBody body) {
  AttentionWalk walk(k, shape.mask);
  Value begin = walk.begin(first, kGroup);
  Value end = walk.end(first, queryBlock(), kGroup);
  if (shape.hasDocuments) {
    // Starts ascend: that of the first query is the least.
    Value start = k.max(k.loadIndex(starts, k.i64(0)), k.i64(0));
    begin = k.max(begin, k.sub(start, k.rem(start, kGroup)));
  }
  return k.loop(begin, end, kKeyBlock, initial,
                [&](Value key, ValueRange carried) {
                  Value count = k.min(k.sub(end, key), k.i64(kKeyBlock));
                  return body(key, count, carried);
                });
}

SmallVector<Value> AttentionCode::keyGroups(Value count, int64_t most,
                                            ValueRange initial,
                                            GroupBody body) {
  // A block of keys begins at a multiple of `most`; it ends at one or at the
  // sequence's end.
  int64_t rest = shape.sequence % most;
  Value whole = rest ? k.sub(count, k.rem(count, most)) : count;
  SmallVector<Value> carried =
      k.loop(k.i64(0), whole, most, initial,
             [&](Value i, ValueRange values) { return body(i, most, values); });
  if (!rest)
    return carried;
  return k.loop(whole, count, most, carried, [&](Value i, ValueRange values) {
    return body(i, rest, values);
  });
}

SmallVector<Value>
AttentionCode::product(int64_t rows, int64_t vectors, Value depth,
                       ValueRange initial,
                       llvm::function_ref<Value(Value i, int64_t r)> left,
                       llvm::function_ref<Value(Value i, int64_t v)> right) {
  return k.loop(k.i64(0), depth, 1, initial, [&](Value i, ValueRange sums) {
    return addProducts(rows, vectors, i, sums, left, right);
  });
}

SmallVector<Value> AttentionCode::addProducts(
    int64_t rows, int64_t vectors, Value i, ValueRange sums,
    llvm::function_ref<Value(Value i, int64_t r)> left,
    llvm::function_ref<Value(Value i, int64_t v)> right) {
  SmallVector<Value> factors, next;
  for (int64_t v = 0; v < vectors; ++v)
    factors.push_back(right(i, v));
  for (int64_t r = 0; r < rows; ++r) {
    Value scalar = k.broadcast(left(i, r));
    for (int64_t v = 0; v < vectors; ++v) {
      Value sum = sums[r * vectors + v];
      next.push_back(pairs ? k.addPairProducts(scalar, factors[v], sum)
                           : k.fma(scalar, factors[v], sum));
    }
  }
  return next;
}

Value AttentionCode::blockIndex(Value row, int64_t addRow, int64_t vector) {
  return k.add(k.mul(row, queryBlock()),
               addRow * queryBlock() + vector * k.lanes());
}

SmallVector<Value> AttentionCode::keysByBlock(StridedRows keys, Value first,
                                              int64_t rows, Memory transposed) {
  next.step();
  if (tiles)
    return tiles->products(first, rows);
  SmallVector<Value> zeros(rows * kVectors, k.splat(0.0f));
  Memory from = k.offset(keys.memory, k.mul(first, keys.stride));
  auto query = [&](Value d, int64_t v) {
    return k.loadVector(transposed, blockIndex(d, 0, v), k.lanes());
  };
  if (!pairs)
    return product(
        rows, kVectors, k.i64(keys.size), zeros,
        [&](Value d, int64_t r) {
          return k.load(from, k.add(d, r * keys.stride));
        },
        query);
  int64_t count = 2;
  auto key = [&](Value pair, int64_t r) {
    return k.loadBf16Pair(from, k.add(k.mul(pair, 2), r * keys.stride), count);
  };
  int64_t whole = keys.size / 2;
  SmallVector<Value> sums =
      product(rows, kVectors, k.i64(whole), zeros, key, query);
  if (keys.size % 2 == 0)
    return sums;
  count = 1;
  return addProducts(rows, kVectors, k.i64(whole), sums, key, query);
}

void AttentionCode::addWeightedKeys(Memory sums, ArrayRef<Value> factor,
                                    StridedRows keys, Value count,
                                    Memory weights) {
  if (tiles)
    return tiles->addKeys(sums, factor, keys, count, weights);
  auto add = [&](Value d, int64_t rows) {
    SmallVector<Value> initial;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < kVectors; ++v) {
        Value sum = k.loadVector(sums, blockIndex(d, r, v), k.lanes());
        initial.push_back(factor.empty() ? sum : k.mulf(sum, factor[v]));
      }
    SmallVector<Value> result = product(
        rows, kVectors, pairs ? pairsOf(k, count) : count, initial,
        [&](Value key, int64_t r) {
          return k.load(keys.memory,
                        k.add(k.add(k.mul(key, keys.stride), d), r));
        },
        [&](Value key, int64_t v) {
          return k.loadVector(weights, blockIndex(key, 0, v), k.lanes());
        });
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < kVectors; ++v)
        k.storeVector(result[r * kVectors + v], sums, blockIndex(d, r, v),
                      k.lanes());
  };
  int64_t rows = registerRows(), whole = keys.size / rows * rows;
  if (whole > 0)
    k.loop(0, whole, rows, [&](Value d) { add(d, rows); });
  if (whole < keys.size)
    add(k.i64(whole), keys.size - whole);
}

void AttentionCode::addWeightedQueries(StridedRows sums, Value count,
                                       Memory weights, Memory values) {
  if (tiles)
    return tiles->addQueries(sums, count, weights, values);
  int64_t lanes = k.lanes(), most = lanes >= 16 ? 4 : 2;
  int64_t depth = pairs ? queryBlock() / 2 : queryBlock();
  // One register block: `rows` keys by `columns` of the head from d on.
  auto add = [&](Value key, int64_t rows, Value d, int64_t columns) {
    int64_t vectors = (columns + lanes - 1) / lanes;
    auto countOf = [&](int64_t v) {
      return std::min(lanes, columns - v * lanes);
    };
    auto place = [&](int64_t r, int64_t v) {
      return k.add(k.add(k.mul(key, sums.stride), d),
                   r * sums.stride + v * lanes);
    };
    SmallVector<Value> initial;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < vectors; ++v)
        initial.push_back(k.loadVector(sums.memory, place(r, v), countOf(v)));
    SmallVector<Value> result = product(
        rows, vectors, k.i64(depth), initial,
        [&](Value query, int64_t r) {
          return k.load(weights,
                        k.add(k.add(k.mul(key, depth), r * depth), query));
        },
        [&](Value query, int64_t v) {
          return k.loadVector(
              values,
              k.add(k.add(k.mul(query, padded(sums.size)), d), v * lanes),
              lanes);
        });
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < vectors; ++v)
        k.storeVector(result[r * vectors + v], sums.memory, place(r, v),
                      countOf(v));
  };
  int64_t wide = most * lanes, whole = sums.size / wide * wide;
  keyGroups(count, 4, {}, [&](Value key, int64_t rows, ValueRange) {
    if (whole > 0)
      k.loop(0, whole, wide, [&](Value d) { add(key, rows, d, wide); });
    if (whole < sums.size)
      add(key, rows, k.i64(whole), sums.size - whole);
    return SmallVector<Value>();
  });
}

SmallVector<Value> AttentionCode::roundedRows(ArrayRef<Value> block) {
  SmallVector<Value> rows;
  for (size_t at = 0; at < block.size(); at += kVectors)
    rows.push_back(k.roundToPairs(block[at], block[at + 1]));
  return rows;
}

void AttentionCode::storeByKeys(ArrayRef<Value> block, Value i,
                                Memory weights) {
  if (!pairs) {
    for (auto [at, weight] : llvm::enumerate(block))
      k.storeVector(weight, weights,
                    blockIndex(i, at / kVectors, at % kVectors), k.lanes());
    return;
  }
  SmallVector<Value> rows = roundedRows(block);
  if (rows.size() % 2 != 0)
    rows.push_back(k.roundToPairs(k.splat(0.0f), k.splat(0.0f)));
  for (size_t r = 0; r < rows.size(); r += 2)
    for (int64_t v = 0; v < kVectors; ++v)
      k.storeVector(k.pairsOfRows(rows[r], rows[r + 1], v), weights,
                    blockIndex(k.div(i, 2), r / 2, v), k.lanes());
}

void AttentionCode::storeByQueries(ArrayRef<Value> block, Value i,
                                   Memory weights) {
  if (!pairs)
    return;
  int64_t width = queryBlock() / 2;
  for (auto [r, row] : llvm::enumerate(roundedRows(block)))
    k.storeVector(row, weights, k.add(k.mul(i, width), int64_t(r) * width),
                  k.lanes());
}

Value AttentionCode::capped(Value score, const Memory *bends, Value at) {
  if (shape.softCap == 0.0f)
    return score;
  Value bent = k.tanh(k.mulf(score, k.splat(1.0f / shape.softCap)));
  if (bends)
    k.storeVector(k.subf(k.splat(1.0f), k.mulf(bent, bent)), *bends, at,
                  k.lanes());
  return k.mulf(bent, k.splat(shape.softCap));
}

SmallVector<AttentionCode::MaskedQueries>
AttentionCode::maskedQueries(Value first) {
  // The position of the first key, or else of the last.
  int64_t distance = shape.mask.limitsBefore() ? firstSeen() : lastSeen();
  if (distance != 0)
    first = k.add(first, distance);
  SmallVector<MaskedQueries> queries;
  for (int64_t v = 0; v < kVectors; ++v) {
    queries.push_back({k.countFrom(k.add(first, v * k.lanes())), {}});
    if (shape.hasDocuments)
      queries.back().starts =
          k.loadVector(starts, k.i64(v * k.lanes()), k.lanes());
  }
  return queries;
}

Value AttentionCode::maskKey(Value score, Value key,
                             const MaskedQueries &queries, float otherwise) {
  const auto &mask = shape.mask;
  bool isMasked = mask.limitsBefore() || mask.limitsAfter();
  if (!isMasked && !queries.starts)
    return score;
  using Predicate = arith::CmpIPredicate;
  Value sees, index = k.broadcastIndex(key);
  if (isBand()) {
    // Without its sign a key before the band is beyond its end.
    Value place = k.sub(index, queries.positions);
    Value last = k.broadcastIndex(k.i64(mask.before + mask.after));
    sees = arith::CmpIOp::create(k.ops(), Predicate::ule, place, last);
  } else if (mask.limitsAfter()) {
    sees = arith::CmpIOp::create(k.ops(), Predicate::sge, queries.positions,
                                 index);
  } else if (isMasked) {
    sees = arith::CmpIOp::create(k.ops(), Predicate::sge, index,
                                 queries.positions);
  }
  if (queries.starts) {
    Value isInDocument =
        arith::CmpIOp::create(k.ops(), Predicate::sge, index, queries.starts);
    sees = sees ? k.both(sees, isInDocument) : isInDocument;
  }
  return arith::SelectOp::create(k.ops(), sees, score, k.splat(otherwise));
}

} // namespace rota::lowering
