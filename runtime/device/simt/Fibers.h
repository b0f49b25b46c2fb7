// SPDX-License-Identifier: Apache-2.0
//
// Fibers: functions with stacks of their own that one host thread runs by
// turns. A switch saves the registers that a call must keep (3 ns on x86-64);
// other machines use ucontext (about 200 ns, for the signal mask).
#ifndef ROTA_RUNTIME_DEVICE_SIMT_FIBERS_H
#define ROTA_RUNTIME_DEVICE_SIMT_FIBERS_H

#include "runtime/device/simt/Services.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace rota::simt {

class Fibers {
public:
  /// The function of all fibers. It never returns; it ends in leave() or
  /// switchTo() another.
  using Body = void (*)(void *owner);
  /// Half of it for the variables of a kernel, the rest for registers that the
  /// host has not and for services. Nothing guards its end: the compiler checks
  /// the variables.
  static constexpr size_t kStackBytes = 2 * ROTA_SIMT_LOCAL_BYTES;

  Fibers(Body body, void *owner);
  ~Fibers();

  /// Makes fibers 0 .. count-1 that have not started; whatever ran on their
  /// stacks is forgotten. False when the system has no memory for the stacks.
  [[nodiscard]] bool prepare(uint32_t count);
  /// Runs a fiber; returns when a fiber calls leave(). Not for fibers.
  void enter(uint32_t fiber);
  /// From fiber `from`, which runs: goes on with fiber `to`.
  void switchTo(uint32_t from, uint32_t to);
  /// From fiber `from`, which runs: back to enter()'s caller.
  void leave(uint32_t from);

  bool isOnStack(uint32_t fiber, const void *address) const;
  /// Fetches what a switch to the fiber reads: it probably runs next.
  void prefetch(uint32_t fiber) const;

private:
  struct Context;
  char *stackOf(uint32_t fiber) const { return stacks + fiber * kStackBytes; }
  void makeContext(uint32_t fiber);
  void unmap();

  Body body;
  void *owner;
  uint32_t capacity = 0;
  char *stacks = nullptr;
  std::unique_ptr<Context[]> contexts; // one for each fiber, then the caller's
};

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_FIBERS_H
