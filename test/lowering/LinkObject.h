// SPDX-License-Identifier: Apache-2.0
//
// Code that is linked in memory.
#ifndef ROTA_TEST_LOWERING_LINKOBJECT_H
#define ROTA_TEST_LOWERING_LINKOBJECT_H

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"
#include <gtest/gtest.h>

namespace rota::test {

/// An object file, linked with this program; null where the test has failed.
inline std::unique_ptr<llvm::orc::LLJIT> linkObject(llvm::StringRef object) {
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit) {
    ADD_FAILURE() << llvm::toString(jit.takeError());
    return nullptr;
  }
  if (auto error = (*jit)->addObjectFile(
          llvm::MemoryBuffer::getMemBufferCopy(object, "kernels"))) {
    ADD_FAILURE() << llvm::toString(std::move(error));
    return nullptr;
  }
  return std::move(*jit);
}

} // namespace rota::test

#endif // ROTA_TEST_LOWERING_LINKOBJECT_H
