// SPDX-License-Identifier: Apache-2.0
//
// Routing of tokens to experts, and its derivative, on every device. A kernel
// row is a token: its scores lie in memory of the row, computed in vectors, and
// its choices are found one after the other.
#include "ir/rota/experts/Experts.h"
#include "lowering/kernels/RowBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace rota::lowering {
namespace {

constexpr float kNone = -3.0e38f; // below every score
/// exp of more than 88 is not in f32.
constexpr float kLeastLogit = -88.0f;

/// The routing of one token.
struct Routing {
  template <typename Op>
  Routing(Op op, Value choices)
      : tokens(op.getLogits().getType().getDimSize(0) *
               op.getLogits().getType().getDimSize(1)),
        experts(op.getLogits().getType().getDimSize(2)),
        k(cast<RankedTensorType>(choices.getType()).getDimSize(2)),
        sigmoid(op.getSigmoid()), normalize(op.getNormalize()),
        scaling(op.getScaling().convertToDouble()) {}

  /// A text that determines the code of a token.
  std::string key() const {
    std::string key;
    llvm::raw_string_ostream(key)
        << k << " of " << experts << (sigmoid ? " sigmoid" : "")
        << (normalize ? " normalized" : "") << " times "
        << llvm::bit_cast<uint32_t>(scaling);
    return key;
  }

  /// A kernel row for each token, done by one warp on a GPU.
  RowForm space() const {
    RowForm form{tokens, experts, 32};
    form.ofWarp = true;
    return form;
  }

  int64_t tokens, experts, k;
  bool sigmoid, normalize;
  float scaling;
};

class TokenCode {
public:
  TokenCode(RowBuilder &k, const Routing &of)
      : k(k), of(of), scores(k.local(of.experts, k.ops().getF32Type())) {}

  /// Calls body(at, count) for the vectors of a row of the experts.
  void overExperts(llvm::function_ref<void(Value at, int64_t count)> body) {
    k.overColumns(of.experts, [&](Value at, ArrayRef<int64_t> counts) {
      for (int64_t count : counts) {
        body(at, count);
        at = k.add(at, k.lanes());
      }
    });
  }

  /// Fills `scores` from the logits of one token.
  void computeScores(Memory logits) {
    if (of.sigmoid) {
      overExperts([&](Value at, int64_t count) {
        Value x = k.maxf(k.splat(kLeastLogit), k.loadVector(logits, at, count));
        Value e = k.exp(k.subf(k.splat(0.0f), x));
        k.storeVector(k.divf(k.splat(1.0f), k.addf(k.splat(1.0f), e)), scores,
                      at, count);
      });
      return k.sync();
    }
    Value largest = k.broadcast(k.maxOfRow(k.foldColumns(
        of.experts, k.splat(kNone), [&](Value at, int64_t count, Value most) {
          return k.maxf(most, k.loadVector(logits, at, count, kNone));
        })));
    Value sum = k.broadcast(k.sumOfRow(k.foldColumns(
        of.experts, k.splat(0.0f), [&](Value at, int64_t count, Value sum) {
          Value x = k.loadVector(logits, at, count, kNone);
          Value e = k.exp(k.subf(x, largest));
          k.storeVector(e, scores, at, count);
          return k.addf(sum, e);
        })));
    // A thread reads the vectors that it has written itself.
    overExperts([&](Value at, int64_t count) {
      k.storeVector(k.divf(k.loadVector(scores, at, count), sum), scores, at,
                    count);
    });
    k.sync();
  }

  /// The divisor of the scores of the choices; `scoreOf` has the scores.
  Value divisor(llvm::function_ref<Value(Value j)> scoreOf) {
    Value sum = k.loop(k.i64(0), k.i64(of.k), 1, {k.f32(0.0f)},
                       [&](Value j, ValueRange sum) -> SmallVector<Value> {
                         return {k.addf(sum[0], scoreOf(j))};
                       })[0];
    return of.sigmoid ? k.addf(sum, k.f32(1e-20f)) : sum;
  }

