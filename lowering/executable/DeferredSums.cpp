// SPDX-License-Identifier: Apache-2.0
#include "lowering/executable/DeferredSums.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace rota::lowering {

/// The most sums of one call: a block compares its number with each.
static constexpr size_t kMostSums = 8;

llvm::SmallDenseSet<unsigned> DeferredSums::keptBy(const TaskStep &step) const {
  llvm::SmallDenseSet<unsigned> numbers;
  for (const KernelCall &call : step.kernels.calls)
    if (isDeferred(call))
      numbers.insert(call.arguments[0].index);
  return numbers;
}

void DeferredSums::takeFrom(TaskStep &step) {
  llvm::erase_if(step.kernels.calls, [&](const KernelCall &call) {
    if (!isDeferred(call))
      return false;
    sums.push_back({*call.sum, step.loc,
                    step.temporaries[call.arguments[0].index],
                    step.results[call.arguments[1].index]});
    return true;
  });
}

LogicalResult DeferredSums::addTo(FunctionBuffers &task) {
  while (!sums.empty()) {
    Sum first = sums.front();
    TaskStep step{TaskStep::Kind::Kernels, first.loc};
    KernelCall call;
    llvm::erase_if(sums, [&](const Sum &sum) {
      bool isThere = llvm::any_of(step.results, [&](const auto &result) {
        return isSameAddress(result, sum.to);
      });
      if (!(sum.form == first.form) || isThere ||
          step.results.size() == kMostSums)
        return false;
      auto number = unsigned(step.results.size());
      call.arguments.push_back({KernelArgument::Kind::Temporary, number});
      call.arguments.push_back({KernelArgument::Kind::Result, number});
      step.temporaries.push_back(sum.from);
      step.results.push_back(sum.to);
      return true;
    });
    auto count = unsigned(step.results.size());
    auto symbol =
        library.getTarget().emitSums(library, first.loc, first.form, count);
    if (failed(symbol))
      return failure();
    call.symbol = *symbol;
    call.rows = count * first.form.columns;
    step.kernels.calls.push_back(call);
    addSumLaunch(call, first.form, count, task.launches);
    task.steps.push_back(std::move(step));
  }
  return success();
}

} // namespace rota::lowering
