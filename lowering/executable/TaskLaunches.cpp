// SPDX-License-Identifier: Apache-2.0
#include "lowering/executable/TaskLaunches.h"

#include "lowering/executable/Buffers.h"
#include "lowering/executable/ConstantTables.h"
#include "runtime/program/GemmName.h"

#include <algorithm>

using namespace mlir;

namespace rota::lowering {

std::string kernelName(StringRef symbol) {
  symbol.consume_front("kernel_");
  return symbol.rtrim("0123456789").rtrim('_').str();
}

/// Bytes of each operand and result of an op as a launch reads or writes them.
struct ValueBytes {
  SmallVector<double> operands, results;

  ValueBytes(ArrayRef<Operation *> ops, ArrayRef<bool> accumulate) {
    for (Operation *op : ops) {
      for (Value operand : op->getOperands())
        operands.push_back(double(tensorBytes(operand.getType())));
      for (Value result : op->getResults())
        results.push_back(double(tensorBytes(result.getType())));
    }
    for (auto [bytes, adds] : llvm::zip(results, accumulate))
      bytes *= adds ? 2 : 1;
    if (results.empty() && !operands.empty())
      results.push_back(2 * operands[0]);
  }
};

static double bytesOf(const KernelCall &call, const ValueBytes &values,
                      ArrayRef<int64_t> temporaries) {
  using Kind = KernelArgument::Kind;
  double bytes = 0;
  for (const KernelArgument &argument : call.arguments) {
    if (argument.kind == Kind::Operand)
      bytes += values.operands[argument.index];
    else if (argument.kind == Kind::Result)
      bytes += values.results[argument.index];
    else if (argument.kind == Kind::Temporary)
      bytes += double(temporaries[argument.index]);
  }
  return bytes;
}

void addLaunches(ArrayRef<Operation *> ops, const TaskStep &step,
                 ArrayRef<bool> accumulate, const KernelLibrary &library,
                 TaskLaunches &launches) {
  ValueBytes values(ops, accumulate);
  if (step.kind == TaskStep::Kind::Gemm) {
    const RotaGemm &gemm = step.gemm.gemm;
    // The accumulator may have another type than the op's result.
    double result = double(gemm.batch) * double(gemm.m) * double(gemm.n) *
                    (gemm.typeC == ROTA_BF16 ? 2 : 4);
    launches.push_back({gemmName(gemm),
                        values.operands[0] + values.operands[1] +
                            (gemm.accumulate ? 2 : 1) * result,
                        gemmOperations(gemm)});
    return;
  }
  if (step.kind != TaskStep::Kind::Kernels)
    return;
  size_t first = launches.size();
  for (const KernelCall &call : step.kernels.calls)
    launches.push_back({kernelName(call.symbol),
                        bytesOf(call, values, step.kernels.temporaries), 0,
                        library.getLaunchShape(call.symbol).table});
  if (first == launches.size())
    return;
  auto largest =
      std::max_element(launches.begin() + int64_t(first), launches.end(),
                       [](const TaskLaunch &a, const TaskLaunch &b) {
                         return a.bytes < b.bytes;
                       });
  for (Operation *op : ops)
    if (auto priced = dyn_cast<mlir::rota::CostOpInterface>(op))
      largest->operations += priced.getCost().flops;
}

void addSumLaunch(const KernelCall &call, const SummedRows &sum, unsigned count,
                  TaskLaunches &launches) {
  int64_t size = sum.element.getIntOrFloatBitWidth() / 8;
  int64_t row = 4 * sum.rows + (sum.accumulate ? 2 : 1) * size;
  launches.push_back(
      {kernelName(call.symbol), double(count * sum.columns * row)});
}

} // namespace rota::lowering
