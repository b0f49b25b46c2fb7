// SPDX-License-Identifier: Apache-2.0
//
// ptxas takes every kernel of a set of shapes, for every chip, without spilling
// registers, those that the runtime launches by itself too. Prints a table of
// what each kernel needs.
#include "lowering/gpu/GpuBuilder.h"
#include "lowering/gpu/GpuEmitters.h"
#include "lowering/gpu/NvvmModule.h"
#include "lowering/gpu/ServiceKernels.h"
#include "lowering/kernels/Passes.h"
#include "passes/optimizer/Passes.h"
#include "runtime/device/cuda/ServiceKernels.h"
#include "tools/Dialects.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace ::rota::lowering;

namespace {

/// A file that goes with the object.
struct TemporaryFile {
  explicit TemporaryFile(StringRef suffix) {
    EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("rota", suffix, path));
  }
  ~TemporaryFile() { llvm::sys::fs::remove(path); }
  SmallString<128> path;
};

/// One kernel as ptxas describes it.
struct Assembled {
  std::string name;
  int64_t registers = 0, stack = 0, spillStores = 0, spillLoads = 0;
};

std::optional<std::string> findPtxas() {
  auto found = llvm::sys::findProgramByName("ptxas");
  if (!found)
    found = llvm::sys::findProgramByName("ptxas", {"/usr/local/cuda/bin"});
  return found ? std::optional(*found) : std::nullopt;
}

/// The text that ptxas -v prints; fails the test when it refuses the code.
std::string assemble(StringRef ptxas, StringRef text, StringRef chip) {
  TemporaryFile input("ptx"), output("cubin"), messages("log");
  std::error_code error;
  llvm::raw_fd_ostream(input.path, error) << text;
  std::string arch = ("-arch=" + chip).str();
  StringRef arguments[] = {ptxas, "-v", arch, input.path, "-o", output.path};
  int status = llvm::sys::ExecuteAndWait(
      ptxas, arguments, std::nullopt,
      {std::nullopt, StringRef(messages.path), StringRef(messages.path)});
  auto printed = llvm::MemoryBuffer::getFile(messages.path);
  std::string log = printed ? (*printed)->getBuffer().str() : "";
  EXPECT_EQ(status, 0) << log;
  return log;
}

int64_t numberIn(StringRef line, const char *pattern) {
  SmallVector<StringRef> parts;
  int64_t number = -1;
  if (llvm::Regex(pattern).match(line, &parts))
    parts[1].getAsInteger(10, number);
  return number;
}

std::vector<Assembled> readLog(StringRef log) {
  std::vector<Assembled> kernels;
  SmallVector<StringRef> lines, parts;
  log.split(lines, '\n');
  for (StringRef line : lines) {
    if (llvm::Regex("entry function '([^']*)'").match(line, &parts)) {
      kernels.push_back({parts[1].str()});
    } else if (line.contains("spill stores")) {
      kernels.back().stack = numberIn(line, "([0-9]+) bytes stack frame");
      kernels.back().spillStores =
          numberIn(line, "([0-9]+) bytes spill stores");
      kernels.back().spillLoads = numberIn(line, "([0-9]+) bytes spill loads");
    } else if (line.contains("Used ")) {
      kernels.back().registers = numberIn(line, "Used ([0-9]+) registers");
    }
  }
  return kernels;
}

/// Warps that a multiprocessor holds of 64, by threads, registers (in units of
/// 256 a warp) and shared memory with 1 KB for each block.
int64_t residentWarps(const LaunchShape &shape, int64_t registers,
                      StringRef chip) {
  int64_t warps = llvm::divideCeil(shape.block, 32);
  int64_t ofWarp = llvm::alignTo(registers * 32, 256);
  int64_t shared = chip == "sm_80" ? 164 << 10 : 228 << 10;
  int64_t blocks = std::min<int64_t>({32, 64 / warps, 65536 / ofWarp / warps,
                                      shared / (shape.sharedBytes + 1024)});
  return blocks * warps;
}

/// Bytes of shared memory that kernels without tiles do not need.
constexpr int64_t kSmallShared = 8 << 10;

void print(StringRef name, int64_t threads, int64_t registers,
           int64_t sharedBytes, int64_t warps) {
  llvm::outs() << llvm::formatv("{0,-32} {1,7} {2,9} {3,12} {4,5}\n", name,
                                threads, registers, sharedBytes, warps);
}

