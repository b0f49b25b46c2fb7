// SPDX-License-Identifier: Apache-2.0
//
// The code of one row of a kernel, written once for every device. On a CPU one
// thread does a row, and a vector has the lanes of a register. On a GPU a block
// of threads does a row: threads share its elements and columns, all of them
// run what stands outside the verbs below, and a vector is what one of them
// loads at once. Indices are i64.
#ifndef ROTA_LOWERING_KERNELS_ROWBUILDER_H
#define ROTA_LOWERING_KERNELS_ROWBUILDER_H

#include "lowering/kernels/KernelPlan.h"
#include "lowering/kernels/ValueBuilder.h"

namespace rota::lowering {

/// Elements in memory: an address (!llvm.ptr) and f32, bf16 or i32.
struct Memory {
  mlir::Value base;
  mlir::Type element;
};

/// The rows of a kernel, and what each consists of.
struct RowForm {
  int64_t rows;
  int64_t columns;    // of vectors, or elements that `each` numbers
  unsigned bits;      // of the narrowest element of columns
  int64_t most = 256; // threads of a row on a GPU at most, a power of two
  // Code of overColumns, copyRow and clearRow alone, over all columns, for
  // which a GPU gives each thread one vector of one of many rows.
  bool alone = false;
  int64_t begin = 0; // elements before or between the rows in memory
  // Elements from one row to the next where they are not `columns`. Not with
  // `alone`.
  int64_t stride = 0;
  // Elements that a thread loads before it uses them on a GPU, where rows are
  // long; 0: one vector.
  int64_t inFlight = 0;
  // Code without local memory, sync and `each`: where a row is one vector, a
  // GPU gives it to one thread.
  bool mayBeAlone = false;
  // One warp of a GPU does a row, for code without walkColumns, loadOwn,
  // storeOwn, rankKeys, logSumExp and sumEach.
  bool ofWarp = false;
};

class RowBuilder : public ValueBuilder {
public:
  using ValueBuilder::ValueBuilder;
  virtual ~RowBuilder() = default;

  /// The buffer of argument `i`, whose elements are `element`.
  virtual Memory argument(unsigned i, mlir::Type element) = 0;
  /// Memory of the row alone. What a thread writes there, or in a buffer, other
  /// threads of the row read after sync().
  virtual Memory local(int64_t elements, mlir::Type element) = 0;
  Memory offset(Memory memory, mlir::Value by);

  mlir::Value load(Memory memory, mlir::Value index);
  mlir::Value loadIndex(Memory memory, mlir::Value index); // i32 to i64
  void store(mlir::Value value, Memory memory, mlir::Value index);
  void storeIndex(mlir::Value value, Memory memory, mlir::Value at); // as i32

  /// Calls body(i) for i from 0 to below `count`, on a GPU in any order.
  virtual void each(int64_t count, Body body) = 0;
  /// Writes code of one thread of the row.
  virtual void once(llvm::function_ref<void()> body) = 0;
  virtual void sync() = 0;

  /// Stores the number of elements of `keys` that are each key below `keyCount`
  /// in `totals`, and calls counted(), with sync() before and after it. Then
  /// calls visit(i, key, rank) for each such element, in any order: `rank`
  /// elements before number i are the same key. Without `visit` it only stores
  /// the totals.
  using RankBody = llvm::function_ref<void(mlir::Value i, mlir::Value key,
                                           mlir::Value rank)>;
  virtual void rankKeys(Memory keys, int64_t count, int64_t keyCount,
                        Memory totals, llvm::function_ref<void()> counted,
                        RankBody visit) = 0;

