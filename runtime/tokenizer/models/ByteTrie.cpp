// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/models/ByteTrie.h"

namespace rota {

ByteTrie::ByteTrie() : values{kNone}, edges(256), mask(edges.size() - 1) {}

void ByteTrie::insert(Edge edge) {
  size_t at = slotOf(edge.key);
  while (edges[at].key != kFree)
    at = (at + 1) & mask;
  edges[at] = edge;
}

void ByteTrie::grow() {
  std::vector<Edge> old(edges.size() * 2);
  old.swap(edges);
  mask = edges.size() - 1;
  for (const Edge &edge : old)
    if (edge.key != kFree)
      insert(edge);
}

void ByteTrie::add(std::string_view key, int32_t value) {
  int32_t node = 0;
  for (char byte : key) {
    int32_t child = next(node, byte);
    if (child == kNone) {
      if (values.size() * 2 > edges.size())
        grow();
      child = static_cast<int32_t>(values.size());
      values.push_back(kNone);
      insert({keyOf(node, byte), child});
    }
    node = child;
  }
  values[static_cast<size_t>(node)] = value;
}

} // namespace rota
