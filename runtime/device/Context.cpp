// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/Context.h"

#include <cstdio>
#include <cstdlib>

namespace rota {

void parallelPieces(RotaContext *context, int64_t pieces,
                    FunctionRef<void(int64_t)> body) {
  if (context && context->cores) {
    context->cores->run(pieces, body);
    return;
  }
  for (int64_t piece = 0; piece < pieces; ++piece)
    body(piece);
}

int threadLimit(const RotaContext *context) {
  return context && context->cores ? context->cores->count() : 1;
}

void reportFailure(RotaContext *context, const std::string &message) {
  if (!context) {
    std::fprintf(stderr, "error: %s\n", message.c_str());
    std::exit(1);
  }
  std::lock_guard lock(context->failureMutex);
  if (context->failed)
    return;
  context->failure = message;
  context->failed = true;
}

} // namespace rota
