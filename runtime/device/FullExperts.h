// SPDX-License-Identifier: Apache-2.0
//
// The error of experts whose choices need more rows than there is room.
#ifndef ROTA_RUNTIME_DEVICE_FULLEXPERTS_H
#define ROTA_RUNTIME_DEVICE_FULLEXPERTS_H

#include <cstdint>
#include <string>

namespace rota {

/// A block of experts in a sequence of a microbatch. Kernels of GPUs store the
/// fields as an array of i32.
struct FullExperts {
  int32_t rows = 0; // that the choices need; 0: no block is full
  int32_t room = 0;
  int32_t firstExpert = 0, experts = 0; // in the model
  int32_t sequence = 0;
  int32_t action = 0, layer = 0; // of the work; the host knows them itself
};

/// "rows of experts 4 to 7 in sequence 1 of a microbatch: expected at most 16,
/// got 20".
std::string toString(const FullExperts &full);

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_FULLEXPERTS_H
