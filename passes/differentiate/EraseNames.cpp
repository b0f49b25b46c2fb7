// SPDX-License-Identifier: Apache-2.0
//
// Erases the names of values.
#include "passes/differentiate/Passes.h"

namespace mlir::rota {
#define GEN_PASS_DEF_ERASENAMES
#include "passes/differentiate/Passes.h.inc"
} // namespace mlir::rota

using namespace mlir;
using namespace mlir::rota;

namespace {
struct EraseNames : mlir::rota::impl::EraseNamesBase<EraseNames> {
  void runOnOperation() override {
    getOperation()->walk([&](NameOp name) {
      name.getResult().replaceAllUsesWith(name.getValue());
      name.erase();
      ++erasedNames;
    });
  }
};
} // namespace
