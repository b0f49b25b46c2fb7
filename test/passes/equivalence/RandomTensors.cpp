// SPDX-License-Identifier: Apache-2.0
//
// Random ops on tensors of any rank.
#include "test/passes/equivalence/RandomTensors.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace rota::interpreter;
using Shape = RandomTensors::Shape;
using Value = RandomTensors::Value;

/// Largest tensor that an op may make.
static constexpr int64_t largest = 1200;

RandomTensors::RandomTensors(uint64_t seed, bool isWhole)
    : random(seed), isWhole(isWhole) {
  const int64_t sizes[] = {2, 4, 6, 8, 3, 5};
  batch = sizes[below(5)];
  length = sizes[below(5)];
  width = 2 * sizes[1 + below(4)];
  vocabulary = sizes[below(6)] + sizes[1 + below(3)];
}

int64_t RandomTensors::below(int64_t end) {
  return int64_t(random.uniform(0, double(end)));
}

std::string rota::interpreter::tensorType(llvm::ArrayRef<int64_t> shape,
                                          llvm::StringRef element) {
  std::string type = "tensor<";
  for (int64_t size : shape)
    type += std::to_string(size) + "x";
  return type + element.str() + ">";
}

void RandomTensors::addValue(std::string name, const Shape &shape) {
  values.push_back({std::move(name), shape, 0.6});
}

const Value &RandomTensors::pick() {
  int64_t recent = std::min<int64_t>(values.size(), 4);
  return below(2) ? values[values.size() - 1 - below(recent)]
                  : values[below(values.size())];
}

const Value *RandomTensors::find(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<const Value *> found;
  for (const Value &value : values)
    if (llvm::ArrayRef<int64_t>(value.shape) == shape)
      found.push_back(&value);
  return found.empty() ? nullptr : found[below(found.size())];
}

/// Another value of the same shape, or the same.
const Value &RandomTensors::like(const Value &value) {
  return *find(value.shape);
}

const Value &RandomTensors::define(std::string op, Shape shape, double size) {
  std::string name = fresh(), type = tensorType(shape);
  ops += "  " + name + " = " + op + "\n";
  if (size > 2 && below(3) == 0) {
    std::string bounded = fresh();
    ops += "  " + bounded + " = math.tanh " + name + " : " + type + "\n";
    name = bounded;
    size = 0.7;
  } else if (size > 2) {
    std::string factor = splat(shape, 1 / size), scaled = fresh();
    ops += "  " + scaled + " = arith.mulf " + name + ", " + factor + " : " +
           type + "\n";
    name = scaled;
    size = 1;
  }
  values.push_back({name, std::move(shape), size});
  return values.back();
}

/// A constant of equal elements.
std::string RandomTensors::splat(llvm::ArrayRef<int64_t> shape,
                                 double element) {
  std::string name = fresh();
  char digits[32];
  std::snprintf(digits, sizeof(digits), "%.6e", element);
  ops += "  " + name + " = arith.constant dense<" + digits +
         "> : " + tensorType(shape) + "\n";
  return name;
}

void RandomTensors::addElementwise() {
  const Value &a = pick(), &b = like(a);
  std::string type = tensorType(a.shape);
  std::string operands = a.name + ", " + b.name;
  switch (below(7)) {
  case 0:
  case 1:
    define("arith.addf " + operands + " : " + type, a.shape, a.size + b.size);
    return;
  case 2:
    define("arith.subf " + operands + " : " + type, a.shape, a.size + b.size);
    return;
  case 3:
    define("arith.mulf " + operands + " : " + type, a.shape, a.size * b.size);
    return;
  case 4:
    define("math.fma " + operands + ", " + like(a).name + " : " + type, a.shape,
           a.size * b.size + a.size);
    return;
  case 5:
    define("arith.negf " + a.name + " : " + type, a.shape, a.size);
    return;
  default:
    define("rota.name \"value" + std::to_string(count) + "\" " + a.name +
               " : " + type,
           a.shape, a.size);
  }
}

