// SPDX-License-Identifier: Apache-2.0
//
// Embedding copies rows of a table, on every device. Its derivative adds rows
// into the table's gradient: each kernel row owns a range of columns and takes
// all tokens in ascending order, so that no two threads add to one element.
// With an offset the table is a part of the vocabulary. Tokens that have no row
// give zeros or add nothing.
#include "lowering/kernels/KernelBuilder.h"
#include "lowering/kernels/TokenShapes.h"

using namespace mlir;

namespace rota::lowering {
namespace {

/// Calls body(row) with the table's row of token `i`, or `otherwise` where it
/// has none.
void withRow(
    RowBuilder &k, const EmbeddingTable &table, Memory tokens, Value i,
    unsigned offset, llvm::function_ref<void(Value row)> body,
    llvm::function_ref<void()> otherwise = [] {}) {
  Value row = k.loadIndex(tokens, i);
  if (table.isPart) {
    Memory first = k.argument(offset, k.ops().getI32Type());
    row = k.sub(row, k.loadIndex(first, k.i64(0)));
  }
  k.branch(k.isWithin(row, table.vocabulary), [&] { body(row); }, otherwise);
}

/// Arguments: tokens, table, result, offset of a part.
void emitEmbedding(RowBuilder &k, const EmbeddingTable &table, Type element,
                   Value i) {
  Memory tokens = k.argument(0, k.ops().getI32Type());
  Memory rows = k.argument(1, element);
  Memory to = k.offset(k.argument(2, element), k.mul(i, table.columns));
  withRow(
      k, table, tokens, i, /*offset=*/3,
      [&](Value row) {
        k.copyRow(k.offset(rows, k.mul(row, table.columns)), to, table.columns);
      },
      [&] { k.clearRow(to, table.columns); });
}

/// Vectors in the columns of one kernel row of the derivative.
constexpr int64_t kVectors = 4;

/// Adds the tokens' cotangents into `columns` columns from `start` on.
void emitColumns(KernelBuilder &k, const EmbeddingTable &table, Type element,
                 bool accumulate, Value start, int64_t columns) {
  Memory tokens = k.argument(0, k.ops().getI32Type());
  Memory cotangents = k.offset(k.argument(1, element), start);
  Memory result = k.offset(k.argument(2, k.ops().getF32Type()), start);
  auto overVectors = [&](llvm::function_ref<void(int64_t, int64_t)> body) {
    for (int64_t at = 0; at < columns; at += k.lanes())
      body(at, std::min(k.lanes(), columns - at));
  };
  if (!accumulate)
    k.loop(0, table.vocabulary, 1, [&](Value row) {
      overVectors([&](int64_t at, int64_t count) {
        k.storeVector(k.splat(0.0f), result,
                      k.add(k.mul(row, table.columns), at), count);
      });
    });
  k.loop(0, table.count, 1, [&](Value i) {
    withRow(k, table, tokens, i, /*offset=*/3, [&](Value row) {
      Value to = k.mul(row, table.columns), from = k.mul(i, table.columns);
      overVectors([&](int64_t at, int64_t count) {
        Value sum = k.addf(k.loadVector(result, k.add(to, at), count),
                           k.loadVector(cotangents, k.add(from, at), count));
        k.storeVector(sum, result, k.add(to, at), count);
      });
    });
  });
}

/// Arguments: tokens, cotangents, result, offset of a part.
void emitGradient(KernelBuilder &k, const EmbeddingTable &table, Type element,
                  bool accumulate) {
  int64_t block = kVectors * k.lanes();
  int64_t whole = table.columns / block, rest = table.columns % block;
  Value wholeEnd = k.i64(whole);
  k.loop(k.begin(), k.min(k.end(), wholeEnd), 1, [&](Value row) {
    emitColumns(k, table, element, accumulate, k.mul(row, block), block);
  });
  if (rest)
    k.when(k.isLess(wholeEnd, k.end()), [&] {
      emitColumns(k, table, element, accumulate, k.i64(whole * block), rest);
    });
}

} // namespace

static FailureOr<KernelPlan> planEmbedding(mlir::rota::EmbeddingOp op,
                                           KernelLibrary &library) {
  EmbeddingTable table(op.getTokens(), op.getTable(), op.getOffset());
  Type element = op.getTable().getType().getElementType();
  std::string key;
  llvm::raw_string_ostream(key)
      << table.vocabulary << " of " << table.columns << 'x' << element
      << (table.isPart ? " part" : "");
  RowForm space{table.count, table.columns, element.getIntOrFloatBitWidth(),
                /*most=*/256, /*alone=*/true};
  FailureOr<std::string> symbol = emitRowCode(
      library, op->getLoc(), "embedding", key, 3 + table.isPart, space,
      [&](RowBuilder &k, Value i) { emitEmbedding(k, table, element, i); });
  auto plan = planCall(symbol, table.count, 1, /*operands=*/2);
  if (succeeded(plan))
    table.addOffset(plan->calls.back());
  return plan;
}

static FailureOr<KernelPlan> planEmbeddingGrad(mlir::rota::EmbeddingGradOp op,
                                               ArrayRef<bool> accumulated,
                                               KernelLibrary &library) {
  bool accumulate = accumulated.front();
  EmbeddingTable table(op.getTokens(), op.getResult(), op.getOffset());
  Type element = op.getCotangent().getType().getElementType();
  std::string key;
  llvm::raw_string_ostream(key)
      << table.count << 'x' << table.vocabulary << 'x' << table.columns << 'x'
      << element << (accumulate ? " added" : "")
      << (table.isPart ? " part" : "");
  FailureOr<std::string> symbol = emitDedicated(
      library, "embedding_grad", key, 3 + table.isPart,
      [&](KernelBuilder &k) { emitGradient(k, table, element, accumulate); });
  int64_t block = kVectors * library.getVectorBits() / 32;
  auto plan =
      planCall(symbol, (table.columns + block - 1) / block, 1, /*operands=*/2);
  if (succeeded(plan))
    table.addOffset(plan->calls.back());
  return plan;
}

void addEmbeddingRowsEmitters(KernelEmitters &emitters) {
  emitters.add<planEmbedding>();
}

void addEmbeddingEmitters(KernelEmitters &emitters) {
  addEmbeddingRowsEmitters(emitters);
  emitters.add<planEmbeddingGrad>();
}

} // namespace rota::lowering
