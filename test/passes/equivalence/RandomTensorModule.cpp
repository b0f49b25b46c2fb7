// SPDX-License-Identifier: Apache-2.0
//
// Random functions and models around random ops.
#include "test/passes/equivalence/RandomTensors.h"

using namespace rota::interpreter;
using Shape = RandomTensors::Shape;
using Value = RandomTensors::Value;

namespace {
struct Named {
  const char *name;
  Shape shape;
  const char *axes; // axes of a parameter
};
} // namespace

static std::vector<Named> parametersOf(const RandomTensors &tensors) {
  return {{"matrix", {tensors.width, tensors.width}, "[\"mlp\", \"embed\"]"},
          {"mixer", {tensors.length, tensors.width}, "[\"in\", \"heads\"]"},
          {"gain", {tensors.width}, "[\"norm\"]"}};
}

static std::string declare(llvm::ArrayRef<Named> parameters) {
  std::string text;
  for (const Named &parameter : parameters)
    text += std::string("rota.param @") + parameter.name + " : " +
            tensorType(parameter.shape) + " axes " + parameter.axes +
            " init #rota.constant<value = 1.0>\n";
  return text;
}

static std::string read(RandomTensors &tensors,
                        llvm::ArrayRef<Named> parameters) {
  std::string text;
  for (const Named &parameter : parameters) {
    std::string name = parameter.name;
    text += "  %" + name + " = rota.read @" + name + " : " +
            tensorType(parameter.shape) + "\n";
    tensors.addValue("%" + name, parameter.shape);
  }
  return text;
}

RandomModule rota::interpreter::randomTensorFunction(uint64_t seed, int ops) {
  RandomTensors tensors(seed, /*isWhole=*/true);
  int64_t b = tensors.batch, s = tensors.length, w = tensors.width,
          v = tensors.vocabulary;
  const Named inputs[] = {{"x", {b, s, w}, ""},      {"table", {v, w}, ""},
                          {"logits", {b, s, v}, ""}, {"matrix_in", {b, w}, ""},
                          {"row", {w}, ""},          {"scalar", {}, ""}};
  std::string arguments;
  for (const Named &input : inputs) {
    arguments +=
        std::string("%") + input.name + ": " + tensorType(input.shape) + ", ";
    tensors.addValue(std::string("%") + input.name, input.shape);
  }
  std::string tokens = tensorType({b, s}, "i32");
  arguments += "%tokens: " + tokens + ", %targets: " + tokens;
  std::vector<Named> parameters = parametersOf(tensors);
  std::string body = read(tensors, parameters);
  for (int i = 0; i < ops; ++i)
    tensors.addOp();
  body += tensors.text();
  for (const Named &parameter : parameters)
    for (int64_t times = tensors.below(3); times > 0; --times)
      if (const Value *value = tensors.find(parameter.shape))
        body += std::string("  rota.accumulate @") + parameter.name + ", " +
                value->name + " : " + tensorType(parameter.shape) + "\n";
  std::string results, types;
  for (int i = 0; i < 4; ++i) {
    const Value &value = tensors.pick();
    results += (i ? ", " : "") + value.name;
    types += (i ? ", " : "") + tensorType(value.shape);
  }
  return {declare(parameters) + "func.func @f(" + arguments + ") -> (" + types +
              ") {\n" + body + "  return " + results + " : " + types + "\n}\n",
          v};
}

RandomModule rota::interpreter::randomTensorModel(uint64_t seed, int ops) {
  RandomTensors tensors(seed, /*isWhole=*/false);
  Shape x{tensors.batch, tensors.length, tensors.width};
  Shape table{tensors.vocabulary, tensors.width};
  Shape logits{tensors.batch, tensors.length, tensors.vocabulary};
  tensors.addValue("%x", x);
  std::vector<Named> parameters = parametersOf(tensors);
  std::string body = read(tensors, parameters);
  for (int i = 0; i < ops; ++i)
    tensors.addOp();
  std::string type = tensorType(x), t = tensorType(table),
              l = tensorType(logits), scalar = tensorType({}),
              tokens = tensorType({tensors.batch, tensors.length}, "i32"),
              rows = tensorType({tensors.batch, tensors.length});
  std::string forward = "func.func @forward(%x: " + type + ") -> " + type +
                        " {\n" + body + tensors.text() +
                        "  %last = rota.name \"mlpwo\" " +
                        tensors.find(x)->name + " : " + type +
                        "\n  %bounded = math.tanh %last : " + type +
                        "\n  %y = arith.addf %bounded, %x : " + type +
                        "\n  return %y : " + type + "\n}\n";
  std::string embed = "func.func @embed(%tokens: " + tokens + ") -> " + type +
                      " {\n  %t = rota.read @table : " + t +
                      "\n  %x = rota.embedding %tokens, %t : (" + tokens +
                      ", " + t + ") -> " + type + "\n  return %x : " + type +
                      "\n}\n";
  std::string loss =
      "func.func @loss(%x: " + type + ", %targets: " + tokens + ") -> (" +
      scalar + ", " + scalar + ") {\n  %t = rota.read @table : " + t +
      "\n  %l = rota.einsum \"bsk,nk->bsn\" %x, %t : (" + type + ", " + t +
      ") -> " + l +
      "\n  %sum, %weight, %lse = rota.cross_entropy %l, "
      "%targets : (" +
      l + ", " + tokens + ") -> (" + scalar + ", " + scalar + ", " + rows +
      ")\n  return %sum, %weight : " + scalar + ", " + scalar + "\n}\n";
  return {declare({{"table", table, "[\"vocab\", \"embed\"]"}}) +
              "rota.stack @layers layers = 2 pattern [@random] {\nrota.layer "
              "@random {\n" +
              declare(parameters) + forward + "}\n}\n" + embed + loss,
          tensors.vocabulary};
}