/// A nonlinear function: e = exp(tanh(a)) lies between 1/e and e.
void RandomTensors::addSmooth() {
  const Value &a = pick(), &b = like(a);
  std::string type = " : " + tensorType(a.shape);
  Shape shape = a.shape;
  double size = b.size;
  std::string left = b.name, bounded = fresh(), positive = fresh();
  ops += "  " + bounded + " = math.tanh " + a.name + type + "\n";
  ops += "  " + positive + " = math.exp " + bounded + type + "\n";
  switch (below(5)) {
  case 0:
    define("math.sqrt " + positive + type, shape, 1);
    return;
  case 1:
    define("math.rsqrt " + positive + type, shape, 1);
    return;
  case 2:
    define("math.log " + positive + type, shape, 0.7);
    return;
  case 3:
    define("arith.maximumf " + left + ", " + bounded + type, shape, size);
    return;
  default:
    define("arith.divf " + left + ", " + positive + type, shape, size);
  }
}

void RandomTensors::addSelect() {
  const Value &a = pick(), &b = like(a);
  std::string flags = fresh(), type = tensorType(a.shape);
  ops += "  " + flags + " = arith.cmpf ogt, " + a.name + ", " + b.name + " : " +
         type + "\n";
  define("arith.select " + flags + ", " + like(a).name + ", " + like(a).name +
             " : " + tensorType(a.shape, "i1") + ", " + type,
         a.shape, std::max(a.size, b.size));
}

/// Equal elements, or a row of different ones.
void RandomTensors::addConstant() {
  const Value &a = pick();
  if (below(2) || a.shape.size() != 1) {
    std::string name = splat(a.shape, random.uniform(-1, 1));
    values.push_back({name, a.shape, 0.6});
    return;
  }
  std::string elements;
  for (int64_t i = 0; i < a.shape[0]; ++i)
    elements += (i ? ", " : "") + std::to_string(random.uniform(-1, 1));
  define("arith.constant dense<[" + elements + "]> : " + tensorType(a.shape),
         a.shape, 0.6);
}

/// Letters that both operands have are summed over or kept, the others are
/// kept, in any order.
void RandomTensors::addEinsum() {
  const Value a = pick(), b = pick();
  std::string lhs, rhs;
  std::string kept;
  Shape sizes;
  for (size_t i = 0; i < a.shape.size(); ++i)
    lhs += char('a' + i);
  std::string summed;
  double terms = 1;
  for (size_t j = 0; j < b.shape.size(); ++j) {
    char letter = char('n' + j);
    for (size_t i = 0; i < a.shape.size(); ++i)
      if (a.shape[i] == b.shape[j] && rhs.find(lhs[i]) == std::string::npos &&
          below(5) != 0) {
        letter = lhs[i];
        if (below(3) != 0) {
          summed += letter;
          terms *= a.shape[i];
        }
        break;
      }
    rhs += letter;
  }
  auto keep = [&](char letter, int64_t size) {
    if (summed.find(letter) != std::string::npos ||
        kept.find(letter) != std::string::npos)
      return;
    int64_t at = below(kept.size() + 1);
    kept.insert(kept.begin() + at, letter);
    sizes.insert(sizes.begin() + at, size);
  };
  for (auto [letter, size] : llvm::zip(lhs, a.shape))
    keep(letter, size);
  for (auto [letter, size] : llvm::zip(rhs, b.shape))
    keep(letter, size);
  if (elementCount(sizes) > largest || sizes.size() > 5)
    return addReduction();
  define("rota.einsum \"" + lhs + "," + rhs + "->" + kept + "\" " + a.name +
             ", " + b.name + " : (" + tensorType(a.shape) + ", " +
             tensorType(b.shape) + ") -> " + tensorType(sizes),
         sizes,
         a.size * b.size * (a.name == b.name ? terms : std::sqrt(terms)));
}

void RandomTensors::addReduction() {
  const Value &a = pick();
  if (a.shape.empty())
    return addElementwise();
  Shape kept;
  std::string dims;
  double terms = 1;
  int64_t certain = below(a.shape.size());
  for (int64_t dim = 0; dim < int64_t(a.shape.size()); ++dim) {
    if (dim != certain && below(3) != 0) {
      kept.push_back(a.shape[dim]);
      continue;
    }
    dims += (dims.empty() ? "" : ", ") + std::to_string(dim);
    terms *= a.shape[dim];
  }
  bool isSum = below(4) != 0;
  define(std::string("rota.reduce ") + (isSum ? "sum " : "max ") + a.name +
             " dims [" + dims + "] : " + tensorType(a.shape) + " -> " +
             tensorType(kept),
         kept, isSum ? a.size * terms / 2 : a.size);
}

