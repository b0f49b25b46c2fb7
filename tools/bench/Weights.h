// SPDX-License-Identifier: Apache-2.0
//
// Weights of published models, each with a number of tokens: the shapes of
// products that training steps have.
#ifndef ROTA_TOOLS_BENCH_WEIGHTS_H
#define ROTA_TOOLS_BENCH_WEIGHTS_H

#include <array>
#include <cstdint>

namespace rota::bench {

struct Weight {
  const char *model, *name;
  int64_t tokens; // of a step; with experts, rows of all experts
  int64_t in, out;
  int64_t experts = 0;    // 0: one matrix for all tokens
  bool isInByOut = false; // stored as [in, out], else [out, in]
};

/// Five families: a small Llama, GPT-2, whose layers store [in, out], a large
/// Llama, a mixture whose experts have few rows each, and latent attention,
/// whose ranks are narrow.
constexpr std::array<Weight, 20> kWeights = {{
    {"Llama 110M", "attention", 2048, 768, 768},
    {"Llama 110M", "gate, up", 2048, 768, 2048},
    {"Llama 110M", "down", 2048, 2048, 768},
    {"Llama 110M", "vocabulary", 512, 768, 32000},
    {"GPT-2 124M", "attention", 1024, 768, 768, 0, true},
    {"GPT-2 124M", "up", 1024, 768, 3072, 0, true},
    {"GPT-2 124M", "down", 1024, 3072, 768, 0, true},
    {"GPT-2 124M", "vocabulary", 512, 768, 50257},
    {"Llama 3 8B", "query, output", 512, 4096, 4096},
    {"Llama 3 8B", "key, value", 512, 4096, 1024},
    {"Llama 3 8B", "gate, up", 512, 4096, 14336},
    {"Llama 3 8B", "down", 512, 14336, 4096},
    {"Qwen3 30B-A3B", "query", 1024, 2048, 4096},
    {"Qwen3 30B-A3B", "key, value", 1024, 2048, 512},
    {"Qwen3 30B-A3B", "experts: gate, up", 2048, 2048, 768, 16},
    {"Qwen3 30B-A3B", "experts: down", 2048, 768, 2048, 16},
    {"DeepSeek-V3", "query to rank", 512, 7168, 1536},
    {"DeepSeek-V3", "query from rank", 512, 1536, 24576},
    {"DeepSeek-V3", "key, value to rank", 512, 7168, 576},
    {"DeepSeek-V3", "key, value from rank", 512, 512, 32768},
}};

} // namespace rota::bench

#endif // ROTA_TOOLS_BENCH_WEIGHTS_H
