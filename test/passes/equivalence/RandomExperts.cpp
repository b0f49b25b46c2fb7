// SPDX-License-Identifier: Apache-2.0
//
// Random rows of experts.
#include "test/passes/equivalence/RandomExperts.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using namespace rota::interpreter;

/// An integer from `least` to `most`.
static int64_t pick(Random &random, int64_t least, int64_t most) {
  return least + int64_t(random.uniform(0, double(most - least + 1)));
}

//===----------------------------------------------------------------------===//
// Rows that are divided in another way
//===----------------------------------------------------------------------===//

namespace {
enum Filling { OneBlock, Full, SomeEmpty, AboveTheRoom, Any };
} // namespace

RandomReshard::RandomReshard(uint64_t seed) : random(seed) {
  chooseMesh();
  for (const Piece &piece : pieces) {
    int64_t place = pick(random, 0, 5);
    if (place < 5)
      (place < 3    ? from.dimensions[place]
       : place == 3 ? from.dimensions[0]
                    : from.unreduced)
          .push_back(piece);
  }
  chooseTo();
  chooseSizes();
  rows = random.integers({sequences, blocks * room, width}, 1000);
  counts = Tensor({sequences, blocks * experts});
  filling = int(pick(random, OneBlock, Any));
  chosen = pick(random, 0, blocks - 1);
  for (int64_t sequence = 0; sequence < sequences; ++sequence)
    for (int64_t block = 0; block < blocks; ++block)
      fill(sequence, block);
}

/// Up to 16 ranks along one to three axes, of which some are in two parts.
void RandomReshard::chooseMesh() {
  const char *axes[] = {"data", "fsdp", "expert", "sequence", "tensor"};
  const int64_t sizes[] = {2, 2, 3, 4, 4};
  int64_t ranks = 1;
  for (const char *axis : axes) {
    int64_t size = sizes[pick(random, 0, 4)];
    bool isLast = llvm::StringRef(axis) == "tensor";
    if (ranks * size > 16 || (pick(random, 0, 1) && (ranks > 1 || !isLast)))
      continue;
    ranks *= size;
    mesh += llvm::formatv("{0}{1} = {2}", mesh.empty() ? "" : ", ", axis, size);
    if (size == 4 && pick(random, 0, 2) == 0) {
      pieces.push_back({std::string(axis) + ":(1)2", 2});
      pieces.push_back({std::string(axis) + ":(2)2", 2});
    } else {
      pieces.push_back({axis, size});
    }
  }
  for (size_t i = pieces.size(); i > 1; --i)
    std::swap(pieces[i - 1], pieces[size_t(pick(random, 0, int64_t(i) - 1))]);
}

/// Half of the time one piece moves between sequences and rows.
void RandomReshard::chooseTo() {
  to = from;
  to.unreduced.clear();
  if (pick(random, 0, 1)) {
    int64_t source = from.dimensions[0].empty() ? 1 : 0;
    if (!to.dimensions[source].empty())
      to.dimensions[1 - source].push_back(to.dimensions[source].pop_back_val());
    return;
  }
  for (Pieces &dimension : to.dimensions)
    dimension.clear();
  for (const Piece &piece : pieces) {
    bool isSum = llvm::any_of(from.unreduced, [&](const Piece &other) {
      return other.name == piece.name;
    });
    int64_t place = pick(random, 0, 4);
    if (isSum && place == 4)
      to.unreduced.push_back(piece);
    else if (place < 3)
      to.dimensions[place].push_back(piece);
  }
}

/// Chooses sizes that the two divisions cut evenly into sequences and blocks;
/// elements of a row may be padded.
void RandomReshard::chooseSizes() {
  auto partsOf = [](const Pieces &pieces) {
    int64_t parts = 1;
    for (const Piece &piece : pieces)
      parts *= piece.size;
    return parts;
  };
  auto both = [&](int dimension) {
    return std::lcm(partsOf(from.dimensions[dimension]),
                    partsOf(to.dimensions[dimension]));
  };
  sequences = both(0) * pick(random, 1, 2);
  blocks = both(1) * pick(random, 1, 2);
  room = pick(random, 1, 4);
  experts = pick(random, 1, 3);
  width = pick(random, 1, 5);
  expected = double(pick(random, 1, 4)) / 4;
}

void RandomReshard::fill(int64_t sequence, int64_t block) {
  bool isEmpty = (filling == OneBlock && block != chosen) ||
                 (filling == SomeEmpty && pick(random, 0, 1) == 0);
  int64_t left = filling == AboveTheRoom ? 2 * room : room;
  for (int64_t expert = 0; expert < experts && !isEmpty; ++expert) {
    bool takesRest = expert + 1 == experts && filling != Any;
    int64_t count = takesRest ? left : pick(random, 0, left);
    left -= count;
    counts({sequence, block * experts + expert}) = double(count);
  }
}

