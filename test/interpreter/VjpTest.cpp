// SPDX-License-Identifier: Apache-2.0
//
// Every derivative rule against central finite differences in f64, at several
// shapes, in modules of type f64, f32 and bf16 (all computed in f64). One row
// of `cases` per op and shape: add one with each new differentiable op.
#include "test/interpreter/GradientCheck.h"
#include "test/interpreter/TestModule.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <gtest/gtest.h>

using namespace rota::interpreter;

namespace {

/// `$T` stands for the element type. Operands are uniform in [low, high);
/// integer operands from 0 to 2.
struct Case {
  std::string name;
  std::string arguments, op, results;
  std::vector<bool> weighed = {true};   // results that have a cotangent
  std::vector<bool> constant = {false}; // operands that have no derivative
  double low = -2, high = 2;
};

Case elementwise(llvm::StringRef op, unsigned operands, llvm::StringRef shape,
                 double low = -2, double high = 2) {
  std::string type = ("tensor<" + shape + "x$T>").str();
  Case result{(op + " " + shape).str(), "", op.str(), type};
  const char *names[] = {"%a", "%b", "%c"};
  for (unsigned i = 0; i < operands; ++i) {
    std::string comma = i ? ", " : "";
    result.arguments += comma + names[i] + ": " + type;
    result.op += (i ? ", " : " ") + std::string(names[i]);
  }
  result.op += " : " + type;
  result.low = low;
  result.high = high;
  return result;
}

Case einsum(llvm::StringRef equation, llvm::StringRef lhs, llvm::StringRef rhs,
            llvm::StringRef result, llvm::StringRef resultElement = "$T") {
  std::string a = ("tensor<" + lhs + "x$T>").str();
  std::string b = ("tensor<" + rhs + "x$T>").str();
  std::string c = ("tensor<" + result + resultElement + ">").str();
  return {("einsum " + equation + " " + result + resultElement).str(),
          "%a: " + a + ", %b: " + b,
          ("rota.einsum \"" + equation + "\" %a, %b : (").str() + a + ", " + b +
              ") -> " + c,
          c};
}

/// Shapes as text; `form` stands after the scale, sinks are of `heads`, and
/// `documents` is the shape of positions in documents.
Case attention(llvm::StringRef query, llvm::StringRef key,
               llvm::StringRef value, llvm::StringRef output,
               llvm::StringRef logsumexp, llvm::StringRef form = "",
               llvm::StringRef heads = "", llvm::StringRef documents = "") {
  auto typeOf = [](llvm::StringRef shape, llvm::StringRef element) {
    return ("tensor<" + shape + "x" + element + ">").str();
  };
  std::string q = typeOf(query, "$T"), k = typeOf(key, "$T"),
              v = typeOf(value, "$T"), s = typeOf(heads, "$W"),
              d = typeOf(documents, "i32");
  std::string results = typeOf(output, "$T") + ", " + typeOf(logsumexp, "$W");
  bool sinks = !heads.empty(), packed = !documents.empty();
  return {
      ("attention " + query + " " + key + " " + form + heads + documents).str(),
      "%q: " + q + ", %k: " + k + ", %v: " + v + (sinks ? ", %s: " + s : "") +
          (packed ? ", %d: " + d : ""),
      "rota.attention %q, %k, %v" + std::string(sinks ? " sinks %s" : "") +
          (packed ? " documents %d" : "") + " scale = 0.7" + form.str() +
          " : (" + q + ", " + k + ", " + v + (sinks ? ", " + s : "") +
          (packed ? ", " + d : "") + ") -> (" + results + ")",
      results,
      {true, false}};
}

Case crossEntropy(llvm::StringRef rows, llvm::StringRef classes) {
  std::string x = ("tensor<" + rows + "x" + classes + "x$T>").str();
  std::string t = ("tensor<" + rows + "xi32>").str();
  std::string results =
      ("tensor<$W>, tensor<$W>, tensor<" + rows + "x$W>").str();
  return {("cross_entropy " + rows + " " + classes).str(),
          "%x: " + x + ", %t: " + t,
          "rota.cross_entropy %x, %t : (" + x + ", " + t + ") -> (" + results +
              ")",
          results,
          {true, false, true}};
}

Case embedding(llvm::StringRef rows, llvm::StringRef table,
               llvm::StringRef width) {
  std::string t = ("tensor<" + rows + "xi32>").str();
  std::string w = ("tensor<" + table + "x" + width + "x$T>").str();
  std::string y = ("tensor<" + rows + "x" + width + "x$T>").str();
  return {("embedding " + rows + " " + table).str(), "%t: " + t + ", %w: " + w,
          "rota.embedding %t, %w : (" + t + ", " + w + ") -> " + y, y};
}

Case rmsNorm(llvm::StringRef shape, llvm::StringRef width,
             llvm::StringRef centered = "") {
  std::string x = ("tensor<" + shape + "x$T>").str();
  std::string gain = ("tensor<" + width + "x$T>").str();
  return {("rms_norm " + centered + shape).str(),
          "%x: " + x + ", %gain: " + gain,
          "rota.rms_norm " + centered.str() +
              "%x, %gain epsilon = 1.0e-02 : " + x + ", " + gain,
          x};
}

Case rope(bool inverse, llvm::StringRef shape, llvm::StringRef table) {
  std::string x = ("tensor<" + shape + "x$T>").str();
  std::string t = ("tensor<" + table + "x$W>").str();
  std::string op = inverse ? "rota.rope inverse" : "rota.rope";
  return {op + " " + shape.str(),
          "%x: " + x + ", %t: " + t,
          op + " %x, %t : " + x + ", " + t,
          x,
          {true},
          {false, true}};
}

/// Routing of 6 experts; choices do not change within a difference.
Case route(llvm::StringRef form, bool bias) {
  std::string z = "tensor<2x3x6x$W>", b = "tensor<6x$W>";
  std::string results = "tensor<2x3x2x$W>, tensor<2x3x2xi32>";
  return {("route " + form).str(),
          "%z: " + z + (bias ? ", %b: " + b : ""),
          "rota.route %z " + std::string(bias ? "bias %b " : "") + form.str() +
              " : (" + z + (bias ? ", " + b : "") + ") -> (" + results + ")",
          results,
          {true, false},
          bias ? std::vector<bool>{false, true} : std::vector<bool>{false}};
}

/// Dispatch or combine of 3 tokens and 2 choices.
Case placed(llvm::StringRef op, bool weighed, llvm::StringRef from,
            llvm::StringRef to, llvm::StringRef form = "") {
  std::string a = ("tensor<" + from + "x$T>").str(), p = "tensor<2x3x2xi32>",
              w = "tensor<2x3x2x$W>", y = ("tensor<" + to + "x$T>").str();
  return {
      (op + (weighed ? " weights" : "") + form).str(),
      "%a: " + a + ", %p: " + p + (weighed ? ", %w: " + w : ""),
      (op + " %a, %p" + (weighed ? " weights %w" : "") + form + " : (").str() +
          a + ", " + p + (weighed ? ", " + w : "") + ") -> " + y,
      y};
}

/// Up to two rows for each of 4 experts.
Case grouped(llvm::StringRef weights, llvm::StringRef form) {
  std::string x = "tensor<2x8x3x$T>", c = "tensor<2x4xi32>",
              w = ("tensor<" + weights + "x$T>").str(), y = "tensor<2x8x5x$T>";
  return {("grouped_product " + form).str(),
          "%x: " + x + ", %w: " + w + ", %c: " + c,
          "rota.grouped_product %x, %w, %c " + form.str() + " : (" + x + ", " +
              w + ", " + c + ") -> " + y,
          y};
}

/// An op from one tensor to another with its own text between the types.
Case change(llvm::StringRef name, llvm::StringRef op, llvm::StringRef from,
            llvm::StringRef attributes, llvm::StringRef separator,
            llvm::StringRef to) {
  std::string a = ("tensor<" + from + ">").str();
  std::string b = ("tensor<" + to + ">").str();
  return {(name + " " + from + " " + to).str(), "%a: " + a,
          (op + " %a " + attributes + ": ").str() + a + separator.str() + b, b};
}

using Cases = std::vector<Case>;

void addElementwise(Cases &cases) {
  for (const char *shape : {"1", "3x5", "2x1x4"}) {
    for (const char *op : {"arith.addf", "arith.subf", "arith.mulf",
                           "arith.maximumf", "rota.activation silu",
                           "rota.activation gelu", "rota.activation gelu_tanh"})
      cases.push_back(elementwise(op, 2, shape));
    cases.push_back(elementwise("arith.divf", 2, shape, 0.5, 2));
    cases.push_back(elementwise("arith.negf", 1, shape));
    cases.push_back(elementwise("math.exp", 1, shape));
    cases.push_back(elementwise("math.log", 1, shape, 0.5, 2));
    cases.push_back(elementwise("math.sqrt", 1, shape, 0.5, 2));
    cases.push_back(elementwise("math.rsqrt", 1, shape, 0.5, 2));
    cases.push_back(elementwise("math.tanh", 1, shape));
    cases.push_back(elementwise("math.erf", 1, shape));
    for (const char *op : {"rota.activation silu", "rota.activation gelu",
                           "rota.activation gelu_tanh"})
      cases.push_back(elementwise(op, 1, shape));
    cases.push_back(elementwise("math.fma", 3, shape));
  }
  std::string type = "tensor<2x3x$T>";
  cases.push_back({"select",
                   "%c: tensor<2x3xi1>, %a: " + type + ", %b: " + type,
                   "arith.select %c, %a, %b : tensor<2x3xi1>, " + type, type});
  cases.push_back(
      {"name", "%a: " + type, "rota.name \"query_proj\" %a : " + type, type});
  cases.push_back({"constrain", "%a: " + type,
                   "rota.constrain %a <[[data], []]> : " + type, type});
}

void addShapes(Cases &cases) {
  cases.push_back(einsum("mk,kn->mn", "3x5", "5x2", "3x2x"));
  cases.push_back(einsum("mk,nk->nm", "3x5", "2x5", "2x3x"));
  cases.push_back(einsum("bsk,nk->bsn", "2x3x4", "5x4", "2x3x5x"));
  cases.push_back(einsum("bsk,nk->bsn", "2x3x4", "5x4", "2x3x5x", "$W"));
  cases.push_back(einsum("bsk,bsn->nk", "2x3x4", "2x3x5", "5x4x"));
  cases.push_back(einsum("bij,bjk->bik", "2x3x4", "2x4x1", "2x3x1x"));
  cases.push_back(einsum("i,i->", "7", "7", ""));
  cases.push_back(einsum("i,j->ij", "2", "3", "2x3x"));

  cases.push_back(
      change("reshape", "rota.reshape", "2x6x$T", "", " -> ", "3x4x$T"));
  for (const char *kind : {"sum", "max"}) {
    std::string op = std::string("rota.reduce ") + kind;
    cases.push_back(change(op, op, "3x5x$T", "dims [1]", " -> ", "3x$T"));
    cases.push_back(change(op, op, "2x3x4x$T", "dims [0, 2]", " -> ", "3x$T"));
    cases.push_back(change(op, op, "2x3x$T", "dims [0, 1]", " -> ", "$T"));
  }
  cases.push_back(change("broadcast", "rota.broadcast", "3x$T", "dims [1]",
                         " -> ", "2x3x4x$T"));
  cases.push_back(change("broadcast", "rota.broadcast", "2x4x$T", "dims [0, 2]",
                         " -> ", "2x3x4x$T"));
  cases.push_back(
      change("broadcast", "rota.broadcast", "$T", "dims []", " -> ", "2x3x$T"));
}

void addModelOps(Cases &cases) {
  cases.push_back(rmsNorm("3x5", "5"));
  cases.push_back(rmsNorm("2x3x7", "7"));
  cases.push_back(rmsNorm("2x3x7", "7", "centered "));
  for (std::vector<bool> weighed :
       {std::vector<bool>{true, true}, {false, true}})
    cases.push_back({"split", "%a: tensor<2x5x3x$T>",
                     "rota.split %a dim = 1 : (tensor<2x5x3x$T>) -> "
                     "(tensor<2x4x3x$T>, tensor<2x1x3x$T>)",
                     "tensor<2x4x3x$T>, tensor<2x1x3x$T>", weighed});
  cases.push_back({"concat", "%a: tensor<2x$T>, %b: tensor<1x$T>",
                   "rota.concat %a, %b dim = 0 : (tensor<2x$T>, tensor<1x$T>) "
                   "-> tensor<3x$T>",
                   "tensor<3x$T>"});
  cases.push_back(rope(false, "2x3x2x6", "5x3x2"));
  cases.push_back(rope(true, "1x4x3x2", "4x1x2"));
  cases.push_back(
      attention("2x5x2x3", "2x5x2x3", "2x5x2x3", "2x5x2x3", "2x2x5"));
  cases.push_back(
      attention("1x4x6x2", "1x4x2x2", "1x4x2x2", "1x4x6x2", "1x6x4"));
  cases.push_back(
      attention("1x1x1x4", "1x1x1x4", "1x1x1x4", "1x1x1x4", "1x1x1"));
  for (const char *form :
       {" window = 1", " window = 3", " window = 9", " soft_cap = 1.5",
        " bidirectional", " window = 2 bidirectional",
        " window = 2 soft_cap = 0.5 bidirectional"})
    for (const char *heads : {"", "4"})
      cases.push_back(attention("2x5x4x3", "2x5x2x3", "2x5x2x2", "2x5x4x2",
                                "2x4x5", form, heads));
  for (const char *form : {"", " window = 2"})
    for (const char *heads : {"", "4"})
      cases.push_back(attention("2x5x4x3", "2x5x2x3", "2x5x2x2", "2x5x4x2",
                                "2x4x5", form, heads, "2x5"));
  cases.push_back({"rope at positions",
                   "%x: tensor<2x3x2x6x$T>, %t: tensor<5x3x2x$W>, "
                   "%p: tensor<2x3xi32>",
                   "rota.rope %x, %t at %p : tensor<2x3x2x6x$T>, "
                   "tensor<5x3x2x$W>, tensor<2x3xi32>",
                   "tensor<2x3x2x6x$T>",
                   {true},
                   {false, true}});
  cases.push_back(embedding("2x5", "3", "4"));
  cases.push_back(embedding("1x1", "7", "1"));
  cases.push_back(crossEntropy("2x3", "5"));
  cases.push_back(crossEntropy("1x1", "3"));
}

void addExpertOps(Cases &cases) {
  for (const char *form :
       {"scaling = 1.0", "normalize scaling = 2.0", "sigmoid scaling = 1.5",
        "sigmoid normalize scaling = 1.0",
        "sigmoid normalize groups = 3 top_groups = 2 scaling = 1.0",
        "normalize groups = 2 top_groups = 1 scaling = 1.0"})
    for (bool bias : {false, true})
      cases.push_back(route(form, bias));
  for (bool weighed : {false, true}) {
    cases.push_back(placed("rota.dispatch", weighed, "2x3x4", "2x5x4"));
    cases.push_back(placed("rota.combine", weighed, "2x5x4", "2x3x4"));
    cases.push_back(
        placed("rota.dispatch", weighed, "2x3x4", "6x5x4", " parts = 3"));
    cases.push_back(
        placed("rota.combine", weighed, "6x5x4", "2x3x4", " parts = 3"));
  }
  for (const char *blocks : {"", "blocks = 2"}) {
    cases.push_back(grouped("4x3x5", blocks));
    cases.push_back(grouped("4x5x3", std::string("transposed ") + blocks));
    std::string x = "tensor<2x8x3x$T>";
    cases.push_back({std::string("grouped_bias ") + blocks,
                     "%x: " + x + ", %b: tensor<4x3x$T>, %c: tensor<2x4xi32>",
                     "rota.grouped_bias %x, %b, %c " + std::string(blocks) +
                         " : " + x + ", tensor<4x3x$T>, tensor<2x4xi32>",
                     x});
  }
}

Cases makeCases() {
  Cases cases;
  addElementwise(cases);
  addShapes(cases);
  addModelOps(cases);
  addExpertOps(cases);
  return cases;
}

const Cases cases = makeCases();

std::string withTypes(std::string text, llvm::StringRef type) {
  std::string wide = type == "bf16" ? "f32" : type.str();
  for (auto [from, to] :
       {std::pair<std::string, std::string>{"$T", type.str()}, {"$W", wide}})
    for (size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, from.size(), to);
  return text;
}

/// A function `f` with the one op of `test`.
std::string functionText(const Case &test, llvm::StringRef type) {
  std::string names, count;
  for (size_t i = 0; i < test.weighed.size(); ++i)
    names += (i ? ", %r#" : "%r#") + std::to_string(i);
  count = ":" + std::to_string(test.weighed.size());
  return withTypes("func.func @f(" + test.arguments + ") -> (" + test.results +
                       ") {\n  %r" + count + " = " + test.op + "\n  return " +
                       names + " : " + test.results + "\n}\n",
                   type);
}

llvm::SmallVector<Tensor> randomArguments(mlir::func::FuncOp function,
                                          const Case &test) {
  Random random(11);
  llvm::SmallVector<Tensor> arguments;
  for (mlir::Type type : function.getArgumentTypes()) {
    auto tensor = llvm::cast<mlir::RankedTensorType>(type);
    mlir::Type element = tensor.getElementType();
    if (element.isInteger())
      arguments.push_back(
          random.integers(tensor.getShape(), element.isInteger(1) ? 2 : 3));
    else
      arguments.push_back(
          random.uniform(tensor.getShape(), test.low, test.high));
  }
  return arguments;
}

/// Operands that are differentiated: of float type and not constant.
llvm::SmallVector<bool> neededOperands(mlir::func::FuncOp function,
                                       const Case &test) {
  llvm::SmallVector<bool> needed;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes())) {
    bool isConstant = index < test.constant.size() && test.constant[index];
    needed.push_back(!isConstant && llvm::isa<mlir::FloatType>(
                                        mlir::getElementTypeOrSelf(type)));
  }
  return needed;
}