  /// Elements of a vector at most.
  virtual int64_t lanes() const = 0;
  /// Calls body(first, counts) for neighbouring vectors of a row of `width`
  /// elements: `counts` has the elements of each.
  using ColumnsBody = llvm::function_ref<void(mlir::Value first,
                                              llvm::ArrayRef<int64_t> counts)>;
  virtual void overColumns(int64_t width, ColumnsBody body) = 0;
  /// As overColumns, for vectors that need not be neighbours: `firsts` has the
  /// first column of each. Each thread of a GPU has the same columns in every
  /// walk.
  using WalkBody = llvm::function_ref<void(llvm::ArrayRef<mlir::Value> firsts,
                                           llvm::ArrayRef<int64_t> counts)>;
  virtual void walkColumns(int64_t width, WalkBody body) = 0;
  /// The element of `column`, which may lie outside of the row, for the thread
  /// that has it in walkColumns; any number for others.
  virtual mlir::Value loadOwn(Memory line, mlir::Value column,
                              int64_t width) = 0;
  /// That thread stores the element, if it lies in the row.
  virtual void storeOwn(mlir::Value value, Memory line, mlir::Value column,
                        int64_t width) = 0;
  /// Carries a vector of lanes() elements over all vectors of a row; sumOfRow
  /// or maxOfRow combines it.
  using FoldBody = llvm::function_ref<mlir::Value(mlir::Value at, int64_t count,
                                                  mlir::Value carried)>;
  virtual mlir::Value foldColumns(int64_t width, mlir::Value initial,
                                  FoldBody body) = 0;
  /// A load of `count` < lanes elements yields `filler` in the lanes beyond; a
  /// store leaves memory there alone.
  virtual mlir::Value loadVector(Memory memory, mlir::Value index,
                                 int64_t count, float filler = 0.0f) = 0;
  /// The first and the second elements of `count` neighbouring pairs.
  virtual std::pair<mlir::Value, mlir::Value>
  loadPairs(Memory memory, mlir::Value index, int64_t count) = 0;
  virtual void storeVector(mlir::Value value, Memory memory, mlir::Value index,
                           int64_t count) = 0;
  /// `value`, lane i of which is number `index` + i, with `filler` from `end`
  /// on.
  virtual mlir::Value before(mlir::Value end, mlir::Value index,
                             mlir::Value value, float filler) = 0;
  virtual void copyRow(Memory from, Memory to, int64_t width) = 0;
  virtual void clearRow(Memory to, int64_t width) = 0;

  virtual mlir::Value splat(float value) = 0;
  virtual mlir::Value broadcast(mlir::Value scalar) = 0;
  /// e to the power of a vector of at most 88.
  virtual mlir::Value exp(mlir::Value value) = 0;
  /// A scalar that all threads of the row get.
  virtual mlir::Value sumOfRow(mlir::Value vector) = 0;
  virtual mlir::Value maxOfRow(mlir::Value vector) = 0;
  /// The logarithm of the sum of the exponentials of a row, or of its columns
  /// before `end`, if any; the least f32 where there are none. All threads of
  /// the row get it.
  virtual mlir::Value logSumExp(Memory line, int64_t width,
                                mlir::Value end) = 0;
  /// Carries `zeros` over i below `count`, each thread of a GPU over some of
  /// them, and adds up what the threads have. The thread of once() gets it.
  virtual llvm::SmallVector<mlir::Value>
  sumEach(int64_t count, mlir::ValueRange zeros, CarryBody body) = 0;
  /// The number of the largest of `count` f32, the first of equal ones; 0 where
  /// none is a number. All threads of the row get it.
  virtual mlir::Value largestOf(Memory values, int64_t count) = 0;

protected:
  /// `best` [value, index] or, where `value` is greater, `value` and `index`.
  llvm::SmallVector<mlir::Value> better(mlir::ValueRange best,
                                        mlir::Value value, mlir::Value index);
};

/// The symbol of the kernel with this key, of `arguments` arguments, for the
/// device of `library`; body(k, row) writes the code of a row when the library
/// lacks it.
llvm::FailureOr<std::string>
emitRowCode(KernelLibrary &library, mlir::Location loc, llvm::StringRef prefix,
            llvm::StringRef key, unsigned arguments, const RowForm &space,
            llvm::function_ref<void(RowBuilder &k, mlir::Value row)> body);

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_ROWBUILDER_H
