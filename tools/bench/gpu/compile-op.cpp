// SPDX-License-Identifier: Apache-2.0
//
// The GPU kernels of one function as an object file, and its launches as JSON,
// for run-op.cpp. So kernels are compiled on one machine and measured on
// another, which needs no compiler.
// `bench-gpu-compile simt|cuda FILE.mlir FUNCTION OUTPUT` writes OUTPUT.o and
// OUTPUT.json.
#include "lowering/cpu/Object.h"
#include "lowering/gpu/GpuEmitters.h"
#include "lowering/gpu/NvvmModule.h"
#include "lowering/kernels/Passes.h"
#include "lowering/simt/TrainerKernels.h"
#include "passes/optimizer/Passes.h"
#include "runtime/Abi.h"
#include "tools/Dialects.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/JSON.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
namespace lowering = ::rota::lowering;
namespace json = llvm::json;

namespace {

/// The tensors and launches of one function.
class Launches {
public:
  explicit Launches(lowering::KernelLibrary &library) : library(library) {}

  LogicalResult add(func::FuncOp function) {
    for (Value argument : function.getArguments())
      addBuffer(argument, /*given=*/true);
    for (Operation &op : function.getBody().front()) {
      if (op.hasTrait<OpTrait::IsTerminator>() ||
          op.hasTrait<OpTrait::ConstantLike>())
        continue;
      if (failed(add(op)))
        return failure();
    }
    return success();
  }

  std::string text() {
    return llvm::formatv("{0:2}\n", json::Value(json::Object{
                                        {"buffers", std::move(buffers)},
                                        {"launches", std::move(launches)}}))
        .str();
  }

private:
  void addBuffer(Value value, bool given) {
    auto type = cast<RankedTensorType>(value.getType());
    Type element = type.getElementType();
    numbers[value] = int64_t(buffers.size());
    buffers.push_back(json::Object{
        {"element", element.isBF16()  ? "bf16"
                    : element.isF32() ? "f32"
                                      : "i32"},
        {"bytes", type.getNumElements() * element.getIntOrFloatBitWidth() / 8},
        {"given", given}});
  }

  LogicalResult add(Operation &op) {
    if (!lowering::hasKernels(&op, library))
      return op.emitError("expected an op with kernels");
    SmallVector<bool> overwrite(op.getNumResults(), false);
    auto plan = lowering::planKernels(&op, overwrite, library);
    if (failed(plan))
      return failure();
    for (Value result : op.getResults())
      addBuffer(result, /*given=*/false);
    int64_t temporaries = int64_t(buffers.size());
    for (int64_t bytes : plan->temporaries)
      buffers.push_back(json::Object{
          {"element", "none"}, {"bytes", bytes}, {"given", false}});
    for (const lowering::KernelCall &call : plan->calls) {
      json::Array arguments;
      for (lowering::KernelArgument argument : call.arguments)
        arguments.push_back(numberOf(op, argument, temporaries));
      lowering::LaunchShape shape = library.getLaunchShape(call.symbol);
      launches.push_back(json::Object{{"kernel", call.symbol},
                                      {"grid", json::Array(shape.grid)},
                                      {"block", shape.block},
                                      {"shared", shape.sharedBytes},
                                      {"arguments", std::move(arguments)}});
    }
    return success();
  }

  int64_t numberOf(Operation &op, lowering::KernelArgument argument,
                   int64_t temporaries) const {
    using Kind = lowering::KernelArgument::Kind;
    if (argument.kind == Kind::Temporary)
      return temporaries + argument.index;
    return numbers.lookup(argument.kind == Kind::Result
                              ? Value(op.getResult(argument.index))
                              : op.getOperand(argument.index));
  }

  lowering::KernelLibrary &library;
  llvm::DenseMap<Value, int64_t> numbers;
  json::Array buffers, launches;
};

/// The code of the library's kernels in an object file, as trainers have it.
FailureOr<std::string> emitCode(lowering::KernelLibrary &library, bool cuda) {
  Location loc = library.getModule().getLoc();
  llvm::LLVMContext context;
  lowering::TargetOptions options;
  options.cpu = "x86-64-v3"; // any machine with a GPU has it
  auto gpu = lowering::translateForGpu(lowering::gpuModuleOf(library), context,
                                       cuda ? "" : "sm_80");
  auto host = lowering::createTargetMachine(loc, options);
  if (!gpu || failed(host))
    return failure();
  llvm::Module object("kernels", context);
  object.setTargetTriple((*host)->getTargetTriple());
  object.setDataLayout((*host)->createDataLayout());
  std::vector<lowering::GpuCode> codes;
  if (!cuda) {
    auto code = lowering::linkHostKernels(loc, object, *gpu, **host, {});
    if (failed(code))
      return failure();
    codes.push_back(*code);
  } else {
    for (StringRef chip : lowering::trainerChips()) {
      auto text = lowering::emitPtx(loc, *gpu, chip);
      if (failed(text))
        return failure();
      codes.push_back(
          lowering::gpuCode(object, chip, /*isAssembled=*/false, *text));
    }
  }
  lowering::defineGpuCode(object, codes);
  return lowering::emitObject(loc, object, **host);
}

LogicalResult write(const std::string &path, StringRef bytes) {
  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  file << bytes;
  file.close();
  if (!error && !file.has_error())
    return success();
  llvm::errs() << "error: cannot write '" << path << "'\n";
  file.clear_error();
  return failure();
}

LogicalResult compile(bool cuda, const char *input, StringRef name,
                      const std::string &output) {
  DialectRegistry registry;
  ::rota::registerAllLevels(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  auto module = parseSourceFile<ModuleOp>(input, &context);
  PassManager passes(&context, ModuleOp::getOperationName());
  passes.addPass(mlir::rota::createBuildUpdates({"adamw"}));
  passes.addPass(lowering::createDecompose());
  passes.addPass(lowering::createFormKernels());
  if (!module || failed(passes.run(*module)))
    return failure();
  auto function = module->lookupSymbol<func::FuncOp>(name);
  if (!function)
    return module->emitError() << "expected a function '" << name << "'";
  lowering::KernelLibrary library(&context, lowering::gpuTarget());
  Launches launches(library);
  if (failed(launches.add(function)) || failed(verify(library.getModule())))
    return failure();
  auto object = emitCode(library, cuda);
  return success(succeeded(object) &&
                 succeeded(write(output + ".o", *object)) &&
                 succeeded(write(output + ".json", launches.text())));
}

} // namespace

int main(int argc, char **argv) {
  StringRef device = argc == 5 ? argv[1] : "";
  if (device != "simt" && device != "cuda") {
    llvm::errs() << "usage: bench-gpu-compile simt|cuda FILE FUNCTION OUTPUT\n";
    return 2;
  }
  return succeeded(compile(device == "cuda", argv[2], argv[3], argv[4])) ? 0
                                                                         : 1;
}