class Vjp : public testing::TestWithParam<std::tuple<size_t, const char *>> {};

TEST_P(Vjp, EqualsFiniteDifferences) {
  auto [index, type] = GetParam();
  const Case &test = cases[index];
  TestModule module(functionText(test, type));
  ASSERT_TRUE(bool(module)) << module.takeDiagnostics();
  auto function = module.function("f");
  auto needed = neededOperands(function, test);
  llvm::SmallVector<bool> weighed(test.weighed.begin(), test.weighed.end());
  auto arguments = randomArguments(function, test);

  llvm::SmallVector<unsigned> results;
  auto gradient = buildVjp(function, "gradient", needed, weighed, results);
  ASSERT_TRUE(succeeded(gradient)) << module.takeDiagnostics();
  ASSERT_TRUE(succeeded(module.verify())) << module.takeDiagnostics();
  EXPECT_EQ(int64_t(results.size()), llvm::count(needed, true))
      << "a cotangent for each operand that needs one";
  EXPECT_LT(gradientError(function, *gradient, arguments, weighed, results),
            1e-6)
      << module.takeDiagnostics();

  // One operand at a time: the mask must not change what is asked for.
  for (unsigned operand = 0; operand < needed.size(); ++operand) {
    if (!needed[operand] || needed.size() == 1)
      continue;
    llvm::SmallVector<bool> alone(needed.size(), false);
    alone[operand] = true;
    results.clear();
    gradient = buildVjp(function, "gradient" + std::to_string(operand), alone,
                        weighed, results);
    ASSERT_TRUE(succeeded(gradient)) << module.takeDiagnostics();
    ASSERT_EQ(results, llvm::SmallVector<unsigned>{operand});
    EXPECT_LT(gradientError(function, *gradient, arguments, weighed, results),
              1e-6);
  }
}