  RowBuilder &k;
  const Routing &of;
  Memory scores;
};

Value isGreater(RowBuilder &k, Value a, Value b) {
  return arith::CmpFOp::create(k.ops(), arith::CmpFPredicate::OGT, a, b);
}

/// Puts the values of experts outside the best `top` of `groups` groups below
/// every other.
void emitGroups(TokenCode &code, Memory values, int64_t groups, int64_t top) {
  RowBuilder &k = code.k;
  int64_t size = code.of.experts / groups;
  bool ofTwo = code.of.sigmoid && size > 1;
  Type f32 = k.ops().getF32Type();
  Memory ofGroups = k.local(groups, f32), chosen = k.local(groups, f32);
  k.each(groups, [&](Value group) {
    Value first = k.mul(group, size);
    auto best =
        k.loop(k.i64(0), k.i64(size), 1, {k.f32(-INFINITY), k.f32(-INFINITY)},
               [&](Value i, ValueRange best) -> SmallVector<Value> {
                 Value value = k.load(values, k.add(first, i));
                 Value isBest = isGreater(k, value, best[0]);
                 Value second =
                     k.select(isBest, best[0], k.maxf(value, best[1]));
                 return {k.select(isBest, value, best[0]), second};
               });
    k.store(ofTwo ? k.addf(best[0], best[1]) : best[0], ofGroups, group);
    k.store(k.f32(0.0f), chosen, group);
  });
  k.sync();
  k.loop(0, top, 1, [&](Value) {
    Value group = k.largestOf(ofGroups, groups);
    k.sync();
    k.once([&] {
      k.store(k.f32(-INFINITY), ofGroups, group);
      k.store(k.f32(1.0f), chosen, group);
    });
    k.sync();
  });
  k.each(code.of.experts, [&](Value expert) {
    Value isOut =
        isGreater(k, k.f32(0.5f), k.load(chosen, k.div(expert, size)));
    k.when(isOut, [&] { k.store(k.f32(-INFINITY), values, expert); });
  });
  k.sync();
}

struct RouteArguments {
  Memory logits, weights, experts;
  std::optional<Memory> bias;
};

/// The choices of token `token`.
void emitChoices(TokenCode &code, const RouteArguments &to, Value token,
                 int64_t groups, int64_t top) {
  RowBuilder &k = code.k;
  const Routing &of = code.of;
  Memory values = k.local(of.experts, k.ops().getF32Type());
  code.computeScores(k.offset(to.logits, k.mul(token, of.experts)));
  code.overExperts([&](Value at, int64_t count) {
    Value value = k.loadVector(code.scores, at, count);
    if (to.bias)
      value = k.addf(value, k.loadVector(*to.bias, at, count));
    k.storeVector(value, values, at, count);
  });
  k.sync();
  if (groups > 1)
    emitGroups(code, values, groups, top);
  Value start = k.mul(token, of.k);
  k.loop(0, of.k, 1, [&](Value j) {
    Value expert = k.largestOf(values, of.experts), at = k.add(start, j);
    k.sync();
    k.once([&] {
      k.store(k.f32(-INFINITY), values, expert);
      k.store(k.load(code.scores, expert), to.weights, at);
      k.storeIndex(expert, to.experts, at);
    });
    k.sync();
  });
  k.once([&] {
    auto weightAt = [&](Value j) {
      return k.load(to.weights, k.add(start, j));
    };
    Value divisor = of.normalize ? code.divisor(weightAt) : Value();
    k.loop(0, of.k, 1, [&](Value j) {
      Value weight = weightAt(j);
      if (divisor)
        weight = k.divf(weight, divisor);
      k.store(k.mulf(weight, k.f32(of.scaling)), to.weights, k.add(start, j));
    });
  });
}

/// The cotangent of the logits of one token; the formulas are those of the
/// interpreter's routeGrad: with s the scores, d = sum s of the choices and
/// w = s / d, ds = scaling (dw - sum dw w) / d.
void emitGradient(TokenCode &code, Memory cotangent, Memory logits,
                  Memory experts, Memory result) {
  RowBuilder &k = code.k;
  const Routing &of = code.of;
  Memory ofScores = k.local(of.experts, k.ops().getF32Type());
  code.computeScores(logits);
  k.each(of.experts, [&](Value i) { k.store(k.f32(0.0f), ofScores, i); });
  k.sync();
  auto scoreOf = [&](Value j) {
    return k.load(code.scores, k.loadIndex(experts, j));
  };
  // All threads compute the sums over the choices, which are few.
  Value divisor = of.normalize ? code.divisor(scoreOf) : k.f32(1.0f);
  Value mean = k.f32(0.0f);
  if (of.normalize)
    mean = k.loop(k.i64(0), k.i64(of.k), 1, {mean},
                  [&](Value j, ValueRange sum) -> SmallVector<Value> {
                    Value weight = k.divf(scoreOf(j), divisor);
                    return {k.fma(k.load(cotangent, j), weight, sum[0])};
                  })[0];
  Value total = k.loop(
      k.i64(0), k.i64(of.k), 1, {k.f32(0.0f)},
      [&](Value j, ValueRange sum) -> SmallVector<Value> {
        Value ofWeight =
            k.mulf(k.subf(k.load(cotangent, j), mean), k.f32(of.scaling));
        Value ofScore = k.divf(ofWeight, divisor);
        k.once([&] { k.store(ofScore, ofScores, k.loadIndex(experts, j)); });
        return {k.fma(ofScore, scoreOf(j), sum[0])};
      })[0];
  k.sync();
  total = k.broadcast(total);
  code.overExperts([&](Value at, int64_t count) {
    Value s = k.loadVector(code.scores, at, count);
    Value ds = k.loadVector(ofScores, at, count);
    Value dz = of.sigmoid ? k.mulf(k.mulf(ds, s), k.subf(k.splat(1.0f), s))
                          : k.mulf(s, k.subf(ds, total));
    k.storeVector(dz, result, at, count);
  });
}

} // namespace

