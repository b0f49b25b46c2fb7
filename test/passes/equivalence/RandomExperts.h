// SPDX-License-Identifier: Apache-2.0
//
// Random rows of experts: a change of how they are divided, and models that
// make and read them. Some ranks, blocks or experts have all rows, some none,
// some as many as there is room for, and counts may be above the room.
#ifndef ROTA_TEST_PASSES_EQUIVALENCE_RANDOMEXPERTS_H
#define ROTA_TEST_PASSES_EQUIVALENCE_RANDOMEXPERTS_H

#include "test/interpreter/GradientCheck.h"

namespace rota::interpreter {

/// A function `f` of rows [B, R, E] and their counts [B, X], twice, that is one
/// `rota.reshard_rows` between random shardings of a random mesh.
class RandomReshard {
public:
  explicit RandomReshard(uint64_t seed);

  std::string text() const;
  /// True when that row stands in front of the counts of its block.
  bool isFilled(int64_t sequence, int64_t row) const;

  /// Random where no row is filled, too.
  Tensor rows;
  Tensor counts;

private:
  /// All of a mesh axis, or a part of one.
  struct Piece {
    std::string name;
    int64_t size;
  };
  using Pieces = llvm::SmallVector<Piece>;
  /// The pieces that divide each dimension, and those over which the value is
  /// unreduced.
  struct Division {
    Pieces dimensions[3], unreduced;
  };

  void chooseMesh();
  void chooseTo();
  void chooseSizes();
  void fill(int64_t sequence, int64_t block);
  static std::string listOf(const Pieces &pieces);

  Random random;
  std::string mesh;
  Pieces pieces;
  Division from, to;
  int64_t sequences = 1, blocks = 1, room = 1, experts = 1, width = 1;
  int filling = 0;
  int64_t chosen = 0; // a block
  double expected = 1;
};

/// A model of two layers of experts, for squared errors of real numbers.
class RandomExperts {
public:
  explicit RandomExperts(uint64_t seed);

  std::string text() const;
  /// The value of the option `mesh`.
  std::string mesh() const;
  /// Sets the biases of choices among `parameters`: with large ones, all tokens
  /// choose the same experts.
  void setBiases(Tensors &parameters) const;

private:
  int64_t ranks, data, fsdp, tensor, length, context; // sizes of the mesh
  int64_t blocks, experts, choices, capacity;
  int64_t sequences, tokens, parts, width, inner;
  int64_t preferred = 0; // experts from the first on that all choose
  bool isSigmoid;
};

} // namespace rota::interpreter

#endif // ROTA_TEST_PASSES_EQUIVALENCE_RANDOMEXPERTS_H
