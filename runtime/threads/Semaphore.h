// SPDX-License-Identifier: Apache-2.0
#ifndef ROTA_RUNTIME_THREADS_SEMAPHORE_H
#define ROTA_RUNTIME_THREADS_SEMAPHORE_H

#include <chrono>
#include <semaphore.h>

namespace rota {

/// A count that threads sleep for. Giving takes no lock; the semaphore may be
/// destroyed as soon as its last count was taken.
class Semaphore {
public:
  Semaphore() { sem_init(&value, 0, 0); }
  ~Semaphore() { sem_destroy(&value); }
  Semaphore(const Semaphore &) = delete;
  Semaphore &operator=(const Semaphore &) = delete;
  void give() { sem_post(&value); }
  void take() {
    while (sem_wait(&value) != 0) // a signal came
      ;
  }
  /// For a count that comes soon: looks for it before it sleeps, as long as it
  /// may take to wake a thread whose core sleeps, on a virtual machine.
  void takeSoon() {
    using Clock = std::chrono::steady_clock;
    auto end = Clock::now() + std::chrono::microseconds(50);
    while (sem_trywait(&value) != 0)
      if (Clock::now() >= end)
        return take();
  }

private:
  sem_t value;
};

} // namespace rota

#endif // ROTA_RUNTIME_THREADS_SEMAPHORE_H
