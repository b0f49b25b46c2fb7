// SPDX-License-Identifier: Apache-2.0
//
// Random straight-line functions.
#include "test/passes/equivalence/RandomFunction.h"

using namespace rota::interpreter;

RandomFunction::RandomFunction(uint64_t seed, int64_t rows, int64_t columns,
                               llvm::StringRef element)
    : random(seed), rows(rows), columns(columns), element(element) {}

int64_t RandomFunction::below(int64_t end) {
  return int64_t(random.uniform(0, double(end)));
}

std::string RandomFunction::type(int shape) const {
  std::string r = std::to_string(rows) + "x", c = std::to_string(columns) + "x";
  const std::string sizes[] = {r + c, r, c, ""};
  return "tensor<" + sizes[shape] + element + ">";
}

void RandomFunction::addValue(std::string name, int shape) {
  values[shape].push_back(std::move(name));
}

std::string RandomFunction::pick(int shape) {
  const std::vector<std::string> &all = values[shape];
  int64_t recent = std::min<int64_t>(all.size(), 4);
  // Half of the time an old value, so that live ranges are long.
  return below(2) ? all[all.size() - 1 - below(recent)]
                  : all[below(all.size())];
}

std::string RandomFunction::define(std::string op, int shape) {
  std::string name = "%v" + std::to_string(count++);
  ops += "  " + name + " = " + op + "\n";
  addValue(name, shape);
  return name;
}

void RandomFunction::addUnary() {
  const char *names[] = {"math.tanh", "arith.negf", "math.tanh"};
  int shape = below(4);
  define(std::string(names[below(3)]) + " " + pick(shape) + " : " + type(shape),
         shape);
}

/// Sums are brought back to the range of tanh.
void RandomFunction::addBinary() {
  const char *names[] = {"arith.addf", "arith.subf", "arith.mulf",
                         "arith.maximumf"};
  int shape = below(4), kind = below(4);
  std::string result = define(std::string(names[kind]) + " " + pick(shape) +
                                  ", " + pick(shape) + " : " + type(shape),
                              shape);
  if (kind < 2)
    define("math.tanh " + result + " : " + type(shape), shape);
}

void RandomFunction::addSelect() {
  int shape = below(4);
  std::string flags = "%c" + std::to_string(count);
  std::string condition = type(shape);
  condition.replace(condition.rfind(element), element.size(), "i1");
  ops += "  " + flags + " = arith.cmpf ogt, " + pick(shape) + ", " +
         pick(shape) + " : " + type(shape) + "\n";
  define("arith.select " + flags + ", " + pick(shape) + ", " + pick(shape) +
             " : " + condition + ", " + type(shape),
         shape);
}

/// From all elements to those of a row or a column or to one, or from those to
/// one.
void RandomFunction::addReduction() {
  struct Form {
    int from, to;
    const char *dims;
  };
  const Form forms[] = {{0, 1, "[1]"}, {0, 2, "[0]"}, {0, 3, "[0, 1]"},
                        {1, 3, "[0]"}, {2, 3, "[0]"}, {0, 1, "[1]"}};
  const Form &form = forms[below(6)];
  std::string kind = below(4) ? "sum " : "max ";
  std::string result =
      define("rota.reduce " + kind + pick(form.from) + " dims " + form.dims +
                 " : " + type(form.from) + " -> " + type(form.to),
             form.to);
  define("math.tanh " + result + " : " + type(form.to), form.to);
}

void RandomFunction::addBroadcast() {
  struct Form {
    int from, to;
    const char *dims;
  };
  const Form forms[] = {
      {1, 0, "[0]"}, {2, 0, "[1]"}, {3, 0, "[]"}, {3, 1, "[]"}, {3, 2, "[]"}};
  const Form &form = forms[below(5)];
  define("rota.broadcast " + pick(form.from) + " dims " + form.dims + " : " +
             type(form.from) + " -> " + type(form.to),
         form.to);
}

void RandomFunction::addOp() {
  switch (below(8)) {
  case 0:
    return addUnary();
  case 1:
    return addSelect();
  case 2:
  case 3:
    return addReduction();
  case 4:
  case 5:
    return addBroadcast();
  default:
    return addBinary();
  }
}

std::string rota::interpreter::randomFunction(uint64_t seed, int ops,
                                              int64_t rows, int64_t columns,
                                              llvm::StringRef element) {
  RandomFunction function(seed, rows, columns, element);
  std::string arguments, results, types;
  for (int shape = 0; shape < 4; ++shape) {
    std::string name = "%a" + std::to_string(shape);
    arguments += (shape ? ", " : "") + name + ": " + function.type(shape);
    function.addValue(name, shape);
  }
  for (int i = 0; i < ops; ++i)
    function.addOp();
  for (int shape : {0, 0, 1, 2, 3}) {
    std::string comma = results.empty() ? "" : ", ";
    results += comma + function.pick(shape);
    types += comma + function.type(shape);
  }
  return "func.func @f(" + arguments + ") -> (" + types + ") {\n" +
         function.text() + "  return " + results + " : " + types + "\n}\n";
}

std::string rota::interpreter::randomModel(uint64_t seed, int ops,
                                           llvm::StringRef element) {
  RandomFunction layer(seed, 3, 4, element);
  std::string params, reads;
  layer.addValue("%x", 0);
  for (int shape = 0; shape < 4; ++shape) {
    std::string name = "p" + std::to_string(shape), type = layer.type(shape);
    const char *axes[] = {"[\"r\", \"c\"]", "[\"r\"]", "[\"c\"]", "[]"};
    params += "rota.param @" + name + " : " + type + " axes " + axes[shape] +
              " init #rota.constant<value = 1.0>\n";
    reads += "  %" + name + " = rota.read @" + name + " : " + type + "\n";
    layer.addValue("%" + name, shape);
  }
  for (int i = 0; i < ops; ++i)
    layer.addOp();
  std::string type = layer.type(0), scalar = layer.type(3);
  return "rota.stack @layers layers = 2 pattern [@random] {\nrota.layer "
         "@random {\n" +
         params + "func.func @forward(%x: " + type + ") -> " + type + " {\n" +
         reads + layer.text() + "  %n = rota.name \"query_proj\" " +
         layer.pick(0) + " : " + type + "\n  %t = math.tanh %n : " + type +
         "\n  %u = arith.mulf " + layer.pick(0) + ", %x : " + type +
         "\n  %y = arith.addf %t, %u : " + type + "\n  return %y : " + type +
         "\n}\n}\n}\nfunc.func @embed(%x: " + type + ") -> " + type +
         " {\n  return %x : " + type + "\n}\nfunc.func @loss(%y: " + type +
         ", %t: " + type + ") -> (" + scalar + ", " + scalar +
         ") {\n  %d = arith.subf %y, %t : " + type +
         "\n  %q = arith.mulf %d, %d : " + type +
         "\n  %s = rota.reduce sum %q dims [0, 1] : " + type + " -> " + scalar +
         "\n  %one = arith.constant dense<1.0> : " + scalar +
         "\n  return %s, %one : " + scalar + ", " + scalar + "\n}\n";
}
