// SPDX-License-Identifier: Apache-2.0
//
// `rota probe`: compile a trainer and become its `probe`.
#include "tools/rota/Compile.h"
#include "tools/rota/Verbs.h"
#include "tools/rota/data/TokenShape.h"

namespace rota {

int runProbe(const RunOptions &given) {
  RunOptions options = given;
  std::string error;
  if (!readTokenShape(options, error))
    return reportBadInput(error);
  return compileThenRun(Command::Probe, std::move(options));
}

} // namespace rota
