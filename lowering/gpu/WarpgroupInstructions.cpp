// SPDX-License-Identifier: Apache-2.0
#include "lowering/gpu/WarpgroupInstructions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace rota::lowering {

Value groupOfThread(GpuBuilder &k) {
  Value group = k.div(k.thread(), kGroupWarps * kWarp);
  return NVVM::ShflOp::create(k.ops(), group.getType(), k.i32(-1), group,
                              k.i32(0), k.i32(kWarp - 1), NVVM::ShflKind::idx,
                              /*return_value_and_is_valid=*/nullptr);
}

Value swizzledElement(GpuBuilder &k, MatrixTile tile, Value row, Value chunk,
                      bool hasPanels) {
  // A row of a panel has as many chunks as rows after which they repeat.
  constexpr int64_t columns = MatrixTile::kPanelColumns;
  constexpr int64_t chunks = kSwizzledRows, ofChunk = columns / chunks;
  Value place = swizzledChunk(k, row, k.rem(chunk, chunks));
  Value inPanel = k.add(k.mul(row, columns), k.mul(place, ofChunk));
  if (!hasPanels)
    return inPanel;
  return k.add(inPanel, k.mul(k.div(chunk, chunks), tile.rows * columns));
}

/// Descriptors count in units of 16 bytes.
static constexpr int64_t kUnit = 16;

Value describeTile(GpuBuilder &k, MatrixTile tile, Value row) {
  // Fields of PTX's matrix descriptor: bits 0 to 13 the address, 16 to 29 the
  // distance of panels, which matrices that lie by depth use, 32 to 45 that
  // of groups of eight rows, 62 and 63 the swizzle, here of 128 bytes.
  constexpr int64_t addressBits = (1 << 14) - 1;
  uint64_t fields = uint64_t(tile.panelBytes() / kUnit) << 16 |
                    uint64_t(8 * MatrixTile::rowBytes() / kUnit) << 32 |
                    uint64_t(1) << 62;
  Value address =
      LLVM::PtrToIntOp::create(k.ops(), k.ops().getI32Type(), tile.memory.base);
  if (row)
    address = k.add(address, k.mul(row, MatrixTile::rowBytes()));
  Value place = k.rem(k.div(address, kUnit), addressBits + 1);
  return arith::OrIOp::create(k.ops(), k.widen(place), k.i64(int64_t(fields)));
}

namespace {

/// The assembly of a product, with its operands.
class Assembly {
public:
  Assembly(GpuBuilder &k, WarpgroupSums &product, int64_t columns,
           ByDepth byDepth)
      : k(k), product(product), columns(columns), byDepth(byDepth),
        count(columns / 2) {}

  void emit();

private:
  /// The operand's number.
  std::string add(Value operand, StringRef constraint);
  void addStep(const WarpgroupSums::Step &step, bool isFirst);
  /// Puts an operand's descriptor and an offset into a register of the text.
  void addDescriptor(StringRef name, Value descriptor, int64_t offset);

  GpuBuilder &k;
  WarpgroupSums &product;
  int64_t columns;
  ByDepth byDepth;

  std::string text, constraints;
  SmallVector<Value> operands;
  int64_t count; // of results and operands
  llvm::DenseMap<Value, int64_t> numbers;
};

} // namespace

/// Adds assembly with f32 results, each in the register of the first operands
/// where there are as many.
static SmallVector<Value> emitAssembly(GpuBuilder &k, StringRef text,
                                       int64_t results, ValueRange operands,
                                       StringRef constraints) {
  auto &b = k.ops();
  auto type = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(results, b.getF32Type()));
  std::string all = llvm::join(SmallVector<StringRef>(results, "=f"), ",");
  auto assembly = LLVM::InlineAsmOp::create(
      b, type, operands, text, all + constraints.str(),
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None, /*asm_dialect=*/nullptr,
      /*operand_attrs=*/nullptr);
  SmallVector<Value> values;
  for (int64_t i = 0; i < results; ++i)
    values.push_back(LLVM::ExtractValueOp::create(b, assembly.getRes(), i));
  return values;
}