/// The kernels of the functions in Inputs/shapes.mlir and of the updates of
/// their parameters.
class Ptxas : public testing::Test {
protected:
  Ptxas() : context(MLIRContext::Threading::DISABLED) {
    DialectRegistry registry;
    ::rota::registerAllLevels(registry);
    context.appendDialectRegistry(registry);
    library.emplace(&context, gpuTarget());
    auto module = parseSourceFile<ModuleOp>(SHAPES, &context);
    PassManager manager(&context, ModuleOp::getOperationName());
    manager.addPass(mlir::rota::createBuildUpdates({"adamw"}));
    manager.addPass(createDecompose());
    manager.addPass(createFormKernels());
    if (module && succeeded(manager.run(*module)) &&
        succeeded(planTables(*module)) && succeeded(planPairs(*module)) &&
        succeeded(replaceByKernels(*module, *library))) {
      kernels = std::move(module);
    }
  }

  /// Launches of a step's end have tables.
  LogicalResult planTables(ModuleOp module) {
    library->setTables(true);
    WalkResult planned = module.walk([&](mlir::rota::LaunchOp op) {
      StringRef name = op->getParentOfType<func::FuncOp>().getSymName();
      if (!name.starts_with("update_") && !name.starts_with("squares_"))
        return WalkResult::advance();
      SmallVector<bool> overwrite(op->getNumResults(), false);
      return WalkResult(planKernels(op, overwrite, *library));
    });
    library->setTables(false);
    return failure(planned.wasInterrupted());
  }

  /// The kernels of the first two ops of functions named pair_*, which do both
  /// at once.
  LogicalResult planPairs(ModuleOp module) {
    for (auto function : module.getOps<func::FuncOp>()) {
      if (!function.getSymName().starts_with("pair_"))
        continue;
      Operation *first = &function.front().front();
      auto plan =
          library->getEmitters().lookupPair(first, first->getNextNode());
      if (!plan)
        return function.emitError("expected two ops that have common kernels");
      auto kernels = plan(first, first->getNextNode(), *library);
      if (failed(kernels) || kernels->calls.empty())
        return failure();
    }
    return success();
  }

  /// The launch of a kernel of the model, or of one of the runtime.
  LaunchShape shapeOf(StringRef kernel) {
    if (llvm::is_contained(library->getSymbols(), kernel))
      return library->getLaunchShape(kernel);
    return {{1, 1, 1}, ::rota::cuda::kServiceThreads, /*sharedBytes=*/0};
  }

  /// Checks what ptxas says of the kernels on one chip, and prints it.
  void check(const std::vector<Assembled> &assembled, StringRef chip) {
    llvm::outs() << chip
                 << ": threads, registers, bytes of shared memory, warps of "
                    "64\n";
    for (const Assembled &kernel : assembled) {
      LaunchShape shape = shapeOf(kernel.name);
      shape.sharedBytes = shape.sharedBytesOf(chip == "sm_90a");
      int64_t warps = residentWarps(shape, kernel.registers, chip);
      print(kernel.name, shape.block, kernel.registers, shape.sharedBytes,
            warps);
      EXPECT_EQ(kernel.stack, 0) << kernel.name;
      EXPECT_EQ(kernel.spillStores, 0) << kernel.name;
      EXPECT_EQ(kernel.spillLoads, 0) << kernel.name;
      // Less hides too little of memory's latency, but where products of tiles
      // take longer.
      bool hasTiles = shape.sharedBytes > kSmallShared;
      EXPECT_GE(warps, hasTiles ? 8 : 24) << kernel.name;
    }
    llvm::outs().flush();
  }

  MLIRContext context;
  std::optional<KernelLibrary> library;
  OwningOpRef<ModuleOp> kernels; // in one gpu.module
};

/// All chips have the same module; only its text differs.
TEST_F(Ptxas, NoKernelSpills) {
  std::optional<std::string> ptxas = findPtxas();
  if (!ptxas)
    GTEST_SKIP() << "no ptxas in PATH or /usr/local/cuda/bin";
  ASSERT_TRUE(kernels);
  auto gpuModule = *kernels->getOps<gpu::GPUModuleOp>().begin();
  llvm::LLVMContext llvmContext;
  auto module = translateTrainerKernels(gpuModule, llvmContext, /*chip=*/"");
  ASSERT_TRUE(module);
  for (StringRef chip : trainerChips()) {
    SCOPED_TRACE(chip.str());
    auto text = emitPtx(gpuModule.getLoc(), *module, chip);
    ASSERT_TRUE(succeeded(text));
    EXPECT_EQ(text->find(".extern .func"), std::string::npos);
    std::vector<Assembled> assembled = readLog(assemble(*ptxas, *text, chip));
    // Of two forms of a kernel a chip has one.
    constexpr int64_t kServices = 14;
    int64_t kernels = llvm::count_if(
        gpuModule.getOps<gpu::GPUFuncOp>(), [](gpu::GPUFuncOp kernel) {
          return !kernel.getName().ends_with(kWarpgroupForm);
        });
    EXPECT_EQ(int64_t(assembled.size()), kernels + kServices);
    check(assembled, chip);
  }
}

} // namespace
