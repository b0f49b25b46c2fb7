// SPDX-License-Identifier: Apache-2.0
//
// Threads that encode parts of texts, whose tokens come out in the order in
// which the parts went in.
#ifndef ROTA_RUNTIME_TOKENIZER_ENCODEQUEUE_H
#define ROTA_RUNTIME_TOKENIZER_ENCODEQUEUE_H

#include "runtime/tokenizer/files/EncodeDocuments.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

namespace rota {

class EncodeQueue {
public:
  /// Goes on with fewer threads when the system refuses some, after a warning.
  /// Throws RunError when it refuses all.
  EncodeQueue(const Tokenizer &tokenizer, const DocumentFrame &frame,
              int threads);
  ~EncodeQueue();
  EncodeQueue(const EncodeQueue &) = delete;
  EncodeQueue &operator=(const EncodeQueue &) = delete;

  /// There are as many parts inside as it takes.
  bool isFull() const { return parts.size() >= most; }
  bool isEmpty() const { return parts.empty(); }
  void push(TextPart part);
  /// Waits for the first part that is inside. Throws what its encoding threw.
  TextPart pop();

private:
  struct Job {
    TextPart part;
    std::exception_ptr error;
    bool isDone = false;
  };
  void work(const Tokenizer &tokenizer, const DocumentFrame &frame);

  const size_t most;
  std::deque<Job> parts; // by the caller's thread alone; jobs stay in place
  std::mutex mutex;      // of what follows, and of jobs
  std::condition_variable changed;
  std::deque<Job *> open;
  bool isEnding = false;
  std::vector<std::thread> threads;
};

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_ENCODEQUEUE_H
