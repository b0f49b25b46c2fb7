// SPDX-License-Identifier: Apache-2.0
//
// Attention and its derivative as a plain loop in f64, and as source text.
#ifndef ROTA_TEST_LOWERING_KERNELS_ATTENTIONTESTING_H
#define ROTA_TEST_LOWERING_KERNELS_ATTENTIONTESTING_H

#include "test/lowering/kernels/KernelTesting.h"

#include <cstdlib>

namespace rota::testing {

/// Attributes of the op; 0 stands for the op's default.
struct AttentionFormText {
  int64_t window = 0;
  double softCap = 0;
  bool bidirectional = false, sinks = false;
  int64_t valueSize = 0; // 0: that of keys
  int64_t documents = 0; // tokens of each but the first and last; 0: none
};

struct AttentionSizes {
  int64_t batch, sequence, heads, keyHeads, size;
  AttentionFormText form = {};

  std::string name() const {
    std::string text = "B" + std::to_string(batch) + "S" +
                       std::to_string(sequence) + "H" + std::to_string(heads) +
                       "K" + std::to_string(keyHeads) + "D" +
                       std::to_string(size);
    if (form.valueSize)
      text += "V" + std::to_string(form.valueSize);
    if (form.window)
      text += "W" + std::to_string(form.window);
    return text + (form.softCap != 0 ? "Capped" : "") +
           (form.bidirectional ? "Bidirectional" : "") +
           (form.sinks ? "Sinks" : "") +
           (form.documents ? "Documents" + std::to_string(form.documents) : "");
  }
  int64_t valueSize() const { return form.valueSize ? form.valueSize : size; }
  /// Position of the token in its document: the first one of sequence b has b
  /// tokens more than others.
  int64_t inDocument(int64_t b, int64_t row) const {
    int64_t first = form.documents + b;
    return row < first ? row : (row - first) % form.documents;
  }
  bool sees(int64_t b, int64_t row, int64_t key) const {
    if (!form.bidirectional && key > row)
      return false;
    if (form.documents && row - key > inDocument(b, row))
      return false;
    return form.window == 0 || std::abs(row - key) < form.window;
  }

  std::vector<int64_t> query() const { return {batch, sequence, heads, size}; }
  std::vector<int64_t> key() const { return {batch, sequence, keyHeads, size}; }
  std::vector<int64_t> value() const {
    return {batch, sequence, keyHeads, valueSize()};
  }
  std::vector<int64_t> output() const {
    return {batch, sequence, heads, valueSize()};
  }
  std::vector<int64_t> rows() const { return {batch, heads, sequence}; }

  int64_t queries() const { return batch * sequence * heads * size; }
  int64_t keys() const { return batch * sequence * keyHeads * size; }
  int64_t values() const { return batch * sequence * keyHeads * valueSize(); }
  int64_t outputs() const { return batch * sequence * heads * valueSize(); }
  int64_t lines() const { return batch * heads * sequence; }

  int64_t queryAt(int64_t b, int64_t s, int64_t h, int64_t d) const {
    return ((b * sequence + s) * heads + h) * size + d;
  }
  int64_t keyAt(int64_t b, int64_t s, int64_t h, int64_t d) const {
    return ((b * sequence + s) * keyHeads + h) * size + d;
  }
  int64_t outputAt(int64_t b, int64_t s, int64_t h, int64_t d) const {
    return ((b * sequence + s) * heads + h) * valueSize() + d;
  }
  int64_t valueAt(int64_t b, int64_t s, int64_t h, int64_t d) const {
    return ((b * sequence + s) * keyHeads + h) * valueSize() + d;
  }
};

inline constexpr double kScale = 0.3;

/// Operands and results of attention and of its derivative.
struct AttentionTensors {
  AttentionTensors(const AttentionSizes &s, const std::string &type)
      : hasSinks(s.form.sinks), hasDocuments(s.form.documents != 0),
        q(Buffer::random(type, s.queries(), 1)),
        k(Buffer::random(type, s.keys(), 2)),
        v(Buffer::random(type, s.values(), 3)),
        dout(Buffer::random(type, s.outputs(), 4)),
        sinks(Buffer::random("f32", s.heads, 5, -1.0f, 2.0f)),
        out(type, s.outputs()), lse("f32", s.lines()), dq(type, s.queries()),
        dk(type, s.keys()), dv(type, s.values()), dsinks("f32", s.heads),
        documents("i32", s.batch * s.sequence) {
    for (int64_t i = 0; hasDocuments && i < s.batch * s.sequence; ++i)
      documents.set(i, double(s.inDocument(i / s.sequence, i % s.sequence)));
  }

