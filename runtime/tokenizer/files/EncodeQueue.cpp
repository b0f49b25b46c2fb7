// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/files/EncodeQueue.h"
#include "runtime/Error.h"
#include "runtime/threads/StartThread.h"

#include <fmt/format.h>
#include <utility>

namespace rota {

EncodeQueue::EncodeQueue(const Tokenizer &tokenizer, const DocumentFrame &frame,
                         int count)
    : most(static_cast<size_t>(count) * 2 + 1) {
  StartedThreads started =
      startAllowedThreads("encoding texts", count, [this, &tokenizer, &frame] {
        work(tokenizer, frame);
      });
  if (started.threads.empty())
    throw RunError(started.refusal);
  if (!started.refusal.empty())
    fmt::print(stderr, "warning: {}; goes on with {}\n", started.refusal,
               started.threads.size());
  threads = std::move(started.threads);
}

EncodeQueue::~EncodeQueue() {
  {
    std::lock_guard lock(mutex);
    isEnding = true;
  }
  changed.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

void EncodeQueue::push(TextPart part) {
  std::lock_guard lock(mutex);
  open.push_back(&parts.emplace_back(Job{std::move(part), nullptr, false}));
  changed.notify_all();
}

TextPart EncodeQueue::pop() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return parts.front().isDone; });
  Job job = std::move(parts.front());
  parts.pop_front();
  if (job.error)
    std::rethrow_exception(job.error);
  return std::move(job.part);
}

void EncodeQueue::work(const Tokenizer &tokenizer, const DocumentFrame &frame) {
  std::optional<DocumentEncoder> encoder;
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return isEnding || !open.empty(); });
    if (isEnding)
      return;
    Job &job = *open.front();
    open.pop_front();
    lock.unlock();
    try {
      if (!encoder)
        encoder.emplace(tokenizer, frame);
      encoder->encode(job.part);
    } catch (...) {
      job.error = std::current_exception();
    }
    lock.lock();
    job.isDone = true;
    changed.notify_all();
  }
}

} // namespace rota