std::string
caseName(const testing::TestParamInfo<std::tuple<size_t, const char *>> &info) {
  std::string name;
  for (char c : cases[std::get<0>(info.param)].name)
    name += llvm::isAlnum(c) ? c : '_';
  return std::to_string(std::get<0>(info.param)) + "_" + name + "_" +
         std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, Vjp,
    testing::Combine(testing::Range(size_t(0), cases.size()),
                     testing::Values("f64", "f32", "bf16")),
    caseName);

/// Where rows of several blocks may travel, the weights' cotangents are made of
/// rows; a choice without a row has none.
TEST(CombineVjp, OfBlocksEqualsFiniteDifferences) {
  TestModule module(R"(
    func.func @f(%r: tensor<2x6x3xf64>, %p: tensor<1x4x2xi32>, %w: tensor<1x4x2xf64>, %c: tensor<2x4xi32>) -> tensor<1x4x3xf64> {
      %y = rota.combine %r, %p weights %w counts %c blocks = 2 fill = 0.5 parts = 2 : (tensor<2x6x3xf64>, tensor<1x4x2xi32>, tensor<1x4x2xf64>, tensor<2x4xi32>) -> tensor<1x4x3xf64>
      return %y : tensor<1x4x3xf64>
    })");
  ASSERT_TRUE(bool(module)) << module.takeDiagnostics();
  auto function = module.function("f");
  llvm::SmallVector<unsigned> results;
  auto gradient = buildVjp(function, "gradient", {true, false, true, false},
                           {true}, results);
  ASSERT_TRUE(succeeded(gradient)) << module.takeDiagnostics();
  bool hasDots = false;
  gradient->walk([&](mlir::Operation *op) {
    hasDots |= op->getName().getStringRef() == "rota.row_dot";
  });
  EXPECT_TRUE(hasDots);
  Random random(5);
  llvm::SmallVector<Tensor> arguments{
      random.uniform({2, 6, 3}, -1, 1),
      Tensor({1, 4, 2}, {0, 3, 1, -1, /**/ 4, 0, 3, 1}),
      random.uniform({1, 4, 2}, -1, 1),
      Tensor({2, 4}, {1, 1, 1, 0, /**/ 1, 1, 1, 1})};
  EXPECT_LT(gradientError(function, *gradient, arguments, {true}, results),
            1e-6);
}

