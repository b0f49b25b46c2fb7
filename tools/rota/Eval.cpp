// SPDX-License-Identifier: Apache-2.0
//
// `rota eval`: compile a trainer and become its `eval`.
#include "tools/rota/Compile.h"
#include "tools/rota/Verbs.h"

namespace rota {

int runEval(const RunOptions &given) {
  RunOptions options = given;
  std::string error;
  auto model = std::make_unique<CheckpointModel>();
  if (!model->complete(options, error))
    return reportBadInput(error);
  // The loss of an evaluation is the cross-entropy alone.
  options.compiler.build.predictionLoss = 0;
  return compileThenRun(Command::Eval, std::move(options), std::move(model));
}

} // namespace rota