void RandomTensors::addBroadcast() {
  const Value &a = pick();
  Shape shape = a.shape;
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, a.shape.size()));
  const int64_t sizes[] = {batch, length, width, vocabulary};
  for (int64_t added = 1 + below(2); added > 0; --added) {
    int64_t at = below(shape.size() + 1), size = sizes[below(4)];
    if (elementCount(shape) * size > largest || shape.size() == 4)
      break;
    shape.insert(shape.begin() + at, size);
    for (int64_t &dim : dims)
      dim += dim >= at;
  }
  std::string text;
  for (int64_t dim : dims)
    text += (text.empty() ? "" : ", ") + std::to_string(dim);
  define("rota.broadcast " + a.name + " dims [" + text +
             "] : " + tensorType(a.shape) + " -> " + tensorType(shape),
         shape, a.size);
}

/// Splits a dimension, merges two, or flattens all and cuts anew.
void RandomTensors::addReshape() {
  const Value &a = pick();
  Shape shape = a.shape;
  if (shape.empty())
    return addBroadcast();
  int64_t dim = below(shape.size());
  auto divide = [&](int64_t size) {
    llvm::SmallVector<int64_t> divisors;
    for (int64_t divisor = 1; divisor <= size; ++divisor)
      if (size % divisor == 0)
        divisors.push_back(divisor);
    return divisors[below(divisors.size())];
  };
  if (below(4) == 0) {
    int64_t major = divide(elementCount(shape));
    shape = {major, elementCount(shape) / major};
  } else if (below(2) && dim > 0) {
    shape[dim - 1] *= shape[dim];
    shape.erase(shape.begin() + dim);
  } else if (shape.size() < 5) {
    int64_t major = divide(shape[dim]);
    shape[dim] /= major;
    shape.insert(shape.begin() + dim, major);
  }
  define("rota.reshape " + a.name + " : " + tensorType(a.shape) + " -> " +
             tensorType(shape),
         shape, a.size);
}

/// A value or a constant of the last dimension of `value`.
std::string RandomTensors::gainOf(const Value &value) {
  if (const Value *gain = find({value.shape.back()}))
    return gain->name;
  return splat({value.shape.back()}, 0.7);
}

void RandomTensors::addNorm() {
  const Value &a = pick();
  if (a.shape.empty())
    return addSmooth();
  const Value &dy = like(a);
  Shape shape = a.shape;
  std::string gain = gainOf(a), type = tensorType(shape),
              gainType = tensorType({shape.back()});
  std::string centered = below(2) ? "centered " : "";
  if (!isWhole || below(2)) {
    define("rota.rms_norm " + centered + a.name + ", " + gain +
               " epsilon = 0.0625 : " + type + ", " + gainType,
           shape, 1);
    return;
  }
  std::string pair = fresh();
  ops += "  " + pair + ":2 = rota.rms_norm_grad " + centered + dy.name + ", " +
         a.name + ", " + gain + " epsilon = 0.0625 : (" + type + ", " + type +
         ", " + gainType + ") -> (" + type + ", " + gainType + ")\n";
  values.push_back({pair + "#0", shape, 2});
  values.push_back({pair + "#1", {shape.back()}, 2});
}

void RandomTensors::addGate() {
  const Value &a = pick(), &b = like(a), &dy = like(a);
  Shape shape = a.shape;
  std::string type = tensorType(shape);
  const char *const kinds[] = {"silu ", "gelu ", "gelu_tanh "};
  std::string kind = kinds[below(3)];
  bool isGated = below(3) != 0;
  std::string up = isGated ? ", " + b.name : "";
  if (!isWhole || below(2)) {
    define("rota.activation " + kind + a.name + up + " : " + type, shape,
           a.size * (isGated ? b.size : 1));
    return;
  }
  std::string grad = "rota.activation_grad " + kind + dy.name + ", " + a.name +
                     up + " : (" + type + ", " + type;
  if (!isGated) {
    define(grad + ") -> " + type, shape, 1);
    return;
  }
  std::string pair = fresh();
  ops += "  " + pair + ":2 = " + grad + ", " + type + ") -> (" + type + ", " +
         type + ")\n";
  values.push_back({pair + "#0", shape, 1});
  values.push_back({pair + "#1", shape, 1});
}

