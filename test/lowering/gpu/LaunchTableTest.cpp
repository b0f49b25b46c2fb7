// SPDX-License-Identifier: Apache-2.0
//
// Kernels for tables of launches, on the emulator: the bits of each launch's
// own kernel, whatever the shapes and the number of launches.
#include "lowering/gpu/GpuEmitters.h"
#include "lowering/gpu/NvvmModule.h"
#include "runtime/device/cuda/GatheredLaunches.h"
#include "test/lowering/gpu/EmulatedOp.h"

#include "mlir/Parser/Parser.h"

#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;

namespace rota::test {
namespace {

/// A launch of a function of its own: its shape, and a buffer for each operand
/// and result.
struct Launched {
  std::string symbol;
  lowering::LaunchShape shape;
  std::vector<TensorBytes> operands, results;

  std::vector<void *> arguments() {
    std::vector<void *> pointers;
    for (auto *list : {&operands, &results})
      for (TensorBytes &tensor : *list)
        pointers.push_back(tensor.data());
    return pointers;
  }
};

class LaunchTables : public testing::Test {
protected:
  LaunchTables() : context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<mlir::rota::RotaDialect>();
    library.emplace(&context, lowering::gpuTarget());
  }

  static TensorBytes bufferOf(Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    return {type.getElementType().isBF16() ? "bf16" : "f32",
            type.getNumElements()};
  }

  /// Plans the launches of all functions and compiles their kernels.
  void make(const std::string &text) {
    source = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(source);
    library->setTables(true);
    source->walk([&](mlir::rota::LaunchOp op) {
      SmallVector<bool> replaces(op.getNumResults(), false);
      auto plan = lowering::planKernels(op, replaces, *library);
      ASSERT_TRUE(succeeded(plan));
      std::string symbol = plan->calls[0].symbol;
      Launched launch{symbol, library->getLaunchShape(symbol), {}, {}};
      for (Value operand : op->getOperands())
        launch.operands.push_back(bufferOf(operand));
      for (Value result : op->getResults())
        launch.results.push_back(bufferOf(result));
      for (TensorBytes &operand : launch.operands)
        for (int64_t i = 0; i < operand.count; ++i)
          operand.set(i, number(engine));
      launches.push_back(std::move(launch));
    });
    auto modules = library->getModule().getOps<gpu::GPUModuleOp>();
    llvm::LLVMContext llvmContext;
    auto gpu = lowering::translateForGpu(*modules.begin(), llvmContext);
    ASSERT_TRUE(gpu);
    kernels = EmulatedKernels::compile(UnknownLoc::get(&context), *gpu, {});
    ASSERT_TRUE(kernels);
  }

  void run(const std::string &symbol, int64_t blocks,
           const lowering::LaunchShape &shape, std::vector<void *> arguments) {
    simt::Launch launch;
    launch.grid = {uint32_t(blocks), 1, 1};
    launch.block = {uint32_t(shape.block), 1, 1};
    launch.sharedBytes = shape.sharedBytes;
    std::vector<void *> addresses;
    for (void *&argument : arguments)
      addresses.push_back(&argument);
    launch.arguments = addresses.data();
    launch.seed = 7;
    for (const std::string &report :
         emulator.launch(*kernels->find(symbol), launch))
      ADD_FAILURE() << report;
  }

  void know(Launched &launch) {
    for (TensorBytes &operand : launch.operands)
      emulator.addBuffer("operand", operand.data(), operand.bytes(), true);
    for (TensorBytes &result : launch.results)
      emulator.addBuffer("result", result.data(), result.bytes(), false);
  }

  /// Runs the launches of these numbers by their own kernels and by a table:
  /// the same bits.
  void compare(ArrayRef<size_t> numbers) {
    cuda::GatheredLaunches gathered;
    std::deque<RotaGpuLaunch> forms;
    std::vector<std::vector<TensorBytes>> expected;
    RotaGpuLaunch table{};
    const lowering::LaunchShape &first = launches[numbers[0]].shape;
    emulator.clearBuffers();
    for (size_t number : numbers) {
      Launched &launch = launches[number];
      ASSERT_EQ(launch.shape.table, first.table);
      know(launch);
      run(launch.symbol, launch.shape.grid[0], launch.shape,
          launch.arguments());
      expected.push_back(launch.results);
      for (TensorBytes &result : launch.results)
        std::memset(result.data(), 0xFF, result.bytes());
      RotaGpuLaunch &form = forms.emplace_back();
      form.table = &table;
      form.tableRows = launch.shape.tableRows;
      form.tableBlocks = launch.shape.tableBlocks;
      std::vector<void *> arguments = launch.arguments();
      form.arguments = int64_t(arguments.size());
      gathered.add(form, arguments.data());
    }
    std::vector<char> bytes = gathered.layOut();
    TensorBytes memory("f32", int64_t(bytes.size()) / 4 + 1);
    std::memcpy(memory.data(), bytes.data(), bytes.size());
    emulator.clearBuffers();
    for (size_t number : numbers)
      know(launches[number]);
    emulator.addBuffer("table", memory.data(), memory.bytes(), true);
    ASSERT_EQ(gathered.tables().size(), 1u);
    const cuda::LaunchTable &rows = gathered.tables()[0];
    run(first.table, rows.blocks, library->getLaunchShape(first.table),
        {memory.data() + rows.firstAt, memory.data() + rows.rowsAt,
         reinterpret_cast<void *>(rows.count()),
         reinterpret_cast<void *>(rows.trips())});
    for (auto [i, number] : llvm::enumerate(numbers))
      for (auto [got, known] : llvm::zip(launches[number].results, expected[i]))
        EXPECT_EQ(std::memcmp(got.data(), known.data(), known.bytes()), 0)
            << "launch " << number;
  }