/// Elements that equal the maximum share its cotangent. No finite differences
/// are there to compare with: the derivative jumps at ties.
TEST(MaximumVjp, IsDividedAmongEqualElements) {
  for (const char *type : {"f64", "f32", "bf16"}) {
    Case test =
        change("max", "rota.reduce max", "3x4x$T", "dims [1]", " -> ", "3x$T");
    TestModule module(functionText(test, type));
    ASSERT_TRUE(bool(module)) << module.takeDiagnostics();
    llvm::SmallVector<unsigned> results;
    auto gradient =
        buildVjp(module.function("f"), "gradient", {true}, {true}, results);
    ASSERT_TRUE(succeeded(gradient)) << module.takeDiagnostics();
    Tensor x({3, 4}, {1, 5, 5, 0, -2, -2, -2, -2, 3, 0, 1, 2});
    auto dx = runFunction(*gradient, {x, Tensor({3}, {3, 2, 7})});
    ASSERT_TRUE(succeeded(dx)) << module.takeDiagnostics();
    EXPECT_EQ(
        dx->front().elements,
        (std::vector<double>{0, 1.5, 1.5, 0, 0.5, 0.5, 0.5, 0.5, 7, 0, 0, 0}))
        << type;
  }
}

/// Casts have types of their own; a rule gives back the operand's.
class CastVjp : public testing::TestWithParam<const char *> {};

