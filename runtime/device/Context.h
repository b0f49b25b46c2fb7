// SPDX-License-Identifier: Apache-2.0
//
// The context of the C ABI's functions: one per rank, or one in a test.
#ifndef ROTA_RUNTIME_DEVICE_CONTEXT_H
#define ROTA_RUNTIME_DEVICE_CONTEXT_H

#include "runtime/GroupedAbi.h"
#include "runtime/device/Cores.h"
#include "runtime/device/Device.h"

#include <atomic>
#include <mutex>
#include <string>

namespace rota {

class Profile;

/// Runs the collectives that tasks call. Keeps a failure instead of throwing
/// it: compiled code cannot be unwound.
class TaskCollectives {
public:
  virtual ~TaskCollectives() = default;
  /// Carry out rotaStartCollective, rotaStartRowExchange and
  /// rotaWaitCollective.
  virtual int64_t startInTask(int collective, const void *source,
                              void *destination) = 0;
  virtual int64_t startRowExchange(int collective, const RotaRowExchange &form,
                                   const void *source, const int32_t *sent,
                                   const int32_t *received,
                                   void *destination) = 0;
  virtual void waitInTask(int64_t started) = 0;
};

/// Collectives of tasks that do none of their work.
class NoCollectives : public TaskCollectives {
public:
  int64_t startInTask(int, const void *, void *) override { return 0; }
  int64_t startRowExchange(int, const RotaRowExchange &, const void *,
                           const int32_t *, const int32_t *, void *) override {
    return 0;
  }
  void waitInTask(int64_t) override {}
};

} // namespace rota

struct RotaContext {
  rota::Device *device = nullptr;   // null: the host
  rota::Cores *cores = nullptr;     // null: everything on the calling thread
  rota::Profile *profile = nullptr; // null: nothing is measured
  rota::TaskCollectives *collectives = nullptr; // null: no task calls any
  rota::LoopCosts loopCosts = {};
  std::mutex failureMutex = {};
  std::atomic<bool> failed{false};
  std::string failure = {}; // guarded by failureMutex
};

#endif // ROTA_RUNTIME_DEVICE_CONTEXT_H
