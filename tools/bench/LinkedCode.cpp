// SPDX-License-Identifier: Apache-2.0
//
// The headers of LLVM's linker in memory take seconds to compile: this file
// alone has them.
#include "tools/bench/LinkedCode.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

namespace rota::bench {

static void print(llvm::Error error) {
  llvm::logAllUnhandledErrors(std::move(error), llvm::errs(), "linking: ");
}

LinkedCode::LinkedCode(std::unique_ptr<llvm::orc::LLJIT> jit)
    : jit(std::move(jit)) {}

LinkedCode::~LinkedCode() = default;

std::unique_ptr<LinkedCode> LinkedCode::link(llvm::StringRef object) {
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit) {
    print(jit.takeError());
    return nullptr;
  }
  if (auto error = (*jit)->addObjectFile(
          llvm::MemoryBuffer::getMemBufferCopy(object, "kernels"))) {
    print(std::move(error));
    return nullptr;
  }
  return std::unique_ptr<LinkedCode>(new LinkedCode(std::move(*jit)));
}

uintptr_t LinkedCode::address(llvm::StringRef symbol) {
  auto address = jit->lookup(symbol);
  if (address)
    return address->getValue();
  print(address.takeError());
  return 0;
}

} // namespace rota::bench
