// SPDX-License-Identifier: Apache-2.0
#include "tools/measure/OpSources.h"

#include <cmath>
#include <fmt/format.h>

namespace rota {
namespace {

/// A function of one op, or of ops that become one kernel, with their results.
std::string function(const std::string &arguments, const std::string &body,
                     const std::string &results, const std::string &types) {
  return fmt::format("func.func @f({}) -> ({}) {{\n{}\nreturn {} : {}\n}}",
                     arguments, types, body, results, types);
}

std::string matrix(int64_t rows, int64_t columns, const std::string &type) {
  return fmt::format("tensor<{}x{}x{}>", rows, columns, type);
}

} // namespace

std::vector<std::string> rowSources(const std::string &type,
                                    const RowSizes &sizes) {
  std::string x = matrix(sizes.tokens, sizes.width, type);
  std::string gain = fmt::format("tensor<{}xf32>", sizes.width);
  std::string wide = matrix(sizes.tokens, 3 * sizes.width, type);
  std::string logits =
      fmt::format("tensor<1x{}x{}x{}>", sizes.tokens, sizes.vocabulary, type);
  std::string targets = fmt::format("tensor<1x{}xi32>", sizes.tokens);
  std::string rows = fmt::format("tensor<1x{}xf32>", sizes.tokens);
  return {
      function(fmt::format("%x: {0}, %a: {0}, %g: {1}", x, gain),
               fmt::format("%s = arith.addf %x, %a : {0}\n"
                           "%y = rota.rms_norm %s, %g epsilon = 1.0e-05 : "
                           "{0}, {1}",
                           x, gain),
               "%s, %y", x + ", " + x),
      function(fmt::format("%dy: {0}, %x: {0}, %g: {1}", x, gain),
               fmt::format("%dx, %dg = rota.rms_norm_grad %dy, %x, %g epsilon "
                           "= 1.0e-05 : ({0}, {0}, {1}) -> ({0}, {1})",
                           x, gain),
               "%dx, %dg", x + ", " + gain),
      function(fmt::format("%x: {0}, %u: {0}", wide),
               fmt::format("%y = rota.activation silu %x, %u : {0}", wide),
               "%y", wide),
      function(fmt::format("%x: {0}, %b: {0}", x),
               fmt::format("%s = arith.addf %x, %b : {0}\n"
                           "%y = rota.activation gelu_tanh %s : {0}",
                           x),
               "%s, %y", x + ", " + x),
      function(fmt::format("%l: {0}, %t: {1}", logits, targets),
               fmt::format("%r:3 = rota.cross_entropy %l, %t : ({0}, {1}) -> "
                           "(tensor<f32>, tensor<f32>, {2})",
                           logits, targets, rows),
               "%r#0, %r#1, %r#2", "tensor<f32>, tensor<f32>, " + rows),
      function(fmt::format("%g: tensor<f32>, %l: {0}, %t: {1}, %m: {2}", logits,
                           targets, rows),
               fmt::format("%r = rota.cross_entropy_grad %g, %l, %t, %m : "
                           "(tensor<f32>, {0}, {1}, {2}) -> ({0})",
                           logits, targets, rows),
               "%r", logits)};
}

AttentionSources attentionSources(const std::string &type,
                                  const AttentionSizes &sizes) {
  std::string q = fmt::format("tensor<{}x{}x{}x{}x{}>", sizes.batch,
                              sizes.tokens, sizes.heads, sizes.headSize, type);
  std::string line = fmt::format("tensor<{}x{}x{}xf32>", sizes.batch,
                                 sizes.heads, sizes.tokens);
  double scale = 1 / std::sqrt(double(sizes.headSize));
  return {function(fmt::format("%q: {0}, %k: {0}, %v: {0}", q),
                   fmt::format("%r:2 = rota.attention %q, %k, %v scale = {2} "
                               ": ({0}, {0}, {0}) -> ({0}, {1})",
                               q, line, scale),
                   "%r#0, %r#1", q + ", " + line),
          function(fmt::format("%dy: {0}, %q: {0}, %k: {0}, %v: {0}, %y: {0}, "
                               "%l: {1}",
                               q, line),
                   fmt::format("%r:3 = rota.attention_grad %dy, %q, %k, %v, "
                               "%y, %l scale = {2} : ({0}, {0}, {0}, {0}, "
                               "{0}, {1}) -> ({0}, {0}, {0})",
                               q, line, scale),
                   "%r#0, %r#1, %r#2", q + ", " + q + ", " + q)};
}

std::string additionSource(int64_t rows) {
  std::string x = matrix(rows, 1024, "f32");
  return function(fmt::format("%x: {0}, %y: {0}", x),
                  fmt::format("%z = arith.addf %x, %y : {0}", x), "%z", x);
}

std::string updateSource(int64_t rows) {
  std::string x = matrix(rows, 1024, "f32");
  return function(fmt::format("%p: {0}, %m: {0}, %v: {0}, %g: {0}", x),
                  fmt::format("%n = arith.addf %m, %g : {0}\n"
                              "%w = arith.addf %v, %g : {0}\n"
                              "%q = arith.subf %p, %n : {0}",
                              x),
                  "%q, %n, %w", x + ", " + x + ", " + x);
}

std::string arithmeticSource(int64_t rows, int operations) {
  std::string x = matrix(rows, 1024, "f32"), body;
  for (int i = 0; i < operations; ++i)
    body += fmt::format("%s{0} = arith.mulf %z{0}, %a : {2}\n"
                        "%z{1} = arith.addf %s{0}, %b : {2}\n",
                        i, i + 1, x);
  return function(fmt::format("%z0: {0}, %a: {0}, %b: {0}", x), body,
                  fmt::format("%z{}", operations), x);
}

} // namespace rota
