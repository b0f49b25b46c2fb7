// SPDX-License-Identifier: Apache-2.0
//
// A reference interpreter of rota IR: readable, slow, in f64. It is the ground
// truth for derivatives, fusion and kernels, so each op is one function that
// follows the formula in the op's description and shares nothing with the
// compiler's own rules.
#ifndef ROTA_TEST_INTERPRETER_INTERPRETER_H
#define ROTA_TEST_INTERPRETER_INTERPRETER_H

#include "ir/rota/Rota.h"
#include "test/interpreter/Tensor.h"

#include "llvm/ADT/StringMap.h"

#include <functional>
#include <optional>

namespace rota::interpreter {

struct Options {
  /// Round each value of a bf16 type to bf16. Without it bf16 computes in f64
  /// as well, which keeps derivatives exact.
  bool roundBF16 = false;
};

/// The parameters and gradients of `rota.read` and `rota.accumulate` in one
/// call, by the parameter's symbol; not owned.
struct Environment {
  std::map<std::string, const Tensor *> parameters;
  std::map<std::string, Tensor *> gradients;
  /// The tokens [batch, sequence] of the whole microbatch, for positions in
  /// documents; may be null.
  const Tensor *tokens = nullptr;
  /// Receives the values that `rota.name` names; may be null.
  Tensors *named = nullptr;
  /// By the name of an auxiliary loss: its sums so far, and the cotangent that
  /// they have in this step. Null where functions have no such loss.
  std::map<std::string, double> *auxiliarySums = nullptr;
  const std::map<std::string, double> *auxiliaryCotangents = nullptr;
  /// By the name of an observation: its sums so far, null where nobody reads
  /// them, and their means over the step's microbatches.
  Tensors *observedSums = nullptr;
  const Tensors *observedMeans = nullptr;
};

/// The values of one block while it runs.
class Frame {
public:
  Frame(const Options &options, Environment &environment)
      : options(options), environment(environment) {}

  const Tensor &get(mlir::Value value) const;
  /// Sets a value, rounded as its type and the options ask.
  void set(mlir::Value value, Tensor tensor);
  const Options &getOptions() const { return options; }
  Environment &getEnvironment() { return environment; }

private:
  const Options &options;
  Environment &environment;
  llvm::DenseMap<mlir::Value, Tensor> values;
};

/// The functions that run ops, by op name.
class OpTable {
public:
  using Function =
      std::function<llvm::LogicalResult(mlir::Operation *, Frame &)>;

  /// Every op that the interpreter knows.
  static const OpTable &get();

  /// Null when the op is not known.
  const Function *lookup(mlir::Operation *op) const;

  template <typename Op>
  void add(llvm::LogicalResult (*function)(Op, Frame &)) {
    functions[Op::getOperationName()] = [function](mlir::Operation *op,
                                                   Frame &frame) {
      return function(llvm::cast<Op>(op), frame);
    };
  }
  template <typename Op> void add(void (*function)(Op, Frame &)) {
    functions[Op::getOperationName()] = [function](mlir::Operation *op,
                                                   Frame &frame) {
      function(llvm::cast<Op>(op), frame);
      return llvm::success();
    };
  }
  /// An op that applies `function` to each element.
  template <typename Op>
  void addElementwise(double (*function)(double a, double b, double c)) {
    functions[Op::getOperationName()] = [function](mlir::Operation *op,
                                                   Frame &frame) {
      runElementwise(op, function, frame);
      return llvm::success();
    };
  }

private:
  static void runElementwise(mlir::Operation *op,
                             double (*function)(double, double, double),
                             Frame &frame);

  llvm::StringMap<Function> functions;
};

/// The groups of ops that make the table, a file each.
void addElementwiseOps(OpTable &table);
void addTensorOps(OpTable &table);
void addNormalizationOps(OpTable &table);
void addAttentionOps(OpTable &table);
void addModelOps(OpTable &table);
void addVocabularyOps(OpTable &table);
void addExpertOps(OpTable &table);

/// Runs one op. Emits an error and fails when it does not know it.
llvm::LogicalResult runOp(mlir::Operation *op, Frame &frame);

/// Checks that `function` has a body of one block and arguments of these
/// shapes; emits an error and fails otherwise.
llvm::LogicalResult verifyCall(mlir::func::FuncOp function,
                               llvm::ArrayRef<Tensor> arguments);

/// Runs the ops of `block` with these arguments; returns its terminator's
/// operands. Emits an error and fails at an op that it does not know.
llvm::FailureOr<llvm::SmallVector<Tensor>>
runBlock(mlir::Block &block, llvm::ArrayRef<Tensor> arguments,
         Environment &environment, const Options &options = {});

/// Runs a function. Emits an error and fails when the arguments are not those
/// of the function or at an op that it does not know.
llvm::FailureOr<llvm::SmallVector<Tensor>>
runFunction(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> arguments,
            Environment &environment, const Options &options = {});

/// runFunction for a function that uses no parameters.
llvm::FailureOr<llvm::SmallVector<Tensor>>
runFunction(mlir::func::FuncOp function, llvm::ArrayRef<Tensor> arguments,
            const Options &options = {});

/// The shape of a value; values are ranked tensors of static shape.
llvm::ArrayRef<int64_t> shapeOf(mlir::Value value);

} // namespace rota::interpreter

#endif // ROTA_TEST_INTERPRETER_INTERPRETER_H
