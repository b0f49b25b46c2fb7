// SPDX-License-Identifier: Apache-2.0
//
// GPU kernels as PTX for each chip and, where ptxas is found, cubins.
#include "lowering/device/GpuDeviceCode.h"
#include "lowering/executable/Ptxas.h"
#include "lowering/executable/Trainer.h"
#include "lowering/gpu/NvvmModule.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace rota::lowering {
namespace {

class CudaCode : public GpuDeviceCode {
public:
  explicit CudaCode(ArrayRef<std::string> gpus)
      : chips(gpus.begin(), gpus.end()) {
    if (chips.empty())
      chips.assign(trainerChips().begin(), trainerChips().end());
  }

  std::optional<std::string> codeOptions() const override {
    if (!ptxas.empty())
      return std::nullopt;
    return "cuda " + llvm::join(chips, ",");
  }
  LogicalResult findTools(Location loc, const LinkOptions &options) override {
    auto found = findPtxas(loc, options.ptxas);
    if (succeeded(found))
      ptxas = *found;
    return found;
  }

protected:
  StringRef chip() const override { return ""; }
  FailureOr<std::vector<GpuCode>>
  makeCode(Location loc, llvm::Module &trainer,
           const llvm::Module &gpu) const override {
    std::vector<GpuCode> codes;
    std::vector<std::unique_ptr<PtxasRun>> runs;
    for (StringRef chip : chips) {
      auto text = emitPtx(loc, gpu, chip);
      if (failed(text))
        return failure();
      codes.push_back(gpuCode(trainer, chip, /*isAssembled=*/false, *text));
      if (ptxas.empty())
        continue;
      auto run = PtxasRun::start(loc, ptxas, chip, *text);
      if (failed(run))
        return failure();
      runs.push_back(std::move(*run));
    }
    for (auto [chip, run] : llvm::zip(chips, runs)) {
      auto bytes = run->finish();
      if (failed(bytes))
        return failure();
      codes.push_back(gpuCode(trainer, chip, /*isAssembled=*/true, *bytes));
    }
    return codes;
  }

private:
  std::vector<std::string> chips;
  std::string ptxas; // empty: without cubins
};

} // namespace

std::unique_ptr<DeviceCode> makeCudaCode(const TargetOptions &target,
                                         const llvm::TargetMachine &) {
  return std::make_unique<CudaCode>(target.gpus);
}

} // namespace rota::lowering
