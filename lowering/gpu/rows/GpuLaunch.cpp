// SPDX-License-Identifier: Apache-2.0
//
// A launch of a fused kernel on a GPU: the kernel over all rows and, for each
// result that is summed over the rows, a kernel that adds up the partial sums.
#include "lowering/gpu/rows/GpuRowKernel.h"
#include "lowering/gpu/rows/LaunchTable.h"
#include "lowering/gpu/rows/SumRows.h"

using namespace mlir;
using mlir::rota::LaunchOp;

namespace rota::lowering {

static int64_t elementsOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

/// A text that determines the code of the kernel over the rows.
static std::string keyOf(LaunchOp op, int64_t stride, ArrayRef<bool> accumulate,
                         bool hasTable) {
  std::string key;
  llvm::raw_string_ostream stream(key);
  op.getKernelOp()->print(stream, OpPrintingFlags().useLocalScope());
  for (bool flag : accumulate)
    stream << (flag ? " add" : " set");
  stream << " rows " << op.getRows() << " every " << stride;
  // A launch that stands in a table must not be part of another task.
  stream << (hasTable ? " in a table" : "");
  return key;
}

/// The kernel itself; results of kind `sum` go to temporaries.
static KernelCall callRows(LaunchOp op, const RowBody &body,
                           const RowGeometry &geometry, StringRef symbol,
                           KernelPlan &plan) {
  using Kind = KernelArgument::Kind;
  KernelCall call{symbol.str(), int64_t(op.getRows()), 1, {}};
  for (unsigned i = 0; i < op.getInputs().size(); ++i)
    call.arguments.push_back({Kind::Operand, i});
  for (unsigned i = 0; i < op.getNumResults(); ++i) {
    if (!body.isSum(i)) {
      call.arguments.push_back({Kind::Result, i});
      continue;
    }
    call.arguments.push_back(
        {Kind::Temporary, unsigned(plan.temporaries.size())});
    plan.temporaries.push_back(geometry.slots * elementsOf(op.getResult(i)) *
                               4);
  }
  return call;
}

static FailureOr<KernelPlan> planLaunch(LaunchOp op, ArrayRef<bool> accumulate,
                                        KernelLibrary &library) {
  mlir::rota::KernelOp kernel = op.getKernelOp();
  if (!kernel)
    return op.emitOpError("expected a 'rota.kernel', '")
           << op.getKernel() << "' is none";
  FailureOr<RowBody> body = RowBody::get(op);
  if (failed(body))
    return failure();
  int64_t rows = op.getRows();
  RowGeometry geometry(*body, rows);
  // The library numbers kernels itself: "rms_norm_3" becomes "rms_norm".
  StringRef name = kernel.getSymName().rtrim("0123456789").rtrim('_');
  bool hasTable = library.hasTables() && isWholeFunction(op) &&
                  llvm::none_of(accumulate, [](bool adds) { return adds; });
  auto symbol =
      emitGpuKernel(library, op->getLoc(), name,
                    keyOf(op, body->getStride(), accumulate, hasTable),
                    op.getInputs().size() + op.getNumResults(), geometry.blocks,
                    geometry.blockThreads, [&](GpuBuilder &k) {
                      GpuRowKernel(*body, geometry, rows, accumulate).emit(k);
                    });
  if (failed(symbol))
    return failure();
  if (LaunchShape shape = library.getLaunchShape(*symbol);
      hasTable && shape.table.empty()) {
    if (failed(addTable(op->getLoc(), name, *body, rows, library, shape)))
      return failure();
    library.setLaunchShape(*symbol, shape);
  }
  KernelPlan plan;
  plan.calls.push_back(callRows(op, *body, geometry, *symbol, plan));
  for (unsigned i = 0, temporary = 0; i < op.getNumResults(); ++i) {
    if (!body->isSum(i))
      continue;
    SummedRows sum{geometry.slots, elementsOf(op.getResult(i)),
                   getElementTypeOrSelf(op.getResult(i).getType()),
                   bool(accumulate[i])};
    auto call =
        planSumRows(op, sum, {KernelArgument::Kind::Temporary, temporary++},
                    {KernelArgument::Kind::Result, i}, library);
    if (failed(call))
      return failure();
    plan.calls.push_back(*call);
  }
  return plan;
}

void addGpuLaunchEmitters(KernelEmitters &emitters) {
  emitters.add<planLaunch>();
}

} // namespace rota::lowering
