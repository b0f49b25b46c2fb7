// SPDX-License-Identifier: Apache-2.0
//
// The options of a run that goes on from a checkpoint.
#ifndef ROTA_RUNTIME_TRAIN_OPTIONS_RESUMEOPTIONS_H
#define ROTA_RUNTIME_TRAIN_OPTIONS_RESUMEOPTIONS_H

#include "runtime/train/options/OptionRows.h"

namespace rota {

struct ResumeOptions {
  static constexpr const char *kAuto = "auto", *kNever = "never";
  std::string from = kAuto;          // one of these, or a path
  std::vector<std::string> accepted; // of identity::kKeys

  /// How a run goes on from a checkpoint that it wrote, for people.
  const char *continuation() const {
    return from == kAuto
               ? "the same command goes on"
               : "with 'resume' set to 'auto' the same command goes on";
  }
};

OptionRows resumeRows(ResumeOptions &options);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_OPTIONS_RESUMEOPTIONS_H
