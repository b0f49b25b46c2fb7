// SPDX-License-Identifier: Apache-2.0
//
// An arena as a map from bytes to the names of the values there, for the plan's
// verifier.
#ifndef ROTA_LOWERING_MEMORY_BYTENAMES_H
#define ROTA_LOWERING_MEMORY_BYTENAMES_H

#include "runtime/program/Program.h"

#include <map>
#include <string>

namespace rota::memory {

/// The kind of a value.
enum class ValueKind : uint8_t {
  Zeros,
  Activation,
  Cotangent,
  Residuals,
  OffloadedResiduals, // residuals that may rest on the host
  KeptCotangents,     // left by the input half, for the weights' half
  Weights,
  Gradient,
  Moved, // copied to the other arena; what is left may not be read
};

/// A logical value: its kind, which one, and of which microbatch or layer.
struct Name {
  ValueKind kind = ValueKind::Zeros;
  int64_t index = 0;
  int64_t of = 0;
  bool operator==(const Name &) const = default;
  std::string str() const; // "activation 3 of 1"
};

/// Asynchronous actions that have been waited for.
class Completed {
public:
  void add(int action) { actions.at(action) = true; }
  bool has(int action) const { return actions.at(action); }
  void reset(size_t count) { actions.assign(count, false); }

private:
  std::vector<char> actions;
};

/// The values in an arena. All functions return an error, empty when all is
/// well.
class ByteNames {
public:
  ByteNames(const Stage &stage, const Completed &completed)
      : stage(stage), completed(completed) {}

  void reset() { contents.clear(); }

  /// Puts `name` at `offset` in place of the former values. Where `writer` is
  /// an action, the value is there only after that.
  std::string write(int64_t offset, int64_t bytes, Name name, int writer = -1);
  /// `name` must be at `offset`. `reader` goes on reading it.
  std::string read(int64_t offset, int64_t bytes, Name name, int reader = -1);
  /// Zeros.
  std::string clear(int64_t offset, int64_t bytes);
  /// `name`, a sum, gets another term; it is there or zeros are. It must be
  /// taken before its bytes are overwritten.
  std::string accumulate(int64_t offset, int64_t bytes, Name name);
  /// `reader` goes on reading the sum `name`, to which nothing is added any
  /// more.
  std::string take(int64_t offset, Name name, int reader);
  /// Moves the range, which begins with a value and has `count` values, all of
  /// `microbatch`, to another arena; `copier` goes on doing so. They can be
  /// read only there.
  std::string move(int64_t offset, int64_t bytes, ByteNames &to,
                   int64_t destination, int copier, int64_t count,
                   int64_t microbatch);
  /// Removes the value at `offset`, which has no more readers.
  std::string drop(int64_t offset, Name name);
  /// A sum that nothing has taken.
  std::string findUntaken() const;

private:
  struct Content {
    int64_t bytes;
    Name name;
    int writer = -1;          // not there before this action is complete
    std::vector<int> readers; // not free before these are
    bool untaken = false;
  };
  using Place = std::map<int64_t, Content>::iterator;

  /// The content that holds all of [offset, offset + bytes); end if none does.
  Place holding(int64_t offset, int64_t bytes);
  /// Nothing that is known is left in the range.
  std::string vacate(int64_t offset, int64_t bytes);
  /// Why the bytes of `content` may not be overwritten.
  std::string overwriting(const Content &content) const;
  std::string unwritten(const Content &content) const;

  const Stage &stage;
  const Completed &completed;
  std::map<int64_t, Content> contents; // by offset; apart from each other
};

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_BYTENAMES_H