TEST_P(CastVjp, EqualsFiniteDifferences) {
  TestModule module(GetParam());
  ASSERT_TRUE(bool(module)) << module.takeDiagnostics();
  llvm::SmallVector<unsigned> results;
  auto function = module.function("f");
  auto gradient = buildVjp(function, "gradient", {true}, {true}, results);
  ASSERT_TRUE(succeeded(gradient)) << module.takeDiagnostics();
  ASSERT_TRUE(succeeded(module.verify())) << module.takeDiagnostics();
  EXPECT_EQ(gradient->getResultTypes(), function.getArgumentTypes());
  Tensor x = Random(3).uniform({2, 3}, -1, 1);
  EXPECT_LT(gradientError(function, *gradient, {x}, {true}, results), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, CastVjp,
    testing::Values(
        R"(func.func @f(%x: tensor<2x3xbf16>) -> tensor<2x3xf32> {
             %y = arith.extf %x : tensor<2x3xbf16> to tensor<2x3xf32>
             return %y : tensor<2x3xf32>
           })",
        R"(func.func @f(%x: tensor<2x3xf64>) -> tensor<2x3xbf16> {
             %y = arith.truncf %x : tensor<2x3xf64> to tensor<2x3xbf16>
             return %y : tensor<2x3xbf16>
           })"));

