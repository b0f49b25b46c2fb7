// SPDX-License-Identifier: Apache-2.0
//
// The ops that are measured, in rota IR: each text has a function @f.
#ifndef ROTA_TOOLS_MEASURE_OPSOURCES_H
#define ROTA_TOOLS_MEASURE_OPSOURCES_H

#include <cstdint>
#include <string>
#include <vector>

namespace rota {

struct RowSizes {
  int64_t tokens, width, vocabulary; // the gated activation is 3 * width
};
/// Kernels without products of a layer and of the loss.
std::vector<std::string> rowSources(const std::string &type,
                                    const RowSizes &sizes);

struct AttentionSizes {
  int64_t batch, tokens, heads, headSize;
};
struct AttentionSources {
  std::string forward, backward;
};
AttentionSources attentionSources(const std::string &type,
                                  const AttentionSizes &sizes);

/// An addition of rows of 1024 f32, whose time is that of memory.
std::string additionSource(int64_t rows);

/// What an optimizer does in memory: three tensors of rows of 1024 f32, changed
/// by a fourth. The results are those of the first three operands.
std::string updateSource(int64_t rows);

/// One kernel of that many additions and as many products on each of rows of
/// 1024 f32, whose time is that of its arithmetic.
std::string arithmeticSource(int64_t rows, int operations);

} // namespace rota

#endif // ROTA_TOOLS_MEASURE_OPSOURCES_H