bool RandomReshard::isFilled(int64_t sequence, int64_t row) const {
  double count = 0;
  for (int64_t expert = 0; expert < experts; ++expert)
    count += counts({sequence, row / room * experts + expert});
  return double(row % room) < count;
}

std::string RandomReshard::listOf(const Pieces &pieces) {
  return "[" +
         llvm::join(llvm::map_range(
                        pieces, [](const Piece &piece) { return piece.name; }),
                    ", ") +
         "]";
}

std::string RandomReshard::text() const {
  auto counted = [](const Division &division) {
    return "[" + listOf(division.dimensions[0]) + ", " +
           listOf(division.dimensions[1]);
  };
  auto whole = [&](const Division &division) {
    std::string text =
        "<" + counted(division) + ", " + listOf(division.dimensions[2]) + "]";
    if (!division.unreduced.empty())
      text += " unreduced " + listOf(division.unreduced);
    return text + ">";
  };
  std::string type =
      llvm::formatv("tensor<{0}x{1}x{2}xf64>", sequences, blocks * room, width);
  std::string numbers =
      llvm::formatv("tensor<{0}x{1}xi32>", sequences, blocks * experts);
  auto argument = [](const char *name, const std::string &type,
                     const std::string &sharding) {
    return llvm::formatv("%{0}: {1} {{rota.sharding = #rota.sharding{2}}", name,
                         type, sharding)
        .str();
  };
  return "rota.mesh <" + mesh + ">\nfunc.func @f(" +
         argument("x", type, whole(from)) + ", " +
         argument("s", numbers, "<" + counted(from) + "]>") + ", " +
         argument("r", numbers, "<" + counted(to) + "]>") + ") -> (" + type +
         " {rota.sharding = #rota.sharding" + whole(to) + "}) {\n" +
         llvm::formatv("  %y = rota.reshard_rows %x sent %s received %r blocks "
                       "= {0} fill = {1:f2} from {2} to {3} reason \"test\" : "
                       "{4}, {5}\n  return %y : {4}\n}\n",
                       blocks, expected, whole(from), whole(to), type, numbers)
             .str();
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

RandomExperts::RandomExperts(uint64_t seed) {
  Random random(seed);
  ranks = int64_t(1) << pick(random, 0, 2);
  data = fsdp = tensor = length = 1;
  int64_t *others[] = {&data, &fsdp, &tensor, &length};
  *others[pick(random, 0, 3)] = pick(random, 1, 2);
  context = pick(random, 0, 2) ? 1 : 2;
  // Parts of a sequence on each rank of `context`, or none.
  parts = context * pick(random, 0, 2);
  blocks = ranks * pick(random, 1, 2);
  int64_t ofBlock = pick(random, 1, 3);
  experts = blocks * ofBlock;
  choices = pick(random, 1, std::min<int64_t>(experts, 3));
  capacity = pick(random, 0, 3); // 0: none
  sequences = ranks * data * fsdp * pick(random, 1, 2);
  parts = std::max<int64_t>(parts, 1);
  tokens = 4 * pick(random, 1, 2);
  width = 2 * pick(random, 1, 3);
  inner = 2 * pick(random, 1, 3);
  isSigmoid = pick(random, 0, 1);
  // One expert, all of a block, or none.
  const int64_t some[] = {0, 0, 1, ofBlock};
  preferred = some[pick(random, 0, 3)];
}

std::string RandomExperts::mesh() const {
  std::string text = "expert=" + std::to_string(ranks);
  for (auto [axis, size] : {std::pair("data", data),
                            {"fsdp", fsdp},
                            {"tensor", tensor},
                            {"context", context},
                            {"sequence", length}})
    if (size > 1)
      text += std::string(",") + axis + "=" + std::to_string(size);
  return text;
}

void RandomExperts::setBiases(Tensors &parameters) const {
  for (auto &[name, tensor] : parameters)
    if (llvm::StringRef(name).ends_with("bias"))
      for (int64_t i = 0; i < tensor.size(); ++i)
        tensor[i] = i < preferred ? 50 : 0;
}

/// A layer, squared errors of its results, and a real input. `$B` and its like
/// stand for sizes: sequences, tokens, experts, choices, rows, width, inner
/// width, blocks, parts of all sequences; $C, $G, $Q and $H for a capacity, the
/// form of scores, a fill, and the parts of a sequence.
static constexpr const char *model = R"(
rota.stack @layers layers = 2 pattern [@experts] {
  rota.layer @experts {
    rota.param @router : tensor<$Xx$Exf64> axes ["router", "embed"] init #rota.normal<mean = 0.0, deviation = 0.1>
    rota.param @bias : tensor<$Xxf64> axes ["choice"] init #rota.constant<value = 0.0>
    rota.param @up : tensor<$Xx$Fx$Exf64> axes ["experts", "mlp", "embed"] init #rota.normal<mean = 0.0, deviation = 0.1>
    rota.param @down : tensor<$Xx$Fx$Exf64> axes ["experts", "mlp", "embed"] init #rota.normal<mean = 0.0, deviation = 0.1>
    func.func @forward(%x: tensor<$Bx$Sx$Exf64>) -> tensor<$Bx$Sx$Exf64> {
      %wr = rota.read @router : tensor<$Xx$Exf64>
      %b = rota.read @bias : tensor<$Xxf64>
      %z = rota.einsum "bsk,nk->bsn" %x, %wr : (tensor<$Bx$Sx$Exf64>, tensor<$Xx$Exf64>) -> tensor<$Bx$Sx$Xxf64>
      %w, %e = rota.route %z bias %b $Gscaling = 1.5 : (tensor<$Bx$Sx$Xxf64>, tensor<$Xxf64>) -> (tensor<$Bx$Sx$Kxf64>, tensor<$Bx$Sx$Kxi32>)
      %p, %c = rota.expert_places %e rows = $R blocks = $P$C$H : tensor<$Bx$Sx$Kxi32> -> tensor<$Mx$Xxi32>
      %r = rota.dispatch %x, %p counts %c blocks = $P$Q$H : (tensor<$Bx$Sx$Exf64>, tensor<$Bx$Sx$Kxi32>, tensor<$Mx$Xxi32>) -> tensor<$Mx$Rx$Exf64>
      %wu = rota.read @up : tensor<$Xx$Fx$Exf64>
      %u0 = rota.grouped_product %r, %wu, %c transposed blocks = $P$Q : (tensor<$Mx$Rx$Exf64>, tensor<$Xx$Fx$Exf64>, tensor<$Mx$Xxi32>) -> tensor<$Mx$Rx$Fxf64>
      %u = rota.name "moe_mlpwi_0" %u0 : tensor<$Mx$Rx$Fxf64>
      %g = rota.activation silu %u : tensor<$Mx$Rx$Fxf64>
      %wd = rota.read @down : tensor<$Xx$Fx$Exf64>
      %d0 = rota.grouped_product %g, %wd, %c blocks = $P$Q : (tensor<$Mx$Rx$Fxf64>, tensor<$Xx$Fx$Exf64>, tensor<$Mx$Xxi32>) -> tensor<$Mx$Rx$Exf64>
      %d = rota.name "moe_mlpwo" %d0 : tensor<$Mx$Rx$Exf64>
      %o = rota.combine %d, %p weights %w counts %c blocks = $P$Q$H : (tensor<$Mx$Rx$Exf64>, tensor<$Bx$Sx$Kxi32>, tensor<$Bx$Sx$Kxf64>, tensor<$Mx$Xxi32>) -> tensor<$Bx$Sx$Exf64>
      %y = arith.addf %x, %o : tensor<$Bx$Sx$Exf64>
      return %y : tensor<$Bx$Sx$Exf64>
    }
  }
}
func.func @embed(%x: tensor<$Bx$Sx$Exf64>) -> tensor<$Bx$Sx$Exf64> {
  return %x : tensor<$Bx$Sx$Exf64>
}
func.func @loss(%y: tensor<$Bx$Sx$Exf64>, %target: tensor<$Bx$Sx$Exf64>) -> (tensor<f64>, tensor<f64>) {
  %difference = arith.subf %y, %target : tensor<$Bx$Sx$Exf64>
  %square = rota.einsum "bsk,bsk->" %difference, %difference : (tensor<$Bx$Sx$Exf64>, tensor<$Bx$Sx$Exf64>) -> tensor<f64>
  %one = arith.constant dense<1.0> : tensor<f64>
  return %square, %one : tensor<f64>, tensor<f64>
}
)";

