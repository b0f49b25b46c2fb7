// SPDX-License-Identifier: Apache-2.0
//
// Sharding rules of the rota ops as factors. A factor is indivisible where a
// part of it does not compute a part of the result by the same op: a normalized
// or contracted-and-normalized dimension, one that positions or row numbers
// refer to, and what a reshape neither keeps, splits nor merges.
#include "ir/rota/Rules.h"
#include "ir/rota/sharding/RuleBuilder.h"

#include <numeric>

using namespace mlir;
using namespace mlir::rota;

using Dimensions = FactorRule::Dimensions;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

FactorRule rota::elementwiseFactorRule(
    Operation *op,
    std::initializer_list<std::initializer_list<int64_t>> linear) {
  RuleBuilder builder;
  for (auto operands : linear)
    builder.linear(operands);
  auto rankOf = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor ? tensor.getRank() : 0;
  };
  Dimensions dimensions;
  if (op->getNumResults() != 0 && rankOf(op->getResult(0).getType()) != 0)
    dimensions = builder.factors(shapeOf(op->getResult(0)));
  auto of = [&](Value value) {
    return rankOf(value.getType()) == 0 ? Dimensions() : dimensions;
  };
  return builder.finish(llvm::map_to_vector(op->getOperands(), of),
                        llvm::map_to_vector(op->getResults(), of));
}

FactorRule rota::withPadding(FactorRule rule) {
  rule.padded.resize(rule.sizes.size());
  std::iota(rule.padded.begin(), rule.padded.end(), 0);
  return rule;
}

FactorRule ReadOp::getFactorRule() {
  RuleBuilder builder;
  return withPadding(
      builder.finish({}, {builder.factors(shapeOf(getResult()))}));
}

FactorRule AccumulateOp::getFactorRule() {
  RuleBuilder builder;
  return withPadding(
      builder.finish({builder.factors(shapeOf(getValue()))}, {}));
}

/// Parts of the sum are parts of the loss.
FactorRule AuxiliaryLossOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  return builder.finish({Dimensions()}, {});
}

FactorRule AuxiliaryCotangentOp::getFactorRule() {
  return RuleBuilder().finish({}, {Dimensions()});
}

FactorRule NameOp::getFactorRule() {
  return withPadding(elementwiseFactorRule(*this, {{0}}));
}

/// Linear in the operand that is gated.
FactorRule ActivationOp::getFactorRule() {
  return withPadding(getUp() ? elementwiseFactorRule(*this, {{1}})
                             : elementwiseFactorRule(*this));
}

FactorRule ActivationGradOp::getFactorRule() {
  return withPadding(elementwiseFactorRule(*this, {{0}}));
}

FactorRule EinsumOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  builder.linear({1});
  llvm::SmallDenseMap<char, int64_t> factors;
  auto dimensions = [&](StringRef part, Value value) {
    Dimensions result;
    for (auto [letter, size] : llvm::zip(part, shapeOf(value))) {
      auto [it, isNew] = factors.try_emplace(letter, 0);
      if (isNew)
        it->second = builder.factor(size);
      result.push_back({it->second});
    }
    return result;
  };
  Letters letters = getLetters();
  Dimensions lhs = dimensions(letters.lhs, getLhs());
  Dimensions rhs = dimensions(letters.rhs, getRhs());
  return withPadding(
      builder.finish({lhs, rhs}, {dimensions(letters.result, getResult())}));
}

/// Walks both shapes from the major end. What remains of the two current
/// dimensions shares the factor of their greatest common divisor; where that is
/// 1 the dimensions up to the next common boundary are whole on either side.
FactorRule ReshapeOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  ArrayRef<int64_t> from = shapeOf(getInput()), to = shapeOf(getResult());
  Dimensions operand(from.size()), result(to.size());
  size_t i = 0, j = 0;
  int64_t left = from.empty() ? 1 : from[0], right = to.empty() ? 1 : to[0];
  auto nextLeft = [&] { left = ++i < from.size() ? from[i] : 1; };
  auto nextRight = [&] { right = ++j < to.size() ? to[j] : 1; };
  while (i < from.size() || j < to.size()) {
    if (i < from.size() && left == 1) {
      nextLeft();
    } else if (j < to.size() && right == 1) {
      nextRight();
    } else if (int64_t common = std::gcd(left, right); common > 1) {
      int64_t factor = builder.factor(common);
      operand[i].push_back(factor);
      result[j].push_back(factor);
      left /= common;
      right /= common;
    } else {
      // Coprime remainders: whole until the products of both sides agree.
      operand[i].push_back(builder.factor(left, /*divisible=*/false));
      result[j].push_back(builder.factor(right, /*divisible=*/false));
      int64_t leftProduct = left, rightProduct = right;
      while (leftProduct != rightProduct) {
        if (leftProduct < rightProduct) {
          nextLeft();
          leftProduct *= left;
          if (left != 1)
            operand[i].push_back(builder.factor(left, /*divisible=*/false));
        } else {
          nextRight();
          rightProduct *= right;
          if (right != 1)
            result[j].push_back(builder.factor(right, /*divisible=*/false));
        }
      }
      nextLeft();
      nextRight();
    }
  }
  return builder.finish({operand}, {result});
}

