// SPDX-License-Identifier: Apache-2.0
//
// A ring of two ranks on the emulator, with all checks: attention to a rank's
// own block and then to that of the other, and its derivative, against a plain
// loop over both blocks in f64.
#include "test/lowering/gpu/EmulatedOp.h"
#include "test/lowering/kernels/AttentionTesting.h"

#include <map>

using namespace rota::testing;
using rota::test::EmulatedOp;

namespace {

/// One block of two, in which positions are [position, head].
struct RingCase {
  AttentionSizes both; // of one sequence in both blocks
  const char *type;
  /// Whether the number of the keys' block is known when the kernel runs.
  bool hasKeyPosition = false;

  AttentionSizes block() const {
    AttentionSizes s = both;
    s.sequence /= 2;
    return s;
  }
  /// "%a0, ... scale = ..." of an op, with the types of operands and results.
  std::string source(const std::string &name, unsigned plain, bool isOther,
                     bool hasPrevious, std::vector<std::string> operands,
                     const std::string &results, unsigned resultCount) const {
    std::string arguments, types, uses;
    if (isOther)
      operands.insert(operands.end(), hasKeyPosition ? 2 : 1, "tensor<i32>");
    for (unsigned i = 0; i < operands.size(); ++i) {
      std::string value = "%a" + std::to_string(i), comma = i ? ", " : "";
      arguments += comma + value + ": " + operands[i];
      types += comma + operands[i];
      if (i < plain)
        uses += comma + value;
    }
    auto value = [&](unsigned i) { return "%a" + std::to_string(i); };
    unsigned next = plain;
    if (hasPrevious) {
      uses += " previous " + value(next) + ", " + value(next + 1);
      next += 2;
    }
    if (isOther)
      uses +=
          " position " + value(next) +
          (hasKeyPosition ? " key_position " + value(next + 1) : " behind = 1");
    uses += " scale = 0.3";
    if (both.form.window)
      uses += " window = " + std::to_string(both.form.window);
    if (both.form.softCap != 0)
      uses += " soft_cap = " + std::to_string(both.form.softCap);
    return "func.func @f(" + arguments +
           ") {\n%r:" + std::to_string(resultCount) + " = rota." + name + " " +
           uses + " : (" + types + ") -> (" + results + ")\nreturn }";
  }
  std::string forward(bool isOther, const char *result) const {
    AttentionSizes s = block();
    std::vector<std::string> operands = {tensor(s.query(), type),
                                         tensor(s.key(), type),
                                         tensor(s.value(), type)};
    std::string lines = tensor(s.rows(), "f32");
    if (isOther)
      operands.insert(operands.end(), {tensor(s.output(), "f32"), lines});
    return source("attention", 3, isOther, isOther, operands,
                  tensor(s.output(), result) + ", " + lines, 2);
  }
  std::string backward(bool isOther) const {
    AttentionSizes s = block();
    std::string q = tensor(s.query(), type), k = tensor(s.key(), type),
                v = tensor(s.value(), type), o = tensor(s.output(), type);
    return source("attention_grad", 6, isOther, false,
                  {o, q, k, v, o, tensor(s.rows(), "f32")},
                  tensor(s.query(), "f32") + ", " + k + ", " + v, 3);
  }
};

/// Ops by their sources: those of both ranks are the same.
using Ops = std::map<std::string, std::unique_ptr<EmulatedOp>>;

void run(Ops &ops, const std::string &source,
         const std::vector<Buffer *> &buffers) {
  std::unique_ptr<EmulatedOp> &op = ops[source];
  if (!op)
    op = EmulatedOp::create(source);
  ASSERT_TRUE(op) << source;
  std::vector<char *> pointers;
  for (Buffer *buffer : buffers)
    pointers.push_back(static_cast<char *>(buffer->data()));
  for (const std::string &line : op->run(pointers, /*seed=*/3))
    ADD_FAILURE() << line << "\n" << source;
}

/// What one rank has and computes.
struct RingRank {
  RingRank(const RingCase &c, Ops &ops, int number)
      : c(c), ops(ops), s(c.block()), number("i32", 1), other("i32", 1),
        q(c.type, s.queries()), k(c.type, s.keys()), v(c.type, s.values()),
        dout(c.type, s.outputs()), out(c.type, s.outputs()),
        wide("f32", s.outputs()), line("f32", s.lines()), lse("f32", s.lines()),
        dq("f32", s.queries()), dqOther("f32", s.queries()),
        dk(c.type, s.keys()), dv(c.type, s.values()), dkOther(c.type, s.keys()),
        dvOther(c.type, s.values()) {
    this->number.set(0, number);
    other.set(0, 1 - number);
  }
  std::vector<Buffer *> withPosition(std::vector<Buffer *> operands,
                                     const std::vector<Buffer *> &results) {
    operands.push_back(&number);
    if (c.hasKeyPosition)
      operands.push_back(&other);
    operands.insert(operands.end(), results.begin(), results.end());
    return operands;
  }
  void forward(RingRank &keys) {
    run(ops, c.forward(false, "f32"), {&q, &k, &v, &wide, &line});
    run(ops, c.forward(true, c.type),
        withPosition({&q, &keys.k, &keys.v, &wide, &line}, {&out, &lse}));
  }
  void backward(RingRank &keys) {
    run(ops, c.backward(false), {&dout, &q, &k, &v, &out, &lse, &dq, &dk, &dv});
    run(ops, c.backward(true),
        withPosition({&dout, &q, &keys.k, &keys.v, &out, &lse},
                     {&dqOther, &dkOther, &dvOther}));
  }

