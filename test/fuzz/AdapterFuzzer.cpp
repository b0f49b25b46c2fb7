// SPDX-License-Identifier: Apache-2.0
//
// Random adapter_config.json files. Either one is refused, or what it says of
// adapters is within the bounds of the flags.
#include "models/Config.h"
#include "runtime/program/AdapterNames.h"
#include "test/fuzz/FuzzFiles.h"
#include "tools/rota/options/AdapterOptions.h"

#include <cstdlib>

using namespace rota;
using namespace rota::test;

static void require(bool holds) {
  if (!holds)
    std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FuzzInput input(data, size);
  fuzzFolder().write(kAdapterConfig, std::string(input.last()));
  RunOptions options;
  options.adapter = fuzzFolder().path(".");
  if (!completeAdapter(options).option.empty())
    return 0;
  const mlir::rota::AdapterOptions &read = options.compiler.build.adapters;
  require(read.rank >= 1 && read.rank <= mlir::rota::Config::maxSize);
  require(read.alpha > 0 && read.alpha <= 1e9);
  require(!read.targets.empty());
  return 0;
}
