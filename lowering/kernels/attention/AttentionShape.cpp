// SPDX-License-Identifier: Apache-2.0
#include "lowering/kernels/attention/AttentionShape.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

namespace rota::lowering {

std::string toString(const AttentionShape &s) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  auto bits = [](float value) {
    return llvm::format_hex(llvm::bit_cast<uint32_t>(value), 8);
  };
  stream << s.batch << 'x' << s.sequence << 'x' << s.heads << 'x' << s.keyHeads
         << 'x' << s.size << 'x' << s.valueSize << 'x' << s.element << " * "
         << bits(s.scale) << " cap " << bits(s.softCap) << " sees "
         << s.mask.before << ' ' << s.mask.after << " from " << s.mask.offset
         << (s.hasSinks ? " sinks" : "") << (s.hasPrevious ? " more" : "")
         << " to " << s.wideElement << (s.dependsOnPosition ? " if seen" : "")
         << (s.hasKeyPosition ? " from a position" : "")
         << (s.hasDocuments ? " in documents" : "");
  return text;
}

} // namespace rota::lowering
