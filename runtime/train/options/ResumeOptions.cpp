// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/options/ResumeOptions.h"

namespace rota {

OptionRows resumeRows(ResumeOptions &o) {
  const char *group = "Checkpoints";
  using namespace commands;
  return {{"resume", group, "FROM",
           "Go on from the newest whole checkpoint of 'checkpoint-dir', if "
           "there is one (auto), from none (never), or from a checkpoint or "
           "the newest of a folder of checkpoints",
           train, &o.from},
          {"accept-change", group, "KEY,...",
           "Go on although these facts of the checkpoint's run are others now "
           "(an error names them)",
           train, &o.accepted}};
}

} // namespace rota
