// SPDX-License-Identifier: Apache-2.0
//
// A library for LD_PRELOAD that refuses a thread, as a system does at its
// limit: the one with the number REFUSE_THREAD of the process, counted from 1.
// The number is then in the file REFUSE_LOG, too.
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <pthread.h>

extern "C" int pthread_create(pthread_t *thread,
                              const pthread_attr_t *attributes,
                              void *(*start)(void *), void *argument) noexcept {
  using Create =
      int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  static const auto create =
      reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  static std::atomic<int> number = 0;
  const char *refused = std::getenv("REFUSE_THREAD");
  if (int own = ++number; refused && own == std::atoi(refused)) {
    if (FILE *log = std::fopen(std::getenv("REFUSE_LOG"), "w")) {
      std::fprintf(log, "%d\n", own);
      std::fclose(log);
    }
    return EAGAIN;
  }
  return create(thread, attributes, start, argument);
}
