// SPDX-License-Identifier: Apache-2.0
//
// What a thread that sleeps needs besides what it waits for, such as a core.
// The thread that ends the wait asks for it, since the one that sleeps may not
// run for milliseconds where every core has a thread.
#ifndef ROTA_RUNTIME_THREADS_TURN_H
#define ROTA_RUNTIME_THREADS_TURN_H

#include "runtime/threads/Semaphore.h"

namespace rota {

class Turn {
public:
  virtual ~Turn() = default;

  /// Asks for the turn, which gives to `wake` when it comes. Any thread may
  /// call it, once until the turn has come or is withdrawn.
  virtual void ask(Semaphore &wake) = 0;
  /// Whether it has come. It is not given to `wake` any more then.
  virtual bool hasCome() = 0;
  /// Nothing is given to `wake` any more.
  virtual void withdraw() = 0;
};

} // namespace rota

#endif // ROTA_RUNTIME_THREADS_TURN_H