/// The checker itself: gradients that are wrong in ways that happen, each of
/// which it must see.
class WrongGradient : public testing::TestWithParam<const char *> {};

TEST_P(WrongGradient, IsDetected) {
  std::string text = R"(
    func.func @f(%x: tensor<2x5xf64>, %gain: tensor<5xf64>) -> tensor<2x5xf64> {
      %y = rota.rms_norm %x, %gain epsilon = 1.0e-02 : tensor<2x5xf64>, tensor<5xf64>
      return %y : tensor<2x5xf64>
    }
    func.func @gradient(%x: tensor<2x5xf64>, %gain: tensor<5xf64>, %dy: tensor<2x5xf64>) -> (tensor<2x5xf64>, tensor<5xf64>) {
      %dx, %dgain = rota.rms_norm_grad %dy, %x, %gain epsilon = 1.0e-02 : (tensor<2x5xf64>, tensor<2x5xf64>, tensor<5xf64>) -> (tensor<2x5xf64>, tensor<5xf64>)
  )" + std::string(GetParam()) +
                     "}\n";
  TestModule module(text);
  ASSERT_TRUE(bool(module)) << module.takeDiagnostics();
  Random random(5);
  Tensor x = random.uniform({2, 5}, -1, 1), gain = random.uniform({5}, -1, 1);
  double error =
      gradientError(module.function("f"), module.function("gradient"),
                    {x, gain}, {true}, {0, 1});
  bool isRight = llvm::StringRef(GetParam()).starts_with("// right");
  EXPECT_EQ(error < 1e-6, isRight) << "relative error " << error;
}

