// SPDX-License-Identifier: Apache-2.0
//
// Services of the context for runtime code written in C++: host threads, and a
// place to report a failure. Compiled code uses runtime/Abi.h.
#ifndef ROTA_RUNTIME_DEVICE_PARALLEL_H
#define ROTA_RUNTIME_DEVICE_PARALLEL_H

#include "runtime/Abi.h"

#include <cstdint>
#include <string>
#include <type_traits>

namespace rota {

/// A reference to something callable; it does not own it and must not outlive
/// it.
template <typename> class FunctionRef;
template <typename R, typename... Args> class FunctionRef<R(Args...)> {
public:
  template <typename F, typename = std::enable_if_t<
                            !std::is_same_v<std::decay_t<F>, FunctionRef>>>
  FunctionRef(F &&callable)
      : object(const_cast<void *>(static_cast<const void *>(&callable))),
        call([](void *object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F> *>(object))(args...);
        }) {}
  R operator()(Args... args) const { return call(object, args...); }

private:
  void *object;
  R (*call)(void *, Args...);
};

/// Runs body(0) .. body(pieces - 1), each once, in any order, on the calling
/// thread and on helper threads while cores are free; returns when all are
/// done. Which thread runs a piece must not change a bit of the result. `body`
/// must not throw and must not call parallelPieces. A null context, or one
/// without cores, runs all pieces on the calling thread.
void parallelPieces(RotaContext *context, int64_t pieces,
                    FunctionRef<void(int64_t piece)> body);

/// The most threads that parallelPieces may use for this context, at least 1:
/// for sizes of scratch memory and for the number of pieces.
int threadLimit(const RotaContext *context);

/// Records that the action cannot be completed; the first message wins. The
/// rank stops after the current call and the run ends with this message. Any
/// thread may call it. A null context prints the message and ends the process.
void reportFailure(RotaContext *context, const std::string &message);

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_PARALLEL_H
