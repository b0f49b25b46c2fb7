// SPDX-License-Identifier: Apache-2.0
#include "lowering/gpu/rows/LaunchTable.h"

#include "lowering/gpu/rows/GpuRowKernel.h"
#include "runtime/Abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using mlir::rota::KernelOp;
using mlir::rota::LaunchOp;

namespace rota::lowering {

bool isWholeFunction(LaunchOp op) {
  auto end = dyn_cast_or_null<func::ReturnOp>(op->getNextNode());
  if (!end || op->getPrevNode() || end.getNumOperands() != op.getNumResults())
    return false;
  llvm::DenseSet<Value> returned;
  for (Value value : end.getOperands())
    if (value.getDefiningOp() != op || !returned.insert(value).second)
      return false;
  return true;
}

/// Whether each element is computed from those at its place and from values
/// that all share.
static bool isElementwise(const RowBody &body, const RowGeometry &geometry) {
  for (BlockArgument operand : body.getOperands()) {
    AffineMap map = body.getMap(operand.getArgNumber());
    if (RowBody::rankOf(operand) == 1 ? !map.isIdentity() : !map.isConstant())
      return false;
  }
  return geometry.form == RowGeometry::Form::Chunks &&
         llvm::all_of(body.getResults(),
                      [](Value value) { return RowBody::rankOf(value) == 1; });
}

/// The kernel on rows of `columns`, for the same elements.
static OwningOpRef<KernelOp> withColumns(KernelOp kernel, int64_t columns) {
  OwningOpRef<KernelOp> copy = kernel.clone();
  auto resize = [&](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getRank() == 1)
      value.setType(type.clone({columns}));
  };
  Block &block = copy->getBody().front();
  llvm::for_each(block.getArguments(), resize);
  for (Operation &op : block.without_terminator()) {
    llvm::for_each(op.getResults(), resize);
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      constant.setValueAttr(
          cast<SplatElementsAttr>(constant.getValue())
              .resizeSplat(cast<ShapedType>(constant.getType())));
  }
  return copy;
}

/// A text that determines the code of the kernel for a table.
static std::string keyOf(KernelOp kernel) {
  OwningOpRef<KernelOp> copy = kernel.clone();
  copy->setSymName("table");
  std::string key;
  llvm::raw_string_ostream stream(key);
  copy->getOperation()->print(stream, OpPrintingFlags().useLocalScope());
  return key;
}

namespace {

/// Arguments of the kernel for a table: RotaGpuLaunch::table.
enum TableArgument : unsigned { First, Rows, Count, Trips, TableArguments };

/// Code that finds the launch of a block.
class TableCode {
public:
  TableCode(GpuBuilder &k, int64_t arguments)
      : k(k), arguments(arguments), block(k.block()) {}

  /// Enters the launch; the number of its rows, i64.
  Value enter() {
    Value launch = find();
    Memory rows = k.argument(Rows, k.ops().getI64Type());
    Value place = k.mul(k.widen(launch), 1 + arguments);
    auto pointer = k.argument(Rows, k.ops().getI8Type()).base.getType();
    SmallVector<Value> addresses;
    for (int64_t i = 0; i < arguments; ++i)
      addresses.push_back(LLVM::IntToPtrOp::create(
          k.ops(), pointer, k.load(rows, k.add(place, 1 + i))));
    Value count = k.load(rows, place);
    k.enterLaunch(addresses, k.sub(block, firstOf(launch)));
    return count;
  }

private:
  Value firstOf(Value launch) {
    return k.load(k.argument(First, k.ops().getI32Type()), k.widen(launch));
  }

  /// A number that stands in the place of a pointer, as i32.
  Value number(TableArgument argument) {
    Value base = k.argument(argument, k.ops().getI8Type()).base;
    return LLVM::PtrToIntOp::create(k.ops(), k.ops().getI32Type(), base);
  }

  /// The last launch whose first block is not beyond this one, by halves.
  Value find() {
    Value count = number(Count), trips = number(Trips);
    Value power = arith::ShLIOp::create(k.ops(), k.i32(1), trips);
    Value last = k.add(count, -1);
    return k.loop(k.i32(0), trips, 1, {k.i32(0), k.div(power, 2)},
                  [&](Value, ValueRange carried) -> SmallVector<Value> {
                    Value next = k.add(carried[0], carried[1]);
                    Value begins = firstOf(k.min(next, last));
                    Value isAtOrBefore =
                        k.both(k.isLess(next, count),
                               k.isLess(begins, k.add(block, 1)));
                    return {k.select(isAtOrBefore, next, carried[0]),
                            k.div(carried[1], 2)};
                  })[0];
  }

  GpuBuilder &k;
  int64_t arguments;
  Value block;
};

} // namespace

LogicalResult addTable(Location loc, StringRef name, const RowBody &body,
                       int64_t rows, KernelLibrary &library,
                       LaunchShape &shape) {
  int64_t arguments =
      int64_t(body.getOperands().size() + body.getResults().size());
  for (unsigned i = 0; i < body.getResults().size(); ++i)
    if (body.isSum(i))
      return success();
  if (arguments > ROTA_TABLE_ARGUMENTS || body.getColumns() == 0)
    return success();
  OwningOpRef<KernelOp> kernel = body.getKernel().clone();
  if (isElementwise(body, RowGeometry(body, rows))) {
    int64_t elements = rows * body.getColumns();
    int64_t width = chunkWidth(elements, narrowestElement(body));
    rows = elements / width;
    kernel = withColumns(body.getKernel(), width);
  }
  FailureOr<RowBody> inTable = RowBody::get(*kernel);
  if (failed(inTable))
    return failure();
  RowGeometry geometry(*inTable, rows);
  auto symbol = emitGpuKernel(
      library, loc, (name + "_table").str(), keyOf(*kernel), TableArguments,
      /*blocks=*/0, geometry.blockThreads, [&](GpuBuilder &k) {
        Value count = TableCode(k, arguments).enter();
        SmallVector<bool> replaces(inTable->getResults().size(), false);
        GpuRowKernel(*inTable, geometry, rows, replaces).emit(k, count);
      });
  if (failed(symbol))
    return failure();
  shape.table = *symbol;
  shape.tableRows = rows;
  shape.tableBlocks = geometry.blocks;
  return success();
}

} // namespace rota::lowering
