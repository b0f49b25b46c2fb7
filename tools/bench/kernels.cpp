// SPDX-License-Identifier: Apache-2.0
//
// Speed of the kernels written by hand: milliseconds, GF/s (attention counts
// the pairs that see each other: 2 products forward, 5 backward) and GB/s of
// operands and results read or written once. The sizes default to those of the
// 110M model. With a window: attention alone, without and with the window.
// `bench-kernels [threads] [batch] [sequence] [heads] [key heads] [head size]
// [window]`.
#include "ir/rota/attention/AttentionForm.h"
#include "runtime/device/Context.h"
#include "runtime/device/cpu/HostArena.h"
#include "tools/bench/CompiledOp.h"
#include "tools/bench/Limits.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

using rota::bench::CompiledOp;
using rota::bench::processorSeconds;
using rota::bench::seconds;

namespace {

struct Tensor {
  std::vector<int64_t> shape;
  std::string element;

  int64_t count() const {
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    return count;
  }
  int64_t bytes() const { return count() * (element == "bf16" ? 2 : 4); }
  std::string type() const {
    std::string text = "tensor<";
    for (int64_t size : shape)
      text += std::to_string(size) + "x";
    return text + element + ">";
  }
};

/// One op: its name and the text between operands and types, which depends on
/// the op's syntax.
struct KernelCase {
  std::string name, suffix;
  std::vector<Tensor> operands, results;
  double flops = 0.0;
  bool namesResults = true; // a functional type ends the op, or operand types
  bool accumulate = false;
  std::optional<int64_t> window = std::nullopt;