/// The text of a random form of attention, after its scale.
std::string RandomTensors::attentionForm() {
  std::string text = " scale = 0.25";
  if (below(2))
    text += " window = " + std::to_string(1 + below(length + 2));
  if (below(3) == 0)
    text += " soft_cap = 1.5";
  return below(3) == 0 ? text + " bidirectional" : text;
}

/// Two parts along a dimension, or two values one behind the other.
void RandomTensors::addSplit() {
  const Value a = pick();
  if (a.shape.empty())
    return addElementwise();
  int64_t dim = below(a.shape.size()), size = a.shape[dim];
  std::string tail = " dim = " + std::to_string(dim) + " : (";
  if (size < 2 || below(2)) {
    if (2 * elementCount(a.shape) > largest)
      return addReduction();
    const Value b = like(a);
    Shape whole = a.shape;
    whole[dim] = 2 * size;
    std::string type = tensorType(a.shape);
    define("rota.concat " + a.name + ", " + b.name + tail + type + ", " + type +
               ") -> " + tensorType(whole),
           whole, std::max(a.size, b.size));
    return;
  }
  Shape first = a.shape, second = a.shape;
  first[dim] = 1 + below(size - 1);
  second[dim] = size - first[dim];
  std::string pair = fresh();
  ops += "  " + pair + ":2 = rota.split " + a.name + tail +
         tensorType(a.shape) + ") -> (" + tensorType(first) + ", " +
         tensorType(second) + ")\n";
  values.push_back({pair + "#0", first, a.size});
  values.push_back({pair + "#1", second, a.size});
}

/// Adds attention of values with heads, or out of one whose last dimension
/// becomes heads; key heads are sums over groups of heads. Values may be larger
/// than keys: all that the query heads of a group have.
void RandomTensors::addAttention() {
  const Value *x = find({batch, length, width});
  if (!x)
    return addGate();
  llvm::SmallVector<int64_t> heads;
  for (int64_t count : {1, 2, 4, 6, 8})
    if (width % count == 0)
      heads.push_back(count);
  int64_t h = heads[below(heads.size())], keys = h;
  if (h % 2 == 0 && below(2))
    keys = below(2) ? h / 2 : 1;
  Shape query{batch, length, h, width / h}, key{batch, length, keys, width / h},
      group{batch, length, keys, h / keys, width / h}, value = key;
  if (batch * length * h * (width / keys) <= largest && below(3) == 0)
    value = {batch, length, keys, width / keys};
  Shape output{batch, length, h, value[3]};
  std::string from = tensorType(x->shape), q = tensorType(query),
              k = tensorType(key), g = tensorType(group), v = tensorType(value),
              o = tensorType(output);
  std::string qn = fresh(), gn = fresh(), kn = fresh(), vn = fresh();
  ops += "  " + qn + " = rota.reshape " + x->name + " : " + from + " -> " + q +
         "\n  " + gn + " = rota.reshape " + like(*x).name + " : " + from +
         " -> " + g + "\n  " + kn + " = rota.reduce sum " + gn +
         " dims [3] : " + g + " -> " + k + "\n  " + vn + " = rota.reshape " +
         (value == key ? kn + " : " + k : like(*x).name + " : " + from) +
         " -> " + v + "\n";
  values.push_back({qn, query, x->size});
  values.push_back({kn, key, 1});
  std::string form = attentionForm(), types = q + ", " + k + ", " + v;
  std::string before = qn + ", " + kn + ", " + vn,
              rows = tensorType({batch, h, length}), on = fresh(), after;
  if (below(3) == 0) {
    std::string type = tensorType({h});
    const Value &sink = define(
        "rota.reduce sum " + qn + " dims [0, 1, 3] : " + q + " -> " + type, {h},
        double(batch * length * query[3]) * x->size);
    form = " sinks " + sink.name + form;
    after = ", " + type;
  }
  ops += "  " + on + ":2 = rota.attention " + before + form + " : (" + types +
         after + ") -> (" + o + ", " + rows + ")\n";
  values.push_back({on + "#0", output, 1});
  if (isWhole && below(2)) {
    std::string dn = fresh();
    ops += "  " + dn + (after.empty() ? ":3" : ":4") +
           " = rota.attention_grad " + find(output)->name + ", " + before +
           ", " + on + "#0, " + on + "#1" + form + " : (" + o + ", " + types +
           ", " + o + ", " + rows + after + ") -> (" + types + after + ")\n";
    values.push_back({dn + "#0", query, 1});
    values.push_back({dn + "#1", key, 1});
    values.push_back({dn + "#2", value, 1});
    if (!after.empty())
      values.push_back({dn + "#3", {h}, 1});
  }
  const Value out = values.back().shape == query ? values.back() : *find(query);
  define("rota.reshape " + out.name + " : " + q + " -> " + from,
         {batch, length, width}, out.size);
}

