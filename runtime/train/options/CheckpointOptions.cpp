// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/options/CheckpointOptions.h"

namespace rota {

OptionRows checkpointRows(CheckpointOptions &o) {
  const char *group = "Checkpoints";
  using namespace commands;
  return {{"checkpoint-dir", group, "DIR",
           "Write checkpoints of the train state to this folder: after the "
           "last step and on SIGUSR1, SIGTERM, SIGINT and SIGHUP",
           train | Command::Plan, &o.folder},
          {"checkpoint-interval", group, "N",
           "Steps between checkpoints; 0: none by steps", train, &o.interval, 0,
           kMaxCount},
          {"checkpoint-seconds", group, "X",
           "Seconds between checkpoints, at least; 0: none by time", train,
           &o.seconds},
          {"keep-last", group, "N", "Checkpoints that stay, the newest", train,
           &o.keep.last, 1, kMaxCount},
          {"keep-every", group, "N",
           "Checkpoints of multiples of this step stay too; 0: none", train,
           &o.keep.every, 0, kMaxCount},
          {"keep-best", group, "",
           "A validation with a new least loss is followed by a checkpoint, "
           "and the last of these stays too",
           train, &o.keep.best}};
}

OptionMistake checkCheckpointOptions(const CheckpointOptions &o) {
  if (!o.folder.empty())
    return {};
  std::string expected = "expected 'checkpoint-dir' beside it";
  if (o.interval > 0)
    return {"checkpoint-interval", expected};
  if (o.seconds > 0.0)
    return {"checkpoint-seconds", expected};
  if (o.keep.every > 0)
    return {"keep-every", expected};
  if (o.keep.best)
    return {"keep-best", expected};
  return {};
}

} // namespace rota
