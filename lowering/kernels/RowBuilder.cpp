// SPDX-License-Identifier: Apache-2.0
#include "lowering/kernels/RowBuilder.h"

#include "lowering/kernels/Emit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace rota::lowering {

Memory RowBuilder::offset(Memory memory, Value by) {
  return {address(b, memory.base, memory.element, by), memory.element};
}

Value RowBuilder::load(Memory memory, Value index) {
  return loadWide(b, memory.base, memory.element, index);
}

Value RowBuilder::loadIndex(Memory memory, Value index) {
  return arith::ExtSIOp::create(b, b.getI64Type(), load(memory, index));
}

void RowBuilder::store(Value value, Memory memory, Value index) {
  storeRounded(b, value, memory.base, memory.element, index);
}

void RowBuilder::storeIndex(Value value, Memory memory, Value at) {
  store(arith::TruncIOp::create(b, b.getI32Type(), value), memory, at);
}

SmallVector<Value> RowBuilder::better(ValueRange best, Value value,
                                      Value index) {
  Value isBest =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, value, best[0]);
  return {select(isBest, value, best[0]), select(isBest, index, best[1])};
}

FailureOr<std::string>
emitRowCode(KernelLibrary &library, Location loc, StringRef prefix,
            StringRef key, unsigned arguments, const RowForm &space,
            llvm::function_ref<void(RowBuilder &k, Value row)> body) {
  return library.getTarget().emitRows(library, loc, prefix, key, arguments,
                                      space, body);
}

} // namespace rota::lowering