/// The table may have more rows than there are positions.
void RandomTensors::addRope() {
  llvm::SmallVector<const Value *> found;
  for (const Value &value : values)
    if (value.shape.size() == 4 && value.shape[3] % 2 == 0)
      found.push_back(&value);
  if (found.empty())
    return addReshape();
  const Value a = *found[below(found.size())];
  int64_t pairs = a.shape[3] / 2;
  Shape table{a.shape[1] + (below(3) == 0 ? 2 : 0), pairs, 2};
  std::string frequencies, name = fresh();
  for (int64_t i = 0; i < pairs; ++i)
    frequencies += (i ? ", " : "") + std::to_string(1.0 / (1 + i));
  ops += "  " + name + " = rota.rotary_table frequencies [" + frequencies +
         "] scale = 1.0 : " + tensorType(table) + "\n";
  define(std::string("rota.rope ") + (below(2) ? "inverse " : "") + a.name +
             ", " + name + " : " + tensorType(a.shape) + ", " +
             tensorType(table),
         a.shape, a.size);
}

void RandomTensors::addEmbedding() {
  Shape out{batch, length, width}, table{vocabulary, width};
  std::string tokens = tensorType({batch, length}, "i32");
  const Value *x = find(below(2) ? out : table);
  if (!x)
    return addBroadcast();
  bool isForward = x->shape.size() == 2;
  Shape result = isForward ? out : table;
  define(std::string(isForward ? "rota.embedding" : "rota.embedding_grad") +
             " %tokens, " + x->name + " : (" + tokens + ", " +
             tensorType(x->shape) + ") -> " + tensorType(result),
         result, isForward ? x->size : 2 * x->size);
}

void RandomTensors::addCrossEntropy() {
  Shape shape{batch, length, vocabulary}, rows{batch, length};
  const Value *logits = find(shape);
  if (!logits)
    return addEinsum();
  std::string type = tensorType(shape), scalar = tensorType({}), name = fresh(),
              l = logits->name;
  ops += "  " + name + ":3 = rota.cross_entropy " + l + ", %targets : (" +
         type + ", " + tensorType(rows, "i32") + ") -> (" + scalar + ", " +
         scalar + ", " + tensorType(rows) + ")\n";
  values.push_back({name + "#1", {}, double(batch * length)});
  values.push_back({name + "#2", rows, 2});
  values.push_back({name + "#0", {}, double(batch * length)});
  if (below(2))
    define("rota.cross_entropy_grad " + find({})->name + ", " + l +
               ", %targets, " + name + "#2 : (" + scalar + ", " + type + ", " +
               tensorType(rows, "i32") + ", " + tensorType(rows) + ") -> " +
               type,
           shape, double(batch * length));
}

void RandomTensors::addOp() {
  using Add = void (RandomTensors::*)();
  static constexpr Add adds[] = {
      &RandomTensors::addElementwise, &RandomTensors::addElementwise,
      &RandomTensors::addElementwise, &RandomTensors::addElementwise,
      &RandomTensors::addSmooth,      &RandomTensors::addSelect,
      &RandomTensors::addConstant,    &RandomTensors::addEinsum,
      &RandomTensors::addEinsum,      &RandomTensors::addEinsum,
      &RandomTensors::addReduction,   &RandomTensors::addReduction,
      &RandomTensors::addBroadcast,   &RandomTensors::addBroadcast,
      &RandomTensors::addReshape,     &RandomTensors::addReshape,
      &RandomTensors::addNorm,        &RandomTensors::addGate,
      &RandomTensors::addSplit,       &RandomTensors::addAttention,
      &RandomTensors::addRope,        &RandomTensors::addEmbedding,
      &RandomTensors::addCrossEntropy};
  // Ops that need tokens are last.
  (this->*adds[below(std::size(adds) - (isWhole ? 0 : 2))])();
}
