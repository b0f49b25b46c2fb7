// SPDX-License-Identifier: Apache-2.0
#include "lowering/gpu/TrainerCode.h"

#include "lowering/gpu/GpuEmitters.h"
#include "runtime/Abi.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"

using namespace mlir;

namespace rota::lowering {

/// Defines `symbol` with the fields of RotaGpuLaunch.
static void addLaunch(ImplicitLocOpBuilder &b, StringRef symbol,
                      const LaunchShape &shape, int64_t arguments) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  std::string text = symbol.str() + '\0';
  auto name = LLVM::GlobalOp::create(
      b, LLVM::LLVMArrayType::get(b.getI8Type(), text.size()),
      /*isConstant=*/true, LLVM::Linkage::Private, (symbol + ".name").str(),
      b.getStringAttr(text));
  auto type = LLVM::LLVMStructType::getLiteral(
      b.getContext(),
      {pointer, i32, i32, i32, i32, i64, i64, pointer, i64, i64, i64, i64});
  auto launch =
      LLVM::GlobalOp::create(b, type, /*isConstant=*/true,
                             LLVM::Linkage::External, symbol, Attribute());
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&launch.getInitializerRegion());
  Value value = LLVM::UndefOp::create(b, type);
  int64_t field = 0;
  auto add = [&](Value element) {
    value = LLVM::InsertValueOp::create(b, value, element,
                                        ArrayRef<int64_t>{field++});
  };
  add(LLVM::AddressOfOp::create(b, pointer, name.getSymName()));
  for (int64_t number : shape.grid)
    add(LLVM::ConstantOp::create(b, i32, number));
  add(LLVM::ConstantOp::create(b, i32, shape.block));
  add(LLVM::ConstantOp::create(b, i64, shape.sharedBytes));
  add(LLVM::ConstantOp::create(b, i64, arguments));
  if (shape.table.empty())
    add(LLVM::ZeroOp::create(b, pointer));
  else
    add(LLVM::AddressOfOp::create(b, pointer, shape.table));
  add(LLVM::ConstantOp::create(b, i64, shape.tableRows));
  add(LLVM::ConstantOp::create(b, i64, shape.tableBlocks));
  add(LLVM::ConstantOp::create(b, i64, shape.noteAt));
  add(LLVM::ConstantOp::create(b, i64, shape.ownSharedBytes));
  LLVM::ReturnOp::create(b, value);
}

void addGpuLaunches(ModuleOp tasks, KernelLibrary &library) {
  gpu::GPUModuleOp kernels = gpuModuleOf(library);
  ImplicitLocOpBuilder b(tasks.getLoc(), tasks.getContext());
  b.setInsertionPointToEnd(tasks.getBody());
  SymbolTable symbols(tasks);
  for (const std::string &symbol : library.getSymbols()) {
    if (Operation *declaration = symbols.lookup(symbol))
      symbols.erase(declaration);
    auto function = kernels.lookupSymbol<gpu::GPUFuncOp>(symbol);
    addLaunch(b, symbol, library.getLaunchShape(symbol),
              function.getNumArguments());
  }
}

GpuCode gpuCode(llvm::Module &trainer, StringRef chip, bool isAssembled,
                StringRef bytes) {
  StringRef number = chip.drop_front(strlen("sm_"));
  bool isOwn = number.consume_back("a"); // a chip's own instructions
  int32_t architecture = 0;
  number.getAsInteger(10, architecture);
  int32_t form = isOwn ? isAssembled ? ROTA_GPU_OWN_CUBIN : ROTA_GPU_OWN_PTX
                 : isAssembled ? ROTA_GPU_CUBIN
                               : ROTA_GPU_PTX;
  return {form, architecture,
          llvm::ConstantDataArray::getString(trainer.getContext(), bytes,
                                             /*AddNull=*/!isAssembled)};
}

static void defineConstant(llvm::Module &module, StringRef name,
                           llvm::Constant *value) {
  new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true,
                           llvm::GlobalValue::ExternalLinkage, value, name);
}

void defineGpuCode(llvm::Module &trainer, ArrayRef<GpuCode> codes) {
  llvm::LLVMContext &context = trainer.getContext();
  auto *pointer = llvm::PointerType::get(context, 0);
  auto *i32 = llvm::Type::getInt32Ty(context);
  auto *i64 = llvm::Type::getInt64Ty(context);
  // The fields of RotaGpuCode.
  auto *type = llvm::StructType::get(context, {i32, i32, pointer, i64});
  SmallVector<llvm::Constant *> entries;
  for (const GpuCode &code : codes) {
    auto *data = new llvm::GlobalVariable(
        trainer, code.data->getType(), /*isConstant=*/true,
        llvm::GlobalValue::PrivateLinkage, code.data, "rotaGpuCode.data");
    data->setAlignment(llvm::Align(16)); // a cubin is an ELF file
    uint64_t bytes =
        trainer.getDataLayout().getTypeAllocSize(code.data->getType());
    entries.push_back(llvm::ConstantStruct::get(
        type, {llvm::ConstantInt::get(i32, code.form),
               llvm::ConstantInt::get(i32, code.architecture), data,
               llvm::ConstantInt::get(i64, bytes)}));
  }
  defineConstant(trainer, "rotaGpuCode",
                 llvm::ConstantArray::get(
                     llvm::ArrayType::get(type, entries.size()), entries));
  defineConstant(trainer, "rotaGpuCodeCount",
                 llvm::ConstantInt::get(i64, entries.size()));
}

} // namespace rota::lowering