static FailureOr<KernelPlan> planRoute(mlir::rota::RouteOp op,
                                       KernelLibrary &library) {
  Routing of(op, op.getExperts());
  int64_t groups = op.getGroups().value_or(1),
          top = op.getTopGroups().value_or(1);
  unsigned hasBias = op.getBias() ? 1 : 0;
  std::string key = of.key() + (hasBias ? " biased " : " ") +
                    std::to_string(top) + " of " + std::to_string(groups);
  FailureOr<std::string> symbol = emitRowCode(
      library, op->getLoc(), "route", key, 3 + hasBias, of.space(),
      [&](RowBuilder &k, Value token) {
        Type f32 = k.ops().getF32Type();
        RouteArguments to{k.argument(0, f32), k.argument(1 + hasBias, f32),
                          k.argument(2 + hasBias, k.ops().getI32Type()),
                          std::nullopt};
        if (hasBias)
          to.bias = k.argument(1, f32);
        TokenCode code(k, of);
        emitChoices(code, to, token, groups, top);
      });
  auto plan = planCall(symbol, of.tokens, 1, /*operands=*/1 + hasBias);
  if (succeeded(plan))
    plan->calls.back().arguments.push_back({KernelArgument::Kind::Result, 1});
  return plan;
}

static FailureOr<KernelPlan> planRouteGrad(mlir::rota::RouteGradOp op,
                                           KernelLibrary &library) {
  Routing of(op, op.getExperts());
  FailureOr<std::string> symbol =
      emitRowCode(library, op->getLoc(), "route_grad", of.key(), 4, of.space(),
                  [&](RowBuilder &k, Value token) {
                    Type f32 = k.ops().getF32Type();
                    Value first = k.mul(token, of.experts),
                          choice = k.mul(token, of.k);
                    Memory experts = k.argument(2, k.ops().getI32Type());
                    TokenCode code(k, of);
                    emitGradient(code, k.offset(k.argument(0, f32), choice),
                                 k.offset(k.argument(1, f32), first),
                                 k.offset(experts, choice),
                                 k.offset(k.argument(3, f32), first));
                  });
  return planCall(symbol, of.tokens, 1, /*operands=*/3);
}

void addRoutingEmitters(KernelEmitters &emitters) {
  emitters.add<planRoute>();
  emitters.add<planRouteGrad>();
}

} // namespace rota::lowering
