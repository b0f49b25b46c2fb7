// SPDX-License-Identifier: Apache-2.0
//
// Exit codes, and the two kinds of error of a trainer.
#ifndef ROTA_RUNTIME_ERROR_H
#define ROTA_RUNTIME_ERROR_H

#include <stdexcept>
#include <string>

namespace rota {

/// The exit codes of `rota` and of a trainer.
enum ExitCode : int {
  kExitSuccess = 0,
  kExitRunFailed = 1, // the work began and could not go on
  kExitBadInput = 2   // arguments, models, data or weights are wrong
};

/// The user's arguments or files are wrong; nothing has run yet.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The run failed: a rank's error, a loss that is not finite, a full disk.
struct RunError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

} // namespace rota

#endif // ROTA_RUNTIME_ERROR_H
