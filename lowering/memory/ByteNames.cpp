// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes of names, and the actions that go on beside them.
#include "lowering/memory/ByteNames.h"

namespace rota::memory {

static constexpr Name kZeros{ValueKind::Zeros};

std::string Name::str() const {
  static constexpr const char *kKinds[] = {
      "zeros",     "activation",          "cotangent",
      "residuals", "offloaded residuals", "kept cotangents",
      "weights",   "the gradient",        "a moved value"};
  return std::string(kKinds[static_cast<int>(kind)]) + " " +
         std::to_string(index) + " of " + std::to_string(of);
}

static std::string actionName(const Stage &stage, int action) {
  return std::string(toString(stage.kindOf(action))) + " (action " +
         std::to_string(action) + ")";
}

std::string ByteNames::overwriting(const Content &content) const {
  if (content.untaken)
    return "overwrites " + content.name.str() + ", which is not reduced";
  auto waitsFor = [&](int action) {
    return "overwrites " + content.name.str() + " without waiting for " +
           actionName(stage, action);
  };
  if (content.writer >= 0 && !completed.has(content.writer))
    return waitsFor(content.writer);
  for (int action : content.readers)
    if (!completed.has(action))
      return waitsFor(action);
  return "";
}

std::string ByteNames::unwritten(const Content &content) const {
  if (content.writer < 0 || completed.has(content.writer))
    return "";
  return "reads " + content.name.str() + " without waiting for " +
         actionName(stage, content.writer);
}

ByteNames::Place ByteNames::holding(int64_t offset, int64_t bytes) {
  auto at = contents.upper_bound(offset);
  if (at == contents.begin())
    return contents.end();
  --at;
  return offset + bytes <= at->first + at->second.bytes ? at : contents.end();
}

std::string ByteNames::vacate(int64_t offset, int64_t bytes) {
  auto at = contents.upper_bound(offset);
  if (at != contents.begin())
    --at;
  while (at != contents.end() && at->first < offset + bytes) {
    if (at->first + at->second.bytes <= offset) {
      ++at;
      continue;
    }
    if (std::string error = overwriting(at->second); !error.empty())
      return error;
    at = contents.erase(at);
  }
  return "";
}

std::string ByteNames::write(int64_t offset, int64_t bytes, Name name,
                             int writer) {
  if (bytes == 0)
    return "";
  // Most blocks follow one of their size.
  if (auto at = contents.find(offset);
      at != contents.end() && at->second.bytes == bytes) {
    std::string error = overwriting(at->second);
    at->second = {bytes, name, writer, {}};
    return error;
  }
  std::string error = vacate(offset, bytes);
  contents.insert_or_assign(offset, Content{bytes, name, writer, {}});
  return error;
}

std::string ByteNames::read(int64_t offset, int64_t bytes, Name name,
                            int reader) {
  if (bytes == 0)
    return "";
  auto at = contents.find(offset);
  if (at == contents.end() || !(at->second.name == name) ||
      at->second.bytes < bytes)
    return "expected " + name.str() + " at offset " + std::to_string(offset) +
           ", got " +
           (at == contents.end() ? "nothing" : at->second.name.str());
  if (reader >= 0)
    at->second.readers.push_back(reader);
  return unwritten(at->second);
}

std::string ByteNames::clear(int64_t offset, int64_t bytes) {
  return write(offset, bytes, kZeros);
}

std::string ByteNames::accumulate(int64_t offset, int64_t bytes, Name name) {
  if (bytes == 0)
    return "";
  auto at = holding(offset, bytes);
  if (at != contents.end() && at->second.name == kZeros) {
    int64_t begin = at->first, end = at->first + at->second.bytes;
    contents.erase(at);
    if (begin < offset)
      contents[begin] = {offset - begin, kZeros, -1, {}};
    if (offset + bytes < end)
      contents[offset + bytes] = {end - offset - bytes, kZeros, -1, {}};
    contents[offset] = {bytes, name, -1, {}, /*untaken=*/true};
    return "";
  }
  if (at == contents.end() || at->first != offset ||
      !(at->second.name == name) || !at->second.untaken)
    return "adds to " + name.str() +
           " where neither zeros nor it are: offset " + std::to_string(offset);
  return "";
}

std::string ByteNames::take(int64_t offset, Name name, int reader) {
  auto at = contents.find(offset);
  if (at == contents.end() || !(at->second.name == name) || !at->second.untaken)
    return "expected " + name.str() + " at offset " + std::to_string(offset);
  at->second.untaken = false;
  at->second.readers.push_back(reader);
  return "";
}

std::string ByteNames::move(int64_t offset, int64_t bytes, ByteNames &to,
                            int64_t destination, int copier, int64_t count,
                            int64_t microbatch) {
  std::string error = to.vacate(destination, bytes);
  if (!error.empty())
    return error;
  int64_t found = 0;
  auto at = contents.find(offset);
  for (; at != contents.end() && at->first < offset + bytes; ++at, ++found) {
    Content &content = at->second;
    if (at->first + content.bytes > offset + bytes)
      return "copies a part of " + content.name.str();
    if (content.name.kind == ValueKind::Moved || content.name.of != microbatch)
      return "copies " + content.name.str();
    if (error = unwritten(content); !error.empty())
      return error;
    to.contents[destination + at->first - offset] = {
        content.bytes, content.name, copier, {}};
    content.name.kind = ValueKind::Moved;
    content.readers.push_back(copier);
  }
  if (found == count)
    return "";
  return "expected " + std::to_string(count) + " values from offset " +
         std::to_string(offset) + " on, got " + std::to_string(found);
}

std::string ByteNames::drop(int64_t offset, Name name) {
  auto at = contents.find(offset);
  if (at == contents.end() || !(at->second.name == name))
    return "expected " + name.str() + " at offset " + std::to_string(offset);
  std::string error = overwriting(at->second);
  contents.erase(at);
  return error;
}

std::string ByteNames::findUntaken() const {
  for (const auto &[offset, content] : contents)
    if (content.untaken)
      return content.name.str();
  return "";
}

} // namespace rota::memory