  std::vector<Buffer *> forward() {
    return withSinks({&q, &k, &v}, {&out, &lse}, nullptr);
  }
  std::vector<Buffer *> backward() {
    return withSinks({&dout, &q, &k, &v, &out, &lse}, {&dq, &dk, &dv}, &dsinks);
  }
  /// The results of both.
  std::vector<const Buffer *> results() const {
    return {&out, &lse, &dq, &dk, &dv, &dsinks};
  }

  bool hasSinks, hasDocuments;
  Buffer q, k, v, dout, sinks, out, lse, dq, dk, dv, dsinks, documents;

private:
  std::vector<Buffer *> withSinks(std::vector<Buffer *> operands,
                                  const std::vector<Buffer *> &results,
                                  Buffer *last) {
    if (hasSinks)
      operands.push_back(&sinks);
    if (hasDocuments)
      operands.push_back(&documents);
    operands.insert(operands.end(), results.begin(), results.end());
    if (hasSinks && last)
      operands.push_back(last);
    return operands;
  }
};

/// All results of attention and its derivative, in f64.
struct AttentionReference {
  AttentionReference(const AttentionSizes &s, const AttentionTensors &t)
      : out(s.outputs()), lse(s.lines()), dq(s.queries()), dk(s.keys()),
        dv(s.values()), dsinks(s.heads), q(t.q.numbers()), k(t.k.numbers()),
        v(t.v.numbers()), dout(t.dout.numbers()), sinks(t.sinks.numbers()) {
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t h = 0; h < s.heads; ++h)
        for (int64_t row = 0; row < s.sequence; ++row)
          addRow(s, b, h, row);
  }

  std::vector<double> out, lse, dq, dk, dv, dsinks;

private:
  void addRow(const AttentionSizes &s, int64_t b, int64_t h, int64_t row) {
    int64_t kv = h / (s.heads / s.keyHeads);
    std::vector<double> weight(s.sequence), bend(s.sequence, 1.0);
    double sink = s.form.sinks ? std::exp(sinks[h]) : 0.0, sum = sink;
    for (int64_t j = 0; j < s.sequence; ++j) {
      if (!s.sees(b, row, j))
        continue;
      double score = 0.0;
      for (int64_t d = 0; d < s.size; ++d)
        score += q[s.queryAt(b, row, h, d)] * k[s.keyAt(b, j, kv, d)];
      score *= kScale;
      if (double cap = s.form.softCap; cap != 0) {
        bend[j] = 1 - std::tanh(score / cap) * std::tanh(score / cap);
        score = cap * std::tanh(score / cap);
      }
      sum += weight[j] = std::exp(score);
    }
    lse[(b * s.heads + h) * s.sequence + row] = std::log(sum);
    double delta = 0.0;
    std::vector<double> slope(s.sequence);
    for (int64_t j = 0; j < s.sequence; ++j) {
      weight[j] /= sum;
      for (int64_t d = 0; d < s.valueSize(); ++d) {
        double g = dout[s.outputAt(b, row, h, d)],
               x = v[s.valueAt(b, j, kv, d)];
        out[s.outputAt(b, row, h, d)] += weight[j] * x;
        dv[s.valueAt(b, j, kv, d)] += weight[j] * g;
        slope[j] += g * x;
      }
      delta += weight[j] * slope[j];
    }
    dsinks[h] -= sink / sum * delta;
    for (int64_t j = 0; j < s.sequence; ++j)
      for (int64_t d = 0; d < s.size; ++d) {
        double ds = kScale * weight[j] * (slope[j] - delta) * bend[j];
        dq[s.queryAt(b, row, h, d)] += ds * k[s.keyAt(b, j, kv, d)];
        dk[s.keyAt(b, j, kv, d)] += ds * q[s.queryAt(b, row, h, d)];
      }
  }

