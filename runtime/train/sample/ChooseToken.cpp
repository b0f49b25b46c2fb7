// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/sample/ChooseToken.h"
#include "runtime/Error.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace rota {

static void requireFinite(std::span<const float> logits) {
  for (size_t token = 0; token < logits.size(); ++token)
    if (!std::isfinite(logits[token]))
      throw RunError(fmt::format("the logit of token {} is not finite: {}",
                                 token, logits[token]));
}

int64_t chooseToken(std::span<const float> logits, const SampleOptions &options,
                    double uniform) {
  requireFinite(logits);
  auto most = std::ranges::max_element(logits);
  if (options.temperature == 0.0)
    return most - logits.begin();
  std::vector<double> weights(logits.size());
  for (size_t token = 0; token < logits.size(); ++token)
    weights[token] =
        std::exp((double(logits[token]) - double(*most)) / options.temperature);
  std::vector<int64_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (options.topP < 1.0) {
    std::ranges::sort(tokens, [&](int64_t a, int64_t b) {
      return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
    });
    size_t kept = 0;
    double sum = 0.0, enough = options.topP * total;
    while (kept < tokens.size() && sum < enough)
      sum += weights[tokens[kept++]];
    tokens.resize(kept);
    total = sum;
  }
  double left = uniform * total;
  for (int64_t token : tokens)
    if (left -= weights[token]; left < 0.0)
      return token;
  return tokens.back();
}

} // namespace rota
