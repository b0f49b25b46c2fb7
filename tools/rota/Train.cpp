// SPDX-License-Identifier: Apache-2.0
//
// `rota train`: compile a trainer and become it.
#include "tools/rota/Compile.h"
#include "tools/rota/Verbs.h"

namespace rota {

int runTrain(const RunOptions &options) {
  return compileThenRun(Command::Train, options);
}

} // namespace rota
