// SPDX-License-Identifier: Apache-2.0
//
// Embedding copies rows of a table. Its derivative adds rows into the table's
// gradient: each kernel row owns a range of columns and takes all tokens in
// ascending order, so that no two threads add to one element.
#include "lowering/kernels/DedicatedKernels.h"
#include "lowering/kernels/KernelBuilder.h"

using namespace mlir;

namespace rota::lowering {
namespace {

struct Table {
  Table(Value tokens, Value table) {
    auto type = cast<RankedTensorType>(table.getType());
    count = cast<RankedTensorType>(tokens.getType()).getNumElements();
    vocabulary = type.getDimSize(0);
    columns = type.getDimSize(1);
  }
  int64_t count, vocabulary, columns;
};

/// Vectors in the columns of one kernel row of the derivative.
constexpr int64_t kVectors = 4;

/// Adds the tokens' cotangents into `columns` columns from `start` on.
void emitColumns(KernelBuilder &k, const Table &table, Type element,
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
    Value to = k.mul(k.loadIndex(tokens, i), table.columns);
    Value from = k.mul(i, table.columns);
    overVectors([&](int64_t at, int64_t count) {
      Value sum = k.addf(k.loadVector(result, k.add(to, at), count),
                         k.loadVector(cotangents, k.add(from, at), count));
      k.storeVector(sum, result, k.add(to, at), count);
    });
  });
}

/// Arguments: tokens, cotangents, result.
void emitGradient(KernelBuilder &k, const Table &table, Type element,
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

FailureOr<KernelPlan> planEmbedding(mlir::rota::EmbeddingOp op,
                                    KernelLibrary &library) {
  Table table(op.getTokens(), op.getTable());
  Type element = op.getTable().getType().getElementType();
  int64_t bytes = table.columns * element.getIntOrFloatBitWidth() / 8;
  FailureOr<std::string> symbol = emitDedicated(
      library, "embedding", std::to_string(bytes), 3, [&](KernelBuilder &k) {
        Type i8 = k.ops().getI8Type();
        Memory tokens = k.argument(0, k.ops().getI32Type());
        Memory rows = k.argument(1, i8), result = k.argument(2, i8);
        k.loop(k.begin(), k.end(), 1, [&](Value row) {
          Value token = k.loadIndex(tokens, row);
          k.copy(k.offset(rows, k.mul(token, bytes)),
                 k.offset(result, k.mul(row, bytes)), bytes);
        });
      });
  if (failed(symbol))
    return failure();
  using Kind = KernelArgument::Kind;
  KernelPlan plan;
  plan.calls.push_back(
      {*symbol,
       table.count,
       1,
       {{Kind::Operand, 0}, {Kind::Operand, 1}, {Kind::Result, 0}}});
  return plan;
}

FailureOr<KernelPlan> planEmbeddingGrad(mlir::rota::EmbeddingGradOp op,
                                        bool accumulate,
                                        KernelLibrary &library) {
  Table table(op.getTokens(), op.getResult());
  Type element = op.getCotangent().getType().getElementType();
  std::string key;
  llvm::raw_string_ostream(key)
      << table.count << 'x' << table.vocabulary << 'x' << table.columns << 'x'
      << element << (accumulate ? " added" : "");
  FailureOr<std::string> symbol =
      emitDedicated(library, "embedding_grad", key, 3, [&](KernelBuilder &k) {
        emitGradient(k, table, element, accumulate);
      });
  if (failed(symbol))
    return failure();
  int64_t block = kVectors * library.getVectorBits() / 32;
  using Kind = KernelArgument::Kind;
  KernelPlan plan;
  plan.calls.push_back(
      {*symbol,
       (table.columns + block - 1) / block,
       1,
       {{Kind::Operand, 0}, {Kind::Operand, 1}, {Kind::Result, 0}}});
  return plan;
}

} // namespace rota::lowering