/// Parts of a sum are summed over ranks where that is best, a maximum at once.
FactorRule ReduceOp::getFactorRule() {
  RuleBuilder builder;
  Dimensions operand = builder.factors(shapeOf(getInput()));
  if (getKind() == ReduceKind::Sum)
    builder.linear({0});
  else
    for (int64_t dim : getDims())
      builder.combine(operand[dim].front());
  Dimensions result;
  for (auto [dim, factors] : llvm::enumerate(operand))
    if (!llvm::is_contained(getDims(), int64_t(dim)))
      result.push_back(factors);
  return builder.finish({operand}, {result});
}

FactorRule BroadcastOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  Dimensions result = builder.factors(shapeOf(getResult()));
  Dimensions operand;
  for (int64_t dim : getDims())
    operand.push_back(result[dim]);
  return builder.finish({operand}, {result});
}

namespace {
/// A tensor and its parts along `dim`, which is whole everywhere.
struct SplitFactors {
  Dimensions whole;
  SmallVector<Dimensions> parts;

  SplitFactors(RuleBuilder &builder, Value value, ValueRange values,
               int64_t dim) {
    for (auto [index, size] : llvm::enumerate(shapeOf(value)))
      whole.push_back({builder.factor(size, int64_t(index) != dim)});
    for (Value part : values) {
      parts.push_back(whole);
      parts.back()[dim] = {
          builder.factor(shapeOf(part)[dim], /*divisible=*/false)};
    }
  }
};
} // namespace

FactorRule SplitOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  SplitFactors of(builder, getInput(), getParts(), getDim());
  return builder.finish({of.whole}, of.parts);
}

FactorRule ConcatOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear(llvm::to_vector(llvm::seq<int64_t>(getParts().size())));
  SplitFactors of(builder, getResult(), getParts(), getDim());
  return builder.finish(of.parts, {of.whole});
}

FactorRule RMSNormOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({1});
  Dimensions rows = builder.rowFactors(shapeOf(getInput()));
  return builder.finish({rows, {rows.back()}}, {rows});
}

FactorRule RMSNormGradOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  Dimensions rows = builder.rowFactors(shapeOf(getInput()));
  Dimensions gain{rows.back()};
  return builder.finish({rows, rows, gain}, {rows, gain});
}

/// Its elements depend on their position, so it is whole everywhere.
FactorRule RotaryTableOp::getFactorRule() {
  RuleBuilder builder;
  Dimensions table;
  for (int64_t size : shapeOf(getResult()))
    table.push_back({builder.factor(size, /*divisible=*/false)});
  return builder.finish({}, {table});
}

/// Row p of the operand uses row p of the table, so both may be split together
/// when the table has no more rows.
FactorRule RopeOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  ArrayRef<int64_t> shape = shapeOf(getInput()), table = shapeOf(getTable());
  bool together = shape[1] == table[0];
  int64_t batch = builder.factor(shape[0]);
  int64_t sequence = builder.factor(shape[1], together);
  int64_t heads = builder.factor(shape[2]);
  int64_t head = builder.factor(shape[3], /*divisible=*/false);
  int64_t positions = together ? sequence : builder.factor(table[0], false);
  int64_t pairs = builder.factor(table[1], /*divisible=*/false);
  int64_t parts = builder.factor(table[2], /*divisible=*/false);
  Dimensions operand{{batch}, {sequence}, {heads}, {head}};
  return builder.finish({operand, {{positions}, {pairs}, {parts}}}, {operand});
}

namespace {
/// The dimensions of attention's operands. Query heads are key heads times the
/// size of a group; the mask refers to positions and the softmax to a whole
/// row, so the sequence is split in a ring alone.
struct AttentionFactors {
  Dimensions query, key, value, output, logsumexp, sinks;

