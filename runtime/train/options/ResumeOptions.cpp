// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/options/ResumeOptions.h"
#include "runtime/program/IdentityKeys.h"

#include <iterator>

namespace rota {

OptionRows resumeRows(ResumeOptions &o) {
  const char *group = "Checkpoints";
  using namespace commands;
  return {
      {"resume", group, "FROM",
       "Go on from the newest whole checkpoint of 'checkpoint-dir', if "
       "there is one (auto), from none (never), or from a checkpoint or "
       "the newest of a folder of checkpoints",
       train, &o.from},
      {.name = "accept-change",
       .group = group,
       .value = "KEY,...",
       .help = "Go on although these facts of the checkpoint's run are "
               "others now",
       .commands = train,
       .variable = &o.accepted,
       .choices = {std::begin(identity::kKeys), std::end(identity::kKeys)}}};
}

} // namespace rota