static void emitAssembly(GpuBuilder &k, StringRef text) {
  LLVM::InlineAsmOp::create(
      k.ops(), TypeRange(), ValueRange(), text,
      /*constraints=*/"~{memory}", /*has_side_effects=*/true,
      /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
      /*asm_dialect=*/nullptr, /*operand_attrs=*/nullptr);
}

/// Constraints of operands that lie in the registers of results.
static std::string tied(int64_t count) {
  std::string constraints;
  for (int64_t i = 0; i < count; ++i)
    constraints += "," + std::to_string(i);
  return constraints;
}

std::string Assembly::add(Value operand, StringRef constraint) {
  auto [entry, isNew] = numbers.try_emplace(operand, count);
  if (isNew) {
    constraints += "," + constraint.str();
    operands.push_back(operand);
    ++count;
  }
  return "$" + std::to_string(entry->second);
}

void Assembly::addDescriptor(StringRef name, Value descriptor, int64_t offset) {
  text += llvm::formatv("add.s64 {0}, {1}, {2};\n", name, add(descriptor, "l"),
                        offset / kUnit);
}

void Assembly::addStep(const WarpgroupSums::Step &step, bool isFirst) {
  bool isDescribed = step.left.size() == 1;
  std::string left = "left";
  if (isDescribed) {
    addDescriptor(left, step.left.front(), step.leftOffset);
  } else {
    SmallVector<std::string> registers;
    for (Value part : step.left)
      registers.push_back(add(part, "r"));
    left = "{" + llvm::join(registers, ", ") + "}";
  }
  addDescriptor("right", step.right, step.rightOffset);
  SmallVector<std::string> sums;
  for (int64_t i = 0; i < columns / 2; ++i)
    sums.push_back("$" + std::to_string(i));
  StringRef ofLeft = !isDescribed ? "" : byDepth.left ? "1, " : "0, ";
  text += llvm::formatv("wgmma.mma_async.sync.aligned.m64n{0}k16.f32.bf16.bf16 "
                        "{{{1}}, {2}, right, {3}, 1, 1, {4}{5};\n",
                        columns, llvm::join(sums, ", "), left,
                        isFirst ? "no" : "yes", ofLeft, byDepth.right ? 1 : 0);
}

void Assembly::emit() {
  constraints = tied(product.sums.size());
  operands = product.sums;
  count += operands.size();
  text = "{\n.reg .pred no, yes;\n.reg .b64 left, right;\n"
         "setp.ne.s32 no, 0, 0;\nsetp.eq.s32 yes, 0, 0;\n"
         "wgmma.fence.sync.aligned;\n";
  for (auto [number, step] : llvm::enumerate(product.steps))
    addStep(step, number == 0 && product.sums.empty());
  text += "wgmma.commit_group.sync.aligned;\n}";
  product.sums = emitAssembly(k, text, columns / 2, operands, constraints);
}

void startOfWarpgroup(GpuBuilder &k, WarpgroupSums &product, int64_t columns,
                      ByDepth byDepth) {
  Assembly(k, product, columns, byDepth).emit();
}

void waitForWarpgroup(GpuBuilder &k, int64_t pending,
                      MutableArrayRef<Value> sums) {
  emitAssembly(
      k, llvm::formatv("wgmma.wait_group.sync.aligned {0};", pending).str());
  if (sums.empty())
    return;
  // Nothing that uses the sums moves before this.
  llvm::copy(
      emitAssembly(k, "", sums.size(), ValueRange(sums), tied(sums.size())),
      sums.begin());
}

void showWarpgroups(GpuBuilder &k) {
  emitAssembly(k, "fence.proxy.async.shared::cta;");
}

} // namespace rota::lowering