  AttentionFactors(RuleBuilder &builder, Value q, Value v, bool ring) {
    ArrayRef<int64_t> shape = shapeOf(q), values = shapeOf(v);
    int64_t batch = builder.factor(shape[0]);
    int64_t sequence = builder.factor(shape[1], /*divisible=*/ring);
    int64_t keyHeads = builder.factor(values[2]);
    int64_t group = builder.factor(shape[2] / values[2]);
    int64_t head = builder.factor(shape[3], /*divisible=*/false);
    int64_t valueHead = builder.factor(values[3], /*divisible=*/false);
    query = {{batch}, {sequence}, {keyHeads, group}, {head}};
    key = {{batch}, {sequence}, {keyHeads}, {head}};
    value = {{batch}, {sequence}, {keyHeads}, {valueHead}};
    output = {{batch}, {sequence}, {keyHeads, group}, {valueHead}};
    logsumexp = {{batch}, {keyHeads, group}, {sequence}};
    sinks = {{keyHeads, group}};
  }

  /// `list`, and sinks where the op has them.
  SmallVector<Dimensions> withSinks(SmallVector<Dimensions> list,
                                    Value present) {
    if (present)
      list.push_back(sinks);
    return list;
  }

  /// `list`, and sinks and positions where the op has them.
  template <typename Op>
  SmallVector<Dimensions> withForm(SmallVector<Dimensions> list, Op op) {
    return withOffset(
        withOffset(withSinks(std::move(list), op.getSinks()), op.getPosition()),
        op.getKeyPosition());
  }
};
} // namespace

FactorRule AttentionOp::getFactorRule() {
  RuleBuilder builder;
  AttentionFactors of(builder, getQuery(), getValue(), getRing());
  SmallVector<Dimensions> operands{of.query, of.key, of.value};
  if (getPrevious())
    llvm::append_values(operands, of.output, of.logsumexp);
  return builder.finish(of.withForm(operands, *this),
                        {of.output, of.logsumexp});
}

/// The cotangent of sinks is a sum over batch and sequence.
FactorRule AttentionGradOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  AttentionFactors of(builder, getQuery(), getValue(), getRing());
  return builder.finish(
      of.withForm(
          {of.output, of.query, of.key, of.value, of.output, of.logsumexp},
          *this),
      of.withSinks({of.query, of.key, of.value}, getSinksCotangent()));
}

/// A token is a row number of the whole table. Parts of the table give parts of
/// a sum, in which each token's row is in one.
FactorRule EmbeddingOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({1});
  Dimensions result = builder.factors(shapeOf(getResult()));
  int64_t vocabulary = builder.vocabulary(shapeOf(getTable())[0]);
  return builder.finish(
      withOffset({{result[0], result[1]}, {{vocabulary}, result[2]}},
                 getOffset()),
      {result});
}

FactorRule EmbeddingGradOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({1});
  Dimensions rows = builder.factors(shapeOf(getCotangent()));
  int64_t vocabulary = builder.vocabulary(shapeOf(getResult())[0]);
  return builder.finish(withOffset({{rows[0], rows[1]}, rows}, getOffset()),
                        {{{vocabulary}, rows[2]}});
}

/// [batch, sequence, vocabulary], where a target is a number of the last.
static Dimensions logitFactors(RuleBuilder &builder, Value logits) {
  ArrayRef<int64_t> shape = shapeOf(logits);
  Dimensions dimensions = builder.factors(shape.drop_back());
  dimensions.push_back({builder.vocabulary(shape.back())});
  return dimensions;
}

/// Sum and weight are sums over batch and sequence. The vocabulary is not
/// summed over: parts of it are merged by `rota.cross_entropy_merge`.
FactorRule CrossEntropyOp::getFactorRule() {
  RuleBuilder builder;
  Dimensions logits = logitFactors(builder, getLogits());
  builder.combine(logits.back().front());
  Dimensions rows{logits[0], logits[1]};
  return builder.finish({logits, rows}, {{}, {}, rows});
}

FactorRule CrossEntropyGradOp::getFactorRule() {
  RuleBuilder builder;
  // In both cotangents together; that of rows comes last.
  if (getRowCotangent())
    builder.linear({0, int64_t(getNumOperands()) - 1});
  else
    builder.linear({0});
  Dimensions logits = logitFactors(builder, getLogits());
  Dimensions rows{logits[0], logits[1]};
  auto operands = withOffset({{}, logits, rows, rows}, getOffset());
  if (getRowCotangent())
    operands.push_back(rows);
  return builder.finish(operands, {logits});
}

FactorRule CrossEntropyShardOp::getFactorRule() {
  RuleBuilder builder;
  Dimensions logits = builder.rowFactors(shapeOf(getLogits()));
  Dimensions rows{logits[0], logits[1]};
  int64_t pair = builder.factor(2, /*divisible=*/false);
  return builder.finish({logits, rows, {}}, {{rows[0], rows[1], {pair}}});
}

FactorRule CrossEntropyMergeOp::getFactorRule() {
  RuleBuilder builder;
  Dimensions parts = builder.rowFactors(shapeOf(getParts()));
  Dimensions rows{parts[0], parts[1]};
  return builder.finish({parts, rows}, {{}, {}, rows});
}
