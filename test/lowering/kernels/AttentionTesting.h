// SPDX-License-Identifier: Apache-2.0
//
// Attention and its derivative as a plain loop in f64, and as source text.
#ifndef ROTA_TEST_LOWERING_KERNELS_ATTENTIONTESTING_H
#define ROTA_TEST_LOWERING_KERNELS_ATTENTIONTESTING_H

#include "test/lowering/kernels/KernelTesting.h"

namespace rota::testing {

struct AttentionSizes {
  int64_t batch, sequence, heads, keyHeads, size;

  std::string name() const {
    return "B" + std::to_string(batch) + "S" + std::to_string(sequence) + "H" +
           std::to_string(heads) + "K" + std::to_string(keyHeads) + "D" +
           std::to_string(size);
  }
  std::vector<int64_t> query() const { return {batch, sequence, heads, size}; }
  std::vector<int64_t> key() const { return {batch, sequence, keyHeads, size}; }
  int64_t queries() const { return batch * sequence * heads * size; }
  int64_t keys() const { return batch * sequence * keyHeads * size; }
  int64_t queryAt(int64_t b, int64_t s, int64_t h, int64_t d) const {
    return ((b * sequence + s) * heads + h) * size + d;
  }
  int64_t keyAt(int64_t b, int64_t s, int64_t h, int64_t d) const {
    return ((b * sequence + s) * keyHeads + h) * size + d;
  }
};

inline constexpr double kScale = 0.3;

/// All results of attention and its derivative, in f64.
struct AttentionReference {
  AttentionReference(const AttentionSizes &s, const Buffer &q, const Buffer &k,
                     const Buffer &v, const Buffer &dout)
      : out(s.queries()), lse(s.batch * s.heads * s.sequence), dq(s.queries()),
        dk(s.keys()), dv(s.keys()) {
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t h = 0; h < s.heads; ++h)
        for (int64_t row = 0; row < s.sequence; ++row)
          addRow(s, q, k, v, dout, b, h, row);
  }

  void addRow(const AttentionSizes &s, const Buffer &q, const Buffer &k,
              const Buffer &v, const Buffer &dout, int64_t b, int64_t h,
              int64_t row) {
    int64_t kv = h / (s.heads / s.keyHeads);
    std::vector<double> weight(row + 1);
    double sum = 0.0;
    for (int64_t j = 0; j <= row; ++j) {
      double score = 0.0;
      for (int64_t d = 0; d < s.size; ++d)
        score += q[s.queryAt(b, row, h, d)] * k[s.keyAt(b, j, kv, d)];
      sum += weight[j] = std::exp(kScale * score);
    }
    lse[(b * s.heads + h) * s.sequence + row] = std::log(sum);
    double delta = 0.0;
    std::vector<double> slope(row + 1);
    for (int64_t j = 0; j <= row; ++j) {
      weight[j] /= sum;
      for (int64_t d = 0; d < s.size; ++d) {
        double g = dout[s.queryAt(b, row, h, d)], x = v[s.keyAt(b, j, kv, d)];
        out[s.queryAt(b, row, h, d)] += weight[j] * x;
        dv[s.keyAt(b, j, kv, d)] += weight[j] * g;
        slope[j] += g * x;
      }
      delta += weight[j] * slope[j];
    }
    for (int64_t j = 0; j <= row; ++j)
      for (int64_t d = 0; d < s.size; ++d) {
        double ds = kScale * weight[j] * (slope[j] - delta);
        dq[s.queryAt(b, row, h, d)] += ds * k[s.keyAt(b, j, kv, d)];
        dk[s.keyAt(b, j, kv, d)] += ds * q[s.queryAt(b, row, h, d)];
      }
  }

  std::vector<double> out, lse, dq, dk, dv;
};

inline std::string forwardSource(const AttentionSizes &s,
                                 const std::string &type) {
  std::string q = tensor(s.query(), type), k = tensor(s.key(), type);
  return "func.func @f(%q: " + q + ", %k: " + k + ", %v: " + k +
         ") {\n%o, %l = rota.attention %q, %k, %v scale = 0.3 : (" + q + ", " +
         k + ", " + k + ") -> (" + q + ", " +
         tensor({s.batch, s.heads, s.sequence}, "f32") + ")\nreturn }";
}

inline std::string backwardSource(const AttentionSizes &s,
                                  const std::string &type) {
  std::string q = tensor(s.query(), type), k = tensor(s.key(), type);
  std::string l = tensor({s.batch, s.heads, s.sequence}, "f32");
  return "func.func @f(%d: " + q + ", %q: " + q + ", %k: " + k + ", %v: " + k +
         ", %o: " + q + ", %l: " + l +
         ") {\n%x:3 = rota.attention_grad %d, %q, %k, %v, %o, %l scale = 0.3 "
         ": (" +
         q + ", " + q + ", " + k + ", " + k + ", " + q + ", " + l + ") -> (" +
         q + ", " + k + ", " + k + ")\nreturn }";
}

} // namespace rota::testing

#endif // ROTA_TEST_LOWERING_KERNELS_ATTENTIONTESTING_H
