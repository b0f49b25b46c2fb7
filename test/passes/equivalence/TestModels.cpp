// SPDX-License-Identifier: Apache-2.0
//
// Small models in rota IR.
#include "test/passes/equivalence/TestModels.h"

#include "test/interpreter/GradientCheck.h"

#include <cmath>
#include <limits>

using namespace rota::interpreter;

/// y = x * W in each layer; loss = sum (y - target)^2 with weight 1.
static const char *linear = R"(
rota.stack @layers layers = 3 pattern [@linear] {
  rota.layer @linear {
    rota.param @weight : tensor<5x5x$W> axes ["in", "out"] init #rota.normal<mean = 0.0, deviation = 0.1>
    func.func @forward(%x: tensor<2x3x5x$T>) -> tensor<2x3x5x$T> {
      %w = rota.read @weight : tensor<5x5x$T>
      %y = rota.einsum "bsk,kn->bsn" %x, %w : (tensor<2x3x5x$T>, tensor<5x5x$T>) -> tensor<2x3x5x$T>
      return %y : tensor<2x3x5x$T>
    }
  }
}
func.func @embed(%x: tensor<2x3x5x$T>) -> tensor<2x3x5x$T> {
  return %x : tensor<2x3x5x$T>
}
func.func @loss(%y: tensor<2x3x5x$T>, %target: tensor<2x3x5x$T>) -> (tensor<$W>, tensor<$W>) {
  %difference = arith.subf %y, %target : tensor<2x3x5x$T>
  %square = rota.einsum "bsk,bsk->" %difference, %difference : (tensor<2x3x5x$T>, tensor<2x3x5x$T>) -> tensor<$W>
  %one = arith.constant dense<1.0> : tensor<$W>
  return %square, %one : tensor<$W>, tensor<$W>
}
)";

/// y = tanh(x * W) with two auxiliary losses, sum y^2 and sum x*W of unlike
/// weights, and a loss whose weight is that of the targets.
static const char *auxiliary = R"(
rota.stack @layers layers = 3 pattern [@linear] {
  rota.layer @linear {
    rota.param @weight : tensor<5x5x$W> axes ["in", "out"] init #rota.normal<mean = 0.0, deviation = 0.1>
    func.func @forward(%x: tensor<2x3x5x$T>) -> tensor<2x3x5x$T> {
      %w = rota.read @weight : tensor<5x5x$T>
      %p = rota.einsum "bsk,kn->bsn" %x, %w : (tensor<2x3x5x$T>, tensor<5x5x$T>) -> tensor<2x3x5x$T>
      %pn = rota.name "mlpwi" %p : tensor<2x3x5x$T>
      %products = rota.einsum "bsk,bsk->" %x, %pn : (tensor<2x3x5x$T>, tensor<2x3x5x$T>) -> tensor<$W>
      rota.auxiliary_loss "products" %products weight = 7.0 coefficient = -0.3 : tensor<$W>
      %y = math.tanh %pn : tensor<2x3x5x$T>
      %squares = rota.einsum "bsk,bsk->" %y, %y : (tensor<2x3x5x$T>, tensor<2x3x5x$T>) -> tensor<$W>
      rota.auxiliary_loss "squares" %squares weight = 30.0 coefficient = 0.7 : tensor<$W>
      return %y : tensor<2x3x5x$T>
    }
  }
}
func.func @embed(%x: tensor<2x3x5x$T>) -> tensor<2x3x5x$T> {
  return %x : tensor<2x3x5x$T>
}
func.func @loss(%y: tensor<2x3x5x$T>, %target: tensor<2x3x5x$T>) -> (tensor<$W>, tensor<$W>) {
  %difference = arith.subf %y, %target : tensor<2x3x5x$T>
  %square = rota.einsum "bsk,bsk->" %difference, %difference : (tensor<2x3x5x$T>, tensor<2x3x5x$T>) -> tensor<$W>
  %weight = rota.einsum "bsk,bsk->" %target, %target : (tensor<2x3x5x$T>, tensor<2x3x5x$T>) -> tensor<$W>
  return %square, %weight : tensor<$W>, tensor<$W>
}
)";

