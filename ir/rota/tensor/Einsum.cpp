// SPDX-License-Identifier: Apache-2.0
//
// The product of two tensors.
#include "ir/rota/OpFamily.h"

using namespace mlir;
using namespace mlir::rota;

EinsumOp::Letters EinsumOp::getLetters() {
  auto [operands, result] = getEquation().split("->");
  auto [lhs, rhs] = operands.split(',');
  return {lhs, rhs, result};
}

LogicalResult EinsumOp::verify() {
  Letters letters = getLetters();
  // C1: `letters,letters->letters`, distinct in each.
  for (StringRef part : {letters.lhs, letters.rhs, letters.result}) {
    llvm::SmallDenseSet<char> seen;
    for (char letter : part)
      if (!llvm::isAlpha(letter) || !seen.insert(letter).second)
        return emitOpError("expected an equation 'letters,letters->letters' "
                           "with distinct letters in each, got '")
               << getEquation() << "'";
  }
  // C2: letters and ranks agree; a letter has one size.
  DenseMap<char, int64_t> sizes;
  auto bind = [&](StringRef part, Value value) -> LogicalResult {
    if (int64_t(part.size()) != tensorOf(value).getRank())
      return emitOpError("expected rank ")
             << part.size() << " for '" << part << "', got " << value.getType();
    for (auto [letter, size] : llvm::zip(part, shapeOf(value))) {
      auto [it, isNew] = sizes.try_emplace(letter, size);
      if (!isNew && it->second != size)
        return emitOpError("expected one size for '")
               << StringRef(&letter, 1) << "', got " << it->second << " and "
               << size;
    }
    return success();
  };
  if (failed(bind(letters.lhs, getLhs())) ||
      failed(bind(letters.rhs, getRhs())) ||
      failed(bind(letters.result, getResult())))
    return failure();
  // C3: every letter stands twice at least, in the right places.
  for (char letter : letters.result)
    if (!letters.lhs.contains(letter) && !letters.rhs.contains(letter))
      return emitOpError("expected '")
             << StringRef(&letter, 1) << "' in an operand of '" << getEquation()
             << "'";
  for (char letter : letters.lhs)
    if (!letters.rhs.contains(letter) && !letters.result.contains(letter))
      return emitOpError("expected '")
             << StringRef(&letter, 1)
             << "' in the other operand or the result of '" << getEquation()
             << "'";
  for (char letter : letters.rhs)
    if (!letters.lhs.contains(letter) && !letters.result.contains(letter))
      return emitOpError("expected '")
             << StringRef(&letter, 1)
             << "' in the other operand or the result of '" << getEquation()
             << "'";
  // C4: one element type.
  return checkElement(*this, "the right operand", getRhs(),
                      elementOf(getLhs()));
}

/// y = einsum "A,B->R" a, b gives da = einsum "R,B->A" dy, b and
/// db = einsum "R,A->B" dy, a. The operands' element type is kept in the
/// product; a parameter's gradient leaves it unrounded.
FailureOr<Cotangents> EinsumOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                    ArrayRef<bool> needed) {
  Letters letters = getLetters();
  Value dy =
      castElements(builder, getLoc(), cotangents[0], elementOf(getLhs()));
  auto product = [&](Value other, StringRef otherLetters, Value operand,
                     StringRef operandLetters) -> Value {
    auto type = tensorOf(operand).clone(cotangentElement(operand));
    std::string equation =
        (letters.result + "," + otherLetters + "->" + operandLetters).str();
    return EinsumOp::create(builder, getLoc(), type, equation, dy, other);
  };
  Cotangents result(getNumOperands());
  if (needed[0])
    result[0] = product(getRhs(), letters.rhs, getLhs(), letters.lhs);
  if (needed[1])
    result[1] = product(getLhs(), letters.lhs, getRhs(), letters.rhs);
  return result;
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

/// A multiply-add per combination of letters. Letters of both operands and the
/// result count products; those of one operand are its rows or columns.
Cost EinsumOp::getCost() {
  Letters letters = getLetters();
  ProductSize product;
  for (auto [letter, size] : llvm::zip(letters.lhs, shapeOf(getLhs()))) {
    bool isShared = letters.rhs.contains(letter);
    double &dimension = !letters.result.contains(letter) ? product.k
                        : isShared                       ? product.batch
                                                         : product.m;
    dimension *= double(size);
  }
  for (auto [letter, size] : llvm::zip(letters.rhs, shapeOf(getRhs())))
    if (!letters.lhs.contains(letter))
      product.n *= double(size);
  return productCost(*this, product);
}

TaskForm EinsumOp::getTaskForm() { return TaskForm::Product; }
bool EinsumOp::canAccumulate(unsigned) { return true; }