std::string RandomExperts::text() const {
  int64_t ofBlock = experts / blocks;
  int64_t room = tokens / parts * std::min(choices, ofBlock);
  if (capacity > 0)
    room = std::min(room, capacity * ofBlock);
  double share = double(tokens / parts * choices) / double(blocks * room);
  std::map<char, std::string> values = {
      {'C', capacity > 0 ? " capacity = " + std::to_string(capacity) : ""},
      // The weight of one choice, normalized, is a constant, whose derivative
      // is zero but for rounding.
      {'G', std::string(isSigmoid ? "sigmoid " : "") +
                (choices > 1 ? "normalize " : "")},
      {'Q', share < 1 ? llvm::formatv(" fill = {0:f4}", share).str() : ""},
      {'H', parts > 1 ? " parts = " + std::to_string(parts) : ""}};
  for (auto [letter, size] : {std::pair('B', sequences),
                              {'S', tokens},
                              {'X', experts},
                              {'K', choices},
                              {'R', blocks * room},
                              {'E', width},
                              {'F', inner},
                              {'P', blocks},
                              {'M', parts * sequences}})
    values[letter] = std::to_string(size);
  std::string text;
  for (const char *at = model; *at; ++at)
    text += *at == '$' ? values.at(*++at) : std::string(1, *at);
  return text;
}
