// SPDX-License-Identifier: Apache-2.0
//
// Random functions over tensors of any rank that use every op of a model: what
// the sharding passes are tested with.
#ifndef ROTA_TEST_PASSES_EQUIVALENCE_RANDOMTENSORS_H
#define ROTA_TEST_PASSES_EQUIVALENCE_RANDOMTENSORS_H

#include "test/interpreter/GradientCheck.h"

#include <deque>

namespace rota::interpreter {

/// Writes ops on values of rank 0 to 5. Dimensions have few different sizes, so
/// that shapes match often. Values are f64, except tokens. They stay near 1:
/// larger ones are scaled by a constant, which keeps them sums over ranks, or
/// go through tanh. The text of n ops is the beginning of the text of n + 1
/// with the same seed.
class RandomTensors {
public:
  /// Without `isWhole`, only ops that have a derivative and need no tokens.
  RandomTensors(uint64_t seed, bool isWhole);

  using Shape = llvm::SmallVector<int64_t, 4>;
  /// A value and the approximate size of its elements.
  struct Value {
    std::string name;
    Shape shape;
    double size;
  };

  /// Batch, length, width and vocabulary; arguments have these sizes.
  int64_t batch, length, width, vocabulary;

  /// Takes `name` as a value of uniform elements from -1 to 1.
  void addValue(std::string name, const Shape &shape);
  /// Adds an op, and ops that make its operands.
  void addOp();
  /// A value, one of the latest half of the time.
  const Value &pick();
  /// A value of the shape; null when there is none.
  const Value *find(llvm::ArrayRef<int64_t> shape);
  /// The text of the ops, a line each.
  const std::string &text() const { return ops; }

  int64_t below(int64_t end);

private:
  const Value &define(std::string op, Shape shape, double size);
  std::string fresh() { return "%v" + std::to_string(count++); }
  const Value &like(const Value &value);
  std::string splat(llvm::ArrayRef<int64_t> shape, double element);
  std::string gainOf(const Value &value);

  void addElementwise();
  void addSmooth();
  void addSelect();
  void addConstant();
  void addEinsum();
  void addReduction();
  void addBroadcast();
  void addReshape();
  void addNorm();
  void addSplit();
  void addGate();
  void addAttention();
  std::string attentionForm();
  void addRope();
  void addEmbedding();
  void addCrossEntropy();

  Random random;
  bool isWhole;
  std::string ops;
  int count = 0;
  std::deque<Value> values; // stay in place
};

/// `tensor<2x3xf64>`.
std::string tensorType(llvm::ArrayRef<int64_t> shape,
                       llvm::StringRef element = "f64");

struct RandomModule {
  std::string text;
  /// Tokens are below this.
  int64_t vocabulary;
};

/// A function `f` of that many random ops and their helpers: arguments of each
/// kind, the last two tokens and targets, parameters that it reads and adds
/// gradients to, several results.
RandomModule randomTensorFunction(uint64_t seed, int ops);

/// A model with one kind of layer of that many random ops on its activation and
/// parameters, an embedding, and a cross-entropy loss with tied weights.
RandomModule randomTensorModel(uint64_t seed, int ops);

} // namespace rota::interpreter

#endif // ROTA_TEST_PASSES_EQUIVALENCE_RANDOMTENSORS_H
