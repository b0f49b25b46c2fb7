// SPDX-License-Identifier: Apache-2.0
//
// The two ways in which a trainer ends badly, and their exit codes.
#ifndef ROTA_RUNTIME_ERROR_H
#define ROTA_RUNTIME_ERROR_H

#include <stdexcept>
#include <string>

namespace rota {

inline constexpr int kExitSuccess = 0;
inline constexpr int kExitRunFailed = 1; // the run began and could not go on
inline constexpr int kExitBadInput = 2;  // arguments, data or weights are wrong

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