  std::string title() const {
    return window ? name + " " + std::to_string(*window) : name;
  }
};

std::string source(const KernelCase &item) {
  std::string arguments, uses, types, results;
  for (size_t i = 0; i < item.operands.size(); ++i) {
    std::string comma = i ? ", " : "", name = "%a" + std::to_string(i);
    arguments += comma + name + ": " + item.operands[i].type();
    uses += comma + name;
    types += comma + item.operands[i].type();
  }
  for (size_t i = 0; i < item.results.size(); ++i)
    results += (i ? ", " : "") + item.results[i].type();
  std::string count = std::to_string(item.results.size());
  return "func.func @f(" + arguments + ") {\n%r:" + count + " = rota." +
         item.name + " " + uses + item.suffix + " : " +
         (item.namesResults ? "(" + types + ") -> (" + results + ")" : types) +
         "\nreturn }";
}

/// Fills with small numbers: values in (0, 1], or tokens.
void fill(char *memory, const Tensor &tensor, int64_t vocabulary) {
  for (int64_t i = 0; i < tensor.count(); ++i) {
    int64_t random = i * 7919 % 1013;
    float value = float(random + 1) / 1013.0f;
    if (tensor.element == "i32")
      reinterpret_cast<int32_t *>(memory)[i] = int32_t(random % vocabulary);
    else if (tensor.element == "f32")
      reinterpret_cast<float *>(memory)[i] = value;
    else
      reinterpret_cast<uint16_t *>(memory)[i] =
          uint16_t(*reinterpret_cast<uint32_t *>(&value) >> 16);
  }
}

bool measure(RotaContext *context, const KernelCase &item, int64_t vocabulary) {
  double start = processorSeconds();
  auto op = CompiledOp::create(
      source(item), std::vector<bool>(item.results.size(), item.accumulate));
  if (!op)
    return false;
  double compiled = processorSeconds() - start;
  std::vector<Tensor> tensors = item.operands;
  tensors.insert(tensors.end(), item.results.begin(), item.results.end());
  int64_t bytes = 0;
  for (const Tensor &tensor : tensors)
    bytes += (tensor.bytes() + 63) / 64 * 64;
  rota::HostArena arena(bytes);
  std::vector<void *> buffers;
  char *next = static_cast<char *>(arena.at(0));
  for (const Tensor &tensor : tensors) {
    fill(next, tensor, vocabulary);
    buffers.push_back(next);
    next += (tensor.bytes() + 63) / 64 * 64;
  }
  double least = 1e30, leastProcessor = 1e30;
  for (int i = 0; i < 9; ++i) {
    double begin = seconds(), beginProcessor = processorSeconds();
    op->run(context, buffers);
    least = std::min(least, seconds() - begin);
    leastProcessor =
        std::min(leastProcessor, processorSeconds() - beginProcessor);
  }
  std::printf("%-20s %-4s %8.3f ms %7.1f GF/s %6.1f GB/s; a core: %8.3f ms "
              "%6.1f GF/s; compiled in %3.0f ms\n",
              item.title().c_str(), item.results.front().element.c_str(),
              least * 1e3, item.flops / least * 1e-9,
              double(bytes) / least * 1e-9, leastProcessor * 1e3,
              item.flops / leastProcessor * 1e-9, compiled * 1e3);
  std::fflush(stdout);
  return true;
}

struct Sizes {
  int64_t batch, sequence, heads, keyHeads, size, vocabulary;
  std::optional<int64_t> window;
};

/// Attention and its derivative, with this window.
std::vector<KernelCase> attentionCases(const Sizes &s,
                                       const std::string &element,
                                       std::optional<int64_t> window) {
  Tensor q{{s.batch, s.sequence, s.heads, s.size}, element};
  Tensor k{{s.batch, s.sequence, s.keyHeads, s.size}, element};
  Tensor line{{s.batch, s.heads, s.sequence}, "f32"};
  auto mask = mlir::rota::AttentionMask::of(s.sequence, window,
                                            /*bidirectional=*/false);
  double product = 2.0 * s.batch * s.heads * s.size * mask.pairs();
  std::string form = " scale = 0.125";
  if (window)
    form += " window = " + std::to_string(*window);
  std::vector<KernelCase> cases = {
      {"attention", form, {q, k, k}, {q, line}, 2 * product},
      {"attention_grad", form, {q, q, k, k, q, line}, {q, k, k}, 5 * product}};
  for (KernelCase &item : cases)
    item.window = window;
  return cases;
}

std::vector<KernelCase> cases(const Sizes &s, const std::string &element) {
  std::vector<KernelCase> cases = attentionCases(s, element, std::nullopt);
  auto add = [&](const std::vector<KernelCase> &more) {
    cases.insert(cases.end(), more.begin(), more.end());
    return cases;
  };
  if (s.window)
    return add(attentionCases(s, element, s.window));
  Tensor q{{s.batch, s.sequence, s.heads, s.size}, element};
  Tensor angles{{s.sequence, s.size / 2, 2}, "f32"};
  Tensor tokens{{s.batch, s.sequence}, "i32"};
  Tensor rows{{s.batch, s.sequence}, "f32"}, scalar{{}, "f32"};
  Tensor logits{{s.batch, s.sequence, s.vocabulary}, element};
  Tensor table{{s.vocabulary, s.heads * s.size}, element};
  Tensor gradient{{s.vocabulary, s.heads * s.size}, "f32"};
  Tensor embedded{{s.batch, s.sequence, s.heads * s.size}, element};
  return add({
      {"rope", "", {q, angles}, {q}, 3.0 * q.count(), false},
      {"embedding", "", {tokens, table}, {embedded}},
      {"embedding_grad", "", {tokens, embedded}, {gradient}, 0, true, true},
      {"cross_entropy", "", {logits, tokens}, {scalar, scalar, rows}},
      {"cross_entropy_grad", "", {scalar, logits, tokens, rows}, {logits}},
  });
}

} // namespace

int main(int argc, char **argv) {
  auto argument = [&](int i, int64_t otherwise) {
    return argc > i ? std::atoll(argv[i]) : otherwise;
  };
  int64_t threads = argument(1, rota::availableCores());
  Sizes sizes{argument(2, 4),
              argument(3, 512),
              argument(4, 12),
              argument(5, 12),
              argument(6, 64),
              32000,
              {}};
  if (argc > 7)
    sizes.window = argument(7, 0);
  rota::Cores cores(int(std::max<int64_t>(threads, 1)));
  rota::ComputeToken token(cores);
  RotaContext context;
  context.cores = &cores;
  for (const char *element : {"f32", "bf16"})
    for (const KernelCase &item : cases(sizes, element))
      if (!measure(&context, item, sizes.vocabulary))
        return 1;
}