INSTANTIATE_TEST_SUITE_P(
    Checker, WrongGradient,
    testing::Values(
        "// right\n return %dx, %dgain : tensor<2x5xf64>, tensor<5xf64>\n",
        "// a term too many: the cotangent passes straight through as well\n"
        "%wrong = arith.addf %dx, %dy : tensor<2x5xf64>\n"
        "return %wrong, %dgain : tensor<2x5xf64>, tensor<5xf64>\n",
        "// a factor of 1 + 1e-5\n"
        "%c = arith.constant dense<1.00001> : tensor<5xf64>\n"
        "%wrong = arith.mulf %dgain, %c : tensor<5xf64>\n"
        "return %dx, %wrong : tensor<2x5xf64>, tensor<5xf64>\n",
        "// one element lost\n"
        "%c = arith.constant dense<[[1.0, 1.0, 1.0, 1.0, 1.0], [1.0, 1.0, "
        "0.0, 1.0, 1.0]]> : tensor<2x5xf64>\n"
        "%wrong = arith.mulf %dx, %c : tensor<2x5xf64>\n"
        "return %wrong, %dgain : tensor<2x5xf64>, tensor<5xf64>\n",
        "// the sign\n"
        "%wrong = arith.negf %dgain : tensor<5xf64>\n"
        "return %dx, %wrong : tensor<2x5xf64>, tensor<5xf64>\n"));

/// Every op that answers DifferentiableOpInterface has a row above.
TEST(VjpCases, CoverEveryDifferentiableOp) {
  TestModule module("module {}");
  module.getContext()->loadAllAvailableDialects();
  unsigned count = 0;
  std::string all;
  for (const Case &test : cases)
    all += test.op + "\n";
  all += "arith.extf arith.truncf";
  // Without operands, or constant almost everywhere.
  llvm::StringSet<> constants = {"arith.constant", "arith.cmpf"};
  for (mlir::RegisteredOperationName op :
       module.getContext()->getRegisteredOperations())
    if (op.hasInterface<mlir::rota::DifferentiableOpInterface>() &&
        !constants.contains(op.getStringRef())) {
      ++count;
      EXPECT_NE(all.find(op.getStringRef().str()), std::string::npos)
          << op.getStringRef().str() << " has a rule and no test";
    }
  EXPECT_GT(count, 20u) << "ops of rota, arith and math are registered";
}

} // namespace
