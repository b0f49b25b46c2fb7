// SPDX-License-Identifier: Apache-2.0
//
// Running passes by their text form in GoogleTests.
#ifndef ROTA_TEST_PASSES_EQUIVALENCE_PASSES_H
#define ROTA_TEST_PASSES_EQUIVALENCE_PASSES_H

#include "test/interpreter/TestModule.h"

namespace rota::interpreter {

/// Runs a pipeline in the text form of rota-opt, every pass of the compiler
/// being known, and verifies after each.
llvm::LogicalResult runPasses(TestModule &module, llvm::StringRef pipeline);

} // namespace rota::interpreter

#endif // ROTA_TEST_PASSES_EQUIVALENCE_PASSES_H
