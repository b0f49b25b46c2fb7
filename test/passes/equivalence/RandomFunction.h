// SPDX-License-Identifier: Apache-2.0
//
// Random straight-line functions for tests that a pass keeps their meaning.
#ifndef ROTA_TEST_PASSES_EQUIVALENCE_RANDOMFUNCTION_H
#define ROTA_TEST_PASSES_EQUIVALENCE_RANDOMFUNCTION_H

#include "test/interpreter/GradientCheck.h"

namespace rota::interpreter {

/// Writes ops on values of four shapes: [rows, columns], [rows], [columns] and
/// scalars. Values stay between -1 and 1 or little beyond, and ops are smooth
/// but for comparisons and maxima.
class RandomFunction {
public:
  RandomFunction(uint64_t seed, int64_t rows, int64_t columns,
                 llvm::StringRef element);

  /// Takes `name` as a value of [rows, columns] (0), [rows] (1), [columns] (2)
  /// or a scalar (3).
  void addValue(std::string name, int shape);
  /// Adds an op on values so far; most have several uses before the end.
  void addOp();
  /// The text of the ops, a line each.
  const std::string &text() const { return ops; }
  /// A random value of the shape, one of the latest if there are any.
  std::string pick(int shape);
  std::string type(int shape) const;

private:
  std::string define(std::string op, int shape);
  void addUnary();
  void addBinary();
  void addSelect();
  void addReduction();
  void addBroadcast();
  int64_t below(int64_t end);

  Random random;
  int64_t rows, columns;
  std::string element;
  std::string ops;
  int count = 0;
  std::vector<std::string> values[4];
};

/// A function `f` of that many random ops with arguments of every shape and
/// several results.
std::string randomFunction(uint64_t seed, int ops, int64_t rows,
                           int64_t columns, llvm::StringRef element);

/// A model whose one kind of layer is that many random ops on its activation
/// and parameters of every shape, some named.
std::string randomModel(uint64_t seed, int ops, llvm::StringRef element);

} // namespace rota::interpreter

#endif // ROTA_TEST_PASSES_EQUIVALENCE_RANDOMFUNCTION_H