  RingCase c;
  Ops &ops;
  AttentionSizes s;
  Buffer number, other, q, k, v, dout, out, wide, line, lse;
  Buffer dq, dqOther, dk, dv, dkOther, dvOther; // own block, the other's
};

/// Elements [block][rest] of both blocks.
void takeBlock(const Buffer &both, int block, int64_t count, Buffer &to) {
  for (int64_t i = 0; i < count; ++i)
    to.set(i, both[block * count + i]);
}

class GpuRing : public testing::TestWithParam<RingCase> {};

TEST_P(GpuRing, IsAttentionToBothBlocks) {
  const RingCase &c = GetParam();
  AttentionSizes s = c.block();
  AttentionTensors tensors(c.both, c.type);
  AttentionReference expected(c.both, tensors);
  Ops ops;
  std::vector<RingRank> ranks = {RingRank(c, ops, 0), RingRank(c, ops, 1)};
  for (int r : {0, 1}) {
    takeBlock(tensors.q, r, s.queries(), ranks[r].q);
    takeBlock(tensors.k, r, s.keys(), ranks[r].k);
    takeBlock(tensors.v, r, s.values(), ranks[r].v);
    takeBlock(tensors.dout, r, s.outputs(), ranks[r].dout);
  }
  bool isBf16 = std::string(c.type) == "bf16";
  for (int r : {0, 1}) {
    ranks[r].forward(ranks[1 - r]);
    ranks[r].backward(ranks[1 - r]);
    auto part = [&](const std::vector<double> &all, int64_t count) {
      return std::vector<double>(all.begin() + r * count,
                                 all.begin() + (r + 1) * count);
    };
    ranks[r].out.expectNear(part(expected.out, s.outputs()),
                            isBf16 ? 0x1p-8 : 1e-5, "output");
    std::vector<double> lines;
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.sequence; ++i)
        lines.push_back(expected.lse[h * c.both.sequence + r * s.sequence + i]);
    ranks[r].lse.expectNear(lines, 1e-5, "logsumexp");
    Buffer &dq = ranks[r].dq;
    for (int64_t i = 0; i < s.queries(); ++i)
      dq.set(i, dq[i] + ranks[r].dqOther[i]);
    dq.expectNear(part(expected.dq, s.queries()), isBf16 ? 2e-2 : 2e-5,
                  "query cotangent");
  }
  // Keys of block 0 have queries of both ranks, those of block 1 of one.
  auto expectSum = [&](Buffer RingRank::*own, Buffer RingRank::*other,
                       const std::vector<double> &all, int64_t count) {
    for (int64_t i = 0; i < 2 * count; ++i) {
      int r = int(i / count);
      double sum = (ranks[r].*own)[i % count];
      if (r == 0)
        sum += (ranks[1].*other)[i % count];
      double tolerance = isBf16 ? 3e-2 : 2e-5;
      ASSERT_NEAR(sum, all[i], tolerance * std::max(1.0, std::abs(all[i])))
          << i;
    }
  };
  expectSum(&RingRank::dk, &RingRank::dkOther, expected.dk, s.keys());
  expectSum(&RingRank::dv, &RingRank::dvOther, expected.dv, s.values());
  // Rank 0 sees none of block 1: the exact numbers before, and zeros.
  EXPECT_EQ(ranks[0].lse.raw(), ranks[0].line.raw());
  if (!isBf16)
    EXPECT_EQ(ranks[0].out.raw(), ranks[0].wide.raw());
  for (int64_t i = 0; i < s.keys(); ++i)
    ASSERT_EQ(ranks[0].dkOther[i], 0.0) << i;
  for (int64_t i = 0; i < s.queries(); ++i)
    ASSERT_EQ(ranks[0].dqOther[i], 0.0) << i;
}

INSTANTIATE_TEST_SUITE_P(
    All, GpuRing,
    testing::Values(
        RingCase{{1, 2 * 37, 4, 2, 16}, "f32"},
        RingCase{{1, 2 * 70, 2, 1, 20}, "f32", true},
        RingCase{{1, 2 * 40, 2, 1, 17}, "f32"},
        RingCase{{1, 2 * 70, 2, 1, 20, {.window = 83}}, "f32"},
        RingCase{{1, 2 * 70, 2, 1, 20, {.softCap = 0.8}}, "bf16", true},
        RingCase{{1, 2 * 128, 2, 1, 64}, "bf16"},
        RingCase{{1, 2 * 150, 2, 1, 64}, "bf16", true},
        // No tile, or some, for a block of queries.
        RingCase{{1, 2 * 256, 1, 1, 64, {.window = 40}}, "bf16"},
        RingCase{{1, 2 * 300, 1, 1, 32, {.window = 150, .softCap = 0.8}},
                 "bf16"},
        RingCase{{1, 2 * 70, 2, 1, 80}, "bf16"},
        RingCase{{1, 2 * 40, 1, 1, 136}, "bf16", true}));

} // namespace