  std::vector<double> q, k, v, dout, sinks;
};

/// "func.func @f(...) { %r:n = rota.name operands form : types }".
inline std::string attentionSource(const std::string &name,
                                   const AttentionSizes &s,
                                   std::vector<std::string> operands,
                                   std::vector<std::string> results) {
  const AttentionFormText &form = s.form;
  std::string arguments, uses, types, resultTypes;
  std::vector<std::string> words(operands.size());
  auto add = [&](const char *word, const std::string &type) {
    words.push_back(word);
    operands.push_back(type);
  };
  if (form.sinks)
    add(" sinks ", tensor({s.heads}, "f32"));
  if (form.documents)
    add(" documents ", tensor({s.batch, s.sequence}, "i32"));
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string value = "%a" + std::to_string(i), comma = i ? ", " : "";
    arguments += comma + value + ": " + operands[i];
    uses += (words[i].empty() ? comma : words[i]) + value;
    types += comma + operands[i];
  }
  for (size_t i = 0; i < results.size(); ++i)
    resultTypes += (i ? ", " : "") + results[i];
  uses += " scale = 0.3";
  if (form.window)
    uses += " window = " + std::to_string(form.window);
  if (form.softCap != 0)
    uses += " soft_cap = " + std::to_string(form.softCap);
  if (form.bidirectional)
    uses += " bidirectional";
  return "func.func @f(" + arguments +
         ") {\n%r:" + std::to_string(results.size()) + " = rota." + name + " " +
         uses + " : (" + types + ") -> (" + resultTypes + ")\nreturn }";
}

inline std::string forwardSource(const AttentionSizes &s,
                                 const std::string &type) {
  return attentionSource(
      "attention", s,
      {tensor(s.query(), type), tensor(s.key(), type), tensor(s.value(), type)},
      {tensor(s.output(), type), tensor(s.rows(), "f32")});
}

inline std::string backwardSource(const AttentionSizes &s,
                                  const std::string &type) {
  std::string q = tensor(s.query(), type), k = tensor(s.key(), type),
              v = tensor(s.value(), type), o = tensor(s.output(), type);
  std::vector<std::string> results = {q, k, v};
  if (s.form.sinks)
    results.push_back(tensor({s.heads}, "f32"));
  return attentionSource("attention_grad", s,
                         {o, q, k, v, o, tensor(s.rows(), "f32")}, results);
}

/// Forms that fill neither windows nor blocks.
inline std::vector<AttentionSizes> attentionForms(int64_t size,
                                                  int64_t valueSize) {
  return {
      {1, 37, 4, 2, size, {.window = 5}},
      {2, 37, 2, 2, size, {.window = 1}},
      {1, 37, 2, 1, size, {.window = 37}},
      {1, 131, 2, 1, size, {.window = 40, .sinks = true}},
      {2, 37, 4, 2, size, {.softCap = 0.8}},
      {2, 37, 4, 2, size, {.sinks = true}},
      {1, 37, 2, 2, size, {.bidirectional = true, .valueSize = valueSize}},
      {1, 131, 4, 2, size, {.window = 33, .bidirectional = true}},
      {2,
       70,
       4,
       1,
       size,
       {.window = 9,
        .softCap = 0.8,
        .bidirectional = true,
        .sinks = true,
        .valueSize = valueSize}},
      {2, 37, 4, 2, size, {.sinks = true, .valueSize = valueSize}},
      {1, 1, 2, 1, size, {.window = 3, .bidirectional = true}},
      {1, 64, 1, 1, size, {.window = 64, .softCap = 0.8, .sinks = true}},
      {2, 131, 4, 2, size, {.documents = 9}},
      {2, 70, 2, 1, size, {.sinks = true, .documents = 40}},
      {1,
       131,
       2,
       1,
       size,
       {.window = 20, .softCap = 0.8, .valueSize = valueSize, .documents = 50}},
      {2, 37, 2, 2, size, {.documents = 1}},
  };
}

} // namespace rota::testing

#endif // ROTA_TEST_LOWERING_KERNELS_ATTENTIONTESTING_H
