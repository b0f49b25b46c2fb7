// SPDX-License-Identifier: Apache-2.0
//
// A trie over bytes whose edges are in one hash table.
#ifndef ROTA_RUNTIME_TOKENIZER_BYTETRIE_H
#define ROTA_RUNTIME_TOKENIZER_BYTETRIE_H

#include <cstdint>
#include <string_view>
#include <vector>

namespace rota {

class ByteTrie {
public:
  static constexpr int32_t kNone = -1;

  ByteTrie();

  /// Gives the key, which is not empty, a value from 0 on. The last one counts.
  void add(std::string_view key, int32_t value);

  /// The node after `node` and a byte; kNone: there is none. 0 is the root.
  int32_t next(int32_t node, char byte) const {
    uint64_t key = keyOf(node, byte);
    for (size_t at = slotOf(key);; at = (at + 1) & mask) {
      if (edges[at].key == key)
        return edges[at].node;
      if (edges[at].key == kFree)
        return kNone;
    }
  }
  /// The value of the key that ends there; kNone: none does.
  int32_t value(int32_t node) const { return values[size_t(node)]; }

private:
  static constexpr uint64_t kFree = ~uint64_t(0);
  struct Edge {
    uint64_t key = kFree;
    int32_t node = kNone;
  };

  static uint64_t keyOf(int32_t node, char byte) {
    return static_cast<uint64_t>(node) << 8 | static_cast<uint8_t>(byte);
  }
  size_t slotOf(uint64_t key) const {
    return (key * 0x9E3779B97F4A7C15u >> 20) & mask;
  }
  void insert(Edge edge);
  void grow();

  std::vector<int32_t> values;
  std::vector<Edge> edges;
  size_t mask;
};

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_BYTETRIE_H
