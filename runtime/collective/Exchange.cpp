// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/Exchange.h"
#include "runtime/collective/Blocks.h"

#include <fmt/format.h>

namespace rota {

Exchange::Exchange(Stream stream, const Collective &collective,
                   const RankGroup &group)
    : stream(stream), collective(collective), group(group),
      elementBytes(byteSize(collective.type)) {}

Exchange::Exchange(Stream stream, int sender, int receiver, int64_t bytes)
    : stream(stream), isMessage(true) {
  collective.size = bytes;
  group.ranks = {sender};
  if (receiver != sender)
    group.ranks.push_back(receiver);
}

std::string Exchange::describe() const {
  if (isMessage)
    return fmt::format("a message of {} bytes", collective.size);
  return rota::describe(collective);
}

std::string Exchange::disagreement(const Exchange &other) const {
  const Collective &a = collective, &b = other.collective;
  bool same = a.kind == b.kind && a.type == b.type && a.outer == b.outer &&
              a.size == b.size && a.inner == b.inner &&
              a.splitOuter == b.splitOuter && a.splitSize == b.splitSize &&
              a.splitInner == b.splitInner && a.order == b.order &&
              a.shift == b.shift && a.maximum == b.maximum;
  if (same)
    return "";
  return fmt::format("expected {}, as other ranks started, got {}", describe(),
                     other.describe());
}

SequenceKey keyOf(const Exchange &exchange) {
  return {exchange.stream, exchange.isMessage, exchange.group.ranks};
}

} // namespace rota
