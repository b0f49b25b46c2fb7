// SPDX-License-Identifier: Apache-2.0
//
// The calls of the runtime that exchange the rows of experts.
#include "runtime/GroupedAbi.h"
#include "test/lowering/executable/LoweredModel.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace rota;
using namespace rota::test;
using mlir::LLVM::AddressOfOp;
using mlir::LLVM::ConstantOp;
using mlir::LLVM::GlobalOp;

namespace {

/// A constant of counts `first`, `first` + 1 and so on.
std::string counts(int rows, int columns, int first) {
  std::string text;
  for (int i = 0; i < rows * columns; ++i)
    text += (i % columns ? ", "
             : i         ? "], ["
                         : "[[") +
            std::to_string(first + i);
  return "arith.constant dense<" + text + "]]> : tensor<" +
         std::to_string(rows) + "x" + std::to_string(columns) + "xi32>\n";
}

/// Rows of experts go to the four ranks of `tensor` and back: two sequences of
/// eight rows, on a rank two rows of each of eight sequences. There they are
/// one block of three experts, on the way back two blocks of two.
std::string withRows() {
  return R"(%rows = rota.reshape %z : tensor<2x8xf32> -> tensor<2x8x1xf32>
      %c1 = )" +
         counts(2, 12, 100) + "%c2 = " + counts(8, 3, 200) +
         R"(%there = rota.ragged_all_to_all %rows sent %c1 received %c2 gather = 0 axes [<tensor>] reason "there" : (tensor<2x8x1xf32>, tensor<2x12xi32>, tensor<8x3xi32>) -> tensor<8x2x1xf32>
      %c3 = )" +
         counts(8, 4, 300) + "%c4 = " + counts(2, 16, 400) +
         R"(%back = rota.ragged_all_to_all %there sent %c3 received %c4 blocks = 2 gather = 1 axes [<tensor>] reason "back" : (tensor<8x2x1xf32>, tensor<8x4xi32>, tensor<2x16xi32>) -> tensor<2x8x1xf32>
      %k = rota.reshape %back : tensor<2x8x1xf32> -> tensor<2x8xf32>
      return %k, %y, %t)";
}

/// A call of rotaStartRowExchange.
class ExchangeCall {
public:
  ExchangeCall(Lowered &model, mlir::LLVM::CallOp call)
      : model(model), arguments(call.getArgOperands()) {}

  const Collective &collective() const {
    return model.collective(int(numberOf(arguments[1])));
  }

  /// The fields of its RotaRowExchange.
  std::vector<int64_t> description() const {
    auto address = arguments[2].getDefiningOp<AddressOfOp>();
    auto global = model.tasks->lookupSymbol<GlobalOp>(address.getGlobalName());
    llvm::StringRef bytes =
        llvm::cast<mlir::StringAttr>(global.getValueOrNull()).getValue();
    RotaRowExchange form;
    EXPECT_EQ(bytes.size(), sizeof form);
    std::memcpy(&form, bytes.data(), sizeof form);
    return {form.sequences, form.blocks,   form.rows,
            form.experts,   form.rowBytes, form.gathersRows};
  }

  /// The first element of the constant at an argument.
  int32_t countAt(int argument) const {
    mlir::Value address = arguments[argument];
    int64_t offset = 0;
    if (auto gep = address.getDefiningOp<mlir::LLVM::GEPOp>();
        gep && !gep.getDynamicIndices().empty())
      offset = numberOf(gep.getDynamicIndices()[0]);
    for (const auto &tensor : model.program().constantTensors)
      if (tensor.offset == offset) {
        int32_t first;
        std::memcpy(&first, tensor.bytes.data(), sizeof first);
        return first;
      }
    return 0;
  }

private:
  static int64_t numberOf(mlir::Value value) {
    auto constant = value.getDefiningOp<ConstantOp>();
    return llvm::cast<mlir::IntegerAttr>(constant.getValue()).getInt();
  }

  Lowered &model;
  mlir::OperandRange arguments;
};

TEST(RowExchange, IsACallWithTheRowsAndTheCountsOfBothSides) {
  std::string rows = withRows();
  Lowered model({{"return %z, %y, %t", rows}});
  ASSERT_EQ(model.errors, "");
  std::vector<ExchangeCall> calls;
  model.tasks->lookupSymbol("a.forward")->walk([&](mlir::LLVM::CallOp call) {
    if (call.getCallee() == llvm::StringRef("rotaStartRowExchange"))
      calls.emplace_back(model, call);
  });
  ASSERT_EQ(calls.size(), 2u);
  // sequences, blocks, rows, experts, bytes of a row, gathers rows
  EXPECT_EQ(calls[0].description(), (std::vector<int64_t>{2, 1, 2, 3, 4, 0}));
  EXPECT_EQ(calls[1].description(), (std::vector<int64_t>{2, 2, 1, 2, 4, 1}));
  EXPECT_EQ(calls[0].countAt(4), 100);
  EXPECT_EQ(calls[0].countAt(5), 200);
  EXPECT_EQ(calls[1].countAt(4), 300);
  EXPECT_EQ(calls[1].countAt(5), 400);
  EXPECT_EQ(calls[0].collective().reason, "there");
  EXPECT_EQ(calls[1].collective().reason, "back");
  for (const ExchangeCall &call : calls) {
    EXPECT_EQ(call.collective().kind, Collective::Kind::AllToAll);
    EXPECT_EQ(call.collective().axes, std::vector<int>{3});
  }
}

} // namespace