/// Two kinds of layer in turn: a residual MLP with bias whose weight is used
/// twice, and a gate; both with named values. The embedding is a projection.
static const char *mixed = R"(
rota.param @in.weight : tensor<4x3x$W> axes ["embed", "in"] init #rota.normal<mean = 0.0, deviation = 0.1>
rota.stack @blocks layers = 4 pattern [@mlp, @gate] {
  rota.layer @mlp {
    rota.param @weight : tensor<4x4x$W> axes ["in", "out"] init #rota.normal<mean = 0.0, deviation = 0.1>
    rota.param @bias : tensor<4x$W> axes ["out"] init #rota.constant<value = 0.0>
    func.func @forward(%x: tensor<2x4x$T>) -> tensor<2x4x$T> {
      %w = rota.read @weight : tensor<4x4x$T>
      %b = rota.read @bias : tensor<4x$T>
      %p = rota.einsum "bk,nk->bn" %x, %w : (tensor<2x4x$T>, tensor<4x4x$T>) -> tensor<2x4x$T>
      %bb = rota.broadcast %b dims [1] : tensor<4x$T> -> tensor<2x4x$T>
      %q = arith.addf %p, %bb : tensor<2x4x$T>
      %n = rota.name "mlpwi" %q : tensor<2x4x$T>
      %h = math.tanh %n : tensor<2x4x$T>
      %w2 = rota.read @weight : tensor<4x4x$T>
      %o = rota.einsum "bk,kn->bn" %h, %w2 : (tensor<2x4x$T>, tensor<4x4x$T>) -> tensor<2x4x$T>
      %on = rota.name "mlpwo" %o : tensor<2x4x$T>
      %y = arith.addf %x, %on : tensor<2x4x$T>
      return %y : tensor<2x4x$T>
    }
  }
  rota.layer @gate {
    rota.param @gain : tensor<4x$W> axes ["embed"] init #rota.constant<value = 1.0>
    rota.param @proj.weight : tensor<4x4x$W> axes ["out", "in"] init #rota.normal<mean = 0.0, deviation = 0.1>
    func.func @forward(%x: tensor<2x4x$T>) -> tensor<2x4x$T> {
      %g = rota.read @gain : tensor<4x$T>
      %w = rota.read @proj.weight : tensor<4x4x$T>
      %n = rota.rms_norm %x, %g epsilon = 0.0078125 : tensor<2x4x$T>, tensor<4x$T>
      %p = rota.einsum "bk,nk->bn" %n, %w : (tensor<2x4x$T>, tensor<4x4x$T>) -> tensor<2x4x$T>
      %pn = rota.name "query_proj" %p : tensor<2x4x$T>
      %y = rota.activation silu %pn, %x : tensor<2x4x$T>
      %m = rota.reduce max %y dims [1] : tensor<2x4x$T> -> tensor<2x$T>
      %e = math.exp %m : tensor<2x$T>
      %one = arith.constant dense<1.0> : tensor<2x$T>
      %d = arith.addf %e, %one : tensor<2x$T>
      %db = rota.broadcast %d dims [0] : tensor<2x$T> -> tensor<2x4x$T>
      %z = arith.divf %y, %db : tensor<2x4x$T>
      %s = arith.addf %z, %x : tensor<2x4x$T>
      return %s : tensor<2x4x$T>
    }
  }
}
func.func @embed(%x: tensor<2x3x$T>) -> tensor<2x4x$T> {
  %w = rota.read @in.weight : tensor<4x3x$T>
  %y = rota.einsum "bk,nk->bn" %x, %w : (tensor<2x3x$T>, tensor<4x3x$T>) -> tensor<2x4x$T>
  return %y : tensor<2x4x$T>
}
func.func @loss(%y: tensor<2x4x$T>, %target: tensor<2x4x$T>) -> (tensor<$W>, tensor<$W>) {
  %difference = arith.subf %y, %target : tensor<2x4x$T>
  %square = rota.einsum "bk,bk->" %difference, %difference : (tensor<2x4x$T>, tensor<2x4x$T>) -> tensor<$W>
  %two = arith.constant dense<2.0> : tensor<$W>
  return %square, %two : tensor<$W>, tensor<$W>
}
)";