  MLIRContext context;
  std::optional<lowering::KernelLibrary> library;
  OwningOpRef<ModuleOp> source;
  std::vector<Launched> launches; // in the order of the functions
  std::unique_ptr<EmulatedKernels> kernels;
  simt::Emulator emulator;
  std::mt19937 engine{3};
  std::uniform_real_distribution<double> number{-2, 2};
};

/// A kernel @NAME of `columns`, and a function that launches it on `rows`.
std::string elementwise(const std::string &name, int64_t rows,
                        int64_t columns) {
  std::string n = std::to_string(columns), row = "tensor<" + n + "xf32>";
  std::string narrow = "tensor<" + n + "xbf16>";
  std::string shape = std::to_string(rows) + "x" + n;
  std::string all = "tensor<" + shape + "xf32>",
              allNarrow = "tensor<" + shape + "xbf16>";
  return "rota.kernel @" + name +
         " operands [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (0)>, "
         "affine_map<(d0) -> (d0)>] results [#rota.result<row>, "
         "#rota.result<row>] {\n^bb0(%p: " +
         row + ", %rate: tensor<f32>, %g: " + row +
         "):\n %r = rota.broadcast %rate dims [] : tensor<f32> -> " + row +
         "\n %x = arith.mulf %r, %g : " + row +
         "\n %zero = arith.constant dense<0.5> : " + row +
         "\n %y = arith.subf %p, %x : " + row +
         "\n %z = arith.mulf %y, %zero : " + row +
         "\n %n = arith.truncf %z : " + row + " to " + narrow +
         "\n rota.yield %z, %n : " + row + ", " + narrow +
         "\n}\nfunc.func @run_" + name + "(%p: " + all +
         ", %rate: tensor<f32>, %g: " + all + ") -> (" + all + ", " +
         allNarrow + ") {\n %y:2 = rota.launch @" + name +
         " rows = " + std::to_string(rows) + "(%p, %rate, %g) : (" + all +
         ", tensor<f32>, " + all + ") -> (" + all + ", " + allNarrow +
         ")\n return %y#0, %y#1 : " + all + ", " + allNarrow + "\n}\n";
}

std::string squares(const std::string &name, int64_t rows, int64_t columns) {
  std::string n = std::to_string(columns), row = "tensor<" + n + "xf32>";
  std::string r = std::to_string(rows);
  std::string all = "tensor<" + r + "x" + n + "xf32>",
              sums = "tensor<" + r + "xf32>";
  return "rota.kernel @" + name +
         " operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] "
         "{\n^bb0(%g: " +
         row + "):\n %x = arith.mulf %g, %g : " + row +
         "\n %s = rota.reduce sum %x dims [0] : " + row +
         " -> tensor<f32>\n rota.yield %s : tensor<f32>\n}\nfunc.func @run_" +
         name + "(%g: " + all + ") -> " + sums + " {\n %s = rota.launch @" +
         name + " rows = " + r + "(%g) : (" + all + ") -> " + sums +
         "\n return %s : " + sums + "\n}\n";
}

TEST_F(LaunchTables, ElementsOfAllShapes) {
  make(elementwise("step", 3, 8) + elementwise("step_1", 40, 60) +
       elementwise("step_2", 1, 8) + elementwise("step_3", 2, 3000));
  compare({0, 1, 2, 3});
  compare({3, 1});
  compare({2});
  compare({1, 0, 3});
}

TEST_F(LaunchTables, OddElementsHaveATableOfTheirOwn) {
  make(elementwise("step", 3, 8) + elementwise("step_1", 5, 7) +
       elementwise("step_2", 1, 333));
  EXPECT_NE(launches[0].shape.table, launches[1].shape.table);
  compare({0});
  compare({1, 2});
}

TEST_F(LaunchTables, SumsOfRowsByWidth) {
  make(squares("squares", 3, 40) + squares("squares_1", 9, 40) +
       squares("squares_2", 33, 40) + squares("squares_3", 3, 600) +
       squares("squares_4", 5, 600) + squares("squares_5", 2, 16392) +
       squares("squares_6", 3, 16392));
  EXPECT_NE(launches[0].shape.table, launches[3].shape.table);
  compare({0, 1, 2});
  compare({2, 0});
  compare({3, 4});
  compare({6, 5});
}

TEST_F(LaunchTables, OtherFunctionsHaveNone) {
  std::string text = squares("squares", 3, 40);
  size_t end = text.rfind("\n return");
  text.insert(end, "\n %t = rota.launch @squares rows = 3(%g) : "
                   "(tensor<3x40xf32>) -> tensor<3xf32>");
  make(text);
  for (const Launched &launch : launches)
    EXPECT_EQ(launch.shape.table, "");
}

} // namespace
} // namespace rota::test