/// A Llama decoder: hidden 6, 2 query heads of 4 over 1 key-value head,
/// feed-forward 5, vocabulary 11, tied embeddings.
static const char *llama = R"(
rota.param @model.embed_tokens.weight : tensor<11x6x$W> axes ["vocab", "embed"] init #rota.normal<mean = 0.0, deviation = 0.02>
rota.param @model.norm.weight : tensor<6x$W> axes ["embed"] init #rota.constant<value = 1.0>
rota.stack @model.layers layers = 2 pattern [@decoder] {
  rota.layer @decoder {
    rota.param @input_layernorm.weight : tensor<6x$W> axes ["embed"] init #rota.constant<value = 1.0>
    rota.param @self_attn.q_proj.weight : tensor<8x6x$W> axes ["heads", "embed"] init #rota.normal<mean = 0.0, deviation = 0.02>
    rota.param @self_attn.k_proj.weight : tensor<4x6x$W> axes ["kv_heads", "embed"] init #rota.normal<mean = 0.0, deviation = 0.02>
    rota.param @self_attn.v_proj.weight : tensor<4x6x$W> axes ["kv_heads", "embed"] init #rota.normal<mean = 0.0, deviation = 0.02>
    rota.param @self_attn.o_proj.weight : tensor<6x8x$W> axes ["embed", "heads"] init #rota.normal<mean = 0.0, deviation = 0.02>
    rota.param @post_attention_layernorm.weight : tensor<6x$W> axes ["embed"] init #rota.constant<value = 1.0>
    rota.param @mlp.gate_proj.weight : tensor<5x6x$W> axes ["mlp", "embed"] init #rota.normal<mean = 0.0, deviation = 0.02>
    rota.param @mlp.up_proj.weight : tensor<5x6x$W> axes ["mlp", "embed"] init #rota.normal<mean = 0.0, deviation = 0.02>
    rota.param @mlp.down_proj.weight : tensor<6x5x$W> axes ["embed", "mlp"] init #rota.normal<mean = 0.0, deviation = 0.02>
    func.func @forward(%x: tensor<2x3x6x$T>) -> tensor<2x3x6x$T> {
      %table = rota.rotary_table frequencies [1.0, 0.25] scale = 1.0 : tensor<3x2x2x$W>
      %g1 = rota.read @input_layernorm.weight : tensor<6x$T>
      %n1 = rota.rms_norm %x, %g1 epsilon = 0.0078125 : tensor<2x3x6x$T>, tensor<6x$T>
      %wq = rota.read @self_attn.q_proj.weight : tensor<8x6x$T>
      %q0 = rota.einsum "bsk,nk->bsn" %n1, %wq : (tensor<2x3x6x$T>, tensor<8x6x$T>) -> tensor<2x3x8x$T>
      %q1 = rota.name "query_proj" %q0 : tensor<2x3x8x$T>
      %q2 = rota.reshape %q1 : tensor<2x3x8x$T> -> tensor<2x3x2x4x$T>
      %q = rota.rope %q2, %table : tensor<2x3x2x4x$T>, tensor<3x2x2x$W>
      %wk = rota.read @self_attn.k_proj.weight : tensor<4x6x$T>
      %k0 = rota.einsum "bsk,nk->bsn" %n1, %wk : (tensor<2x3x6x$T>, tensor<4x6x$T>) -> tensor<2x3x4x$T>
      %k1 = rota.name "key_proj" %k0 : tensor<2x3x4x$T>
      %k2 = rota.reshape %k1 : tensor<2x3x4x$T> -> tensor<2x3x1x4x$T>
      %k = rota.rope %k2, %table : tensor<2x3x1x4x$T>, tensor<3x2x2x$W>
      %wv = rota.read @self_attn.v_proj.weight : tensor<4x6x$T>
      %v0 = rota.einsum "bsk,nk->bsn" %n1, %wv : (tensor<2x3x6x$T>, tensor<4x6x$T>) -> tensor<2x3x4x$T>
      %v1 = rota.name "value_proj" %v0 : tensor<2x3x4x$T>
      %v = rota.reshape %v1 : tensor<2x3x4x$T> -> tensor<2x3x1x4x$T>
      %a, %lse = rota.attention %q, %k, %v scale = 0.5 : (tensor<2x3x2x4x$T>, tensor<2x3x1x4x$T>, tensor<2x3x1x4x$T>) -> (tensor<2x3x2x4x$T>, tensor<2x2x3x$W>)
      %a1 = rota.name "context" %a : tensor<2x3x2x4x$T>
      %a2 = rota.reshape %a1 : tensor<2x3x2x4x$T> -> tensor<2x3x8x$T>
      %wo = rota.read @self_attn.o_proj.weight : tensor<6x8x$T>
      %o0 = rota.einsum "bsk,nk->bsn" %a2, %wo : (tensor<2x3x8x$T>, tensor<6x8x$T>) -> tensor<2x3x6x$T>
      %o = rota.name "out_proj" %o0 : tensor<2x3x6x$T>
      %r = arith.addf %x, %o : tensor<2x3x6x$T>
      %g2 = rota.read @post_attention_layernorm.weight : tensor<6x$T>
      %n2 = rota.rms_norm %r, %g2 epsilon = 0.0078125 : tensor<2x3x6x$T>, tensor<6x$T>
      %wg = rota.read @mlp.gate_proj.weight : tensor<5x6x$T>
      %h0 = rota.einsum "bsk,nk->bsn" %n2, %wg : (tensor<2x3x6x$T>, tensor<5x6x$T>) -> tensor<2x3x5x$T>
      %gate = rota.name "mlpwi_0" %h0 : tensor<2x3x5x$T>
      %wu = rota.read @mlp.up_proj.weight : tensor<5x6x$T>
      %u0 = rota.einsum "bsk,nk->bsn" %n2, %wu : (tensor<2x3x6x$T>, tensor<5x6x$T>) -> tensor<2x3x5x$T>
      %up = rota.name "mlpwi_1" %u0 : tensor<2x3x5x$T>
      %h = rota.activation silu %gate, %up : tensor<2x3x5x$T>
      %wd = rota.read @mlp.down_proj.weight : tensor<6x5x$T>
      %d0 = rota.einsum "bsk,nk->bsn" %h, %wd : (tensor<2x3x5x$T>, tensor<6x5x$T>) -> tensor<2x3x6x$T>
      %d = rota.name "mlpwo" %d0 : tensor<2x3x6x$T>
      %y = arith.addf %r, %d : tensor<2x3x6x$T>
      return %y : tensor<2x3x6x$T>
    }
  }
}
func.func @embed(%tokens: tensor<2x3xi32>) -> tensor<2x3x6x$T> {
  %w = rota.read @model.embed_tokens.weight : tensor<11x6x$T>
  %x = rota.embedding %tokens, %w : (tensor<2x3xi32>, tensor<11x6x$T>) -> tensor<2x3x6x$T>
  return %x : tensor<2x3x6x$T>
}
func.func @loss(%x: tensor<2x3x6x$T>, %targets: tensor<2x3xi32>) -> (tensor<$W>, tensor<$W>) {
  %g = rota.read @model.norm.weight : tensor<6x$T>
  %n = rota.rms_norm %x, %g epsilon = 0.0078125 : tensor<2x3x6x$T>, tensor<6x$T>
  %w = rota.read @model.embed_tokens.weight : tensor<11x6x$T>
  %l0 = rota.einsum "bsk,nk->bsn" %n, %w : (tensor<2x3x6x$T>, tensor<11x6x$T>) -> tensor<2x3x11x$T>
  %l = rota.name "logits" %l0 : tensor<2x3x11x$T>
  %sum, %weight, %lse = rota.cross_entropy %l, %targets : (tensor<2x3x11x$T>, tensor<2x3xi32>) -> (tensor<$W>, tensor<$W>, tensor<2x3x$W>)
  return %sum, %weight : tensor<$W>, tensor<$W>
}
)";

static constexpr int64_t llamaVocabulary = 11;

llvm::ArrayRef<TestModel> rota::interpreter::testModels() {
  static const TestModel models[] = {
      {"linear", linear, 0, "full"},
      {"mixed", mixed, 0, "query_proj=device,mlpwi=remat"},
      {"llama", llama, llamaVocabulary,
       "query_proj=device,context=offload,mlpwi_0=remat"},
      {"auxiliary", auxiliary, 0, "mlpwi=offload"}};
  return models;
}

std::string rota::interpreter::withElements(llvm::StringRef text,
                                            llvm::StringRef type) {
  llvm::StringRef wide = type == "bf16" ? "f32" : type;
  std::string result;
  while (!text.empty()) {
    auto [before, rest] = text.split('$');
    result += before;
    if (!rest.empty())
      result += rest.front() == 'T' ? type : wide;
    text = rest.drop_front(rest.empty() ? 0 : 1);
  }
  return result;
}

Tensors rota::interpreter::randomParameters(const mlir::rota::Model &model,
                                            uint64_t seed) {
  Random random(seed);
  Tensors parameters;
  for (const auto &[name, shape] : parameterShapes(model))
    parameters[name] = random.uniform(shape, -0.8, 0.8);
  return parameters;
}

llvm::SmallVector<Microbatch>
rota::interpreter::randomMicrobatches(const mlir::rota::Model &model,
                                      int64_t vocabulary, unsigned count,
                                      uint64_t seed) {
  Random random(seed);
  auto make = [&](mlir::Type type) {
    auto shape = llvm::cast<mlir::RankedTensorType>(type).getShape();
    return vocabulary ? random.integers(shape, vocabulary)
                      : random.uniform(shape, -1, 1);
  };
  mlir::func::FuncOp embed = model.embed, loss = model.loss;
  llvm::SmallVector<Microbatch> microbatches;
  for (unsigned i = 0; i < count; ++i)
    microbatches.push_back(
        {make(embed.getArgumentTypes()[0]), make(loss.getArgumentTypes()[1])});
  return microbatches;
}

bool rota::interpreter::isSameStep(const Step &a, const Step &b) {
  auto isSame = [](const auto &left, const auto &right) {
    return left.first == right.first &&
           left.second.elements == right.second.elements;
  };
  return a.sum == b.sum && a.weight == b.weight && a.auxiliary == b.auxiliary &&
         a.gradients.size() == b.gradients.size() &&
         std::equal(a.gradients.begin(), a.gradients.end(), b.gradients.begin(),
                    isSame);
}

double rota::interpreter::stepError(const Step &a, const Step &b) {
  if (a.gradients.size() != b.gradients.size())
    return std::numeric_limits<double>::infinity();
  double error = std::abs(a.loss() - b.loss()) / std::abs(b.loss());
  for (const auto &[name, gradient] : b.gradients) {
    auto it = a.gradients.find(name);
    if (it == a.gradients.end())
      return std::numeric_limits<double>::infinity();
    error = std::max(error, relativeError(it->second, gradient));
  }
  return error;
}
