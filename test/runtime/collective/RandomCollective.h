// SPDX-License-Identifier: Apache-2.0
//
// Random collectives with a plain reference, for every communicator. The source
// of each rank is a function of seed, rank and element. So each rank knows the
// sources of all others and the exact result.
#ifndef ROTA_TEST_RUNTIME_COLLECTIVE_RANDOMCOLLECTIVE_H
#define ROTA_TEST_RUNTIME_COLLECTIVE_RANDOMCOLLECTIVE_H

#include "runtime/collective/Communicator.h"

#include <random>

namespace rota::test {

/// A mesh of that many ranks with as many axes as it has prime factors, and one
/// of a single rank.
std::vector<MeshAxis> makeMesh(int ranks);

class RandomCollective {
public:
  /// Elements: about `elements` a rank.
  RandomCollective(uint64_t seed, const std::vector<MeshAxis> &mesh,
                   int64_t elements);

  Collective collective;
  Stream stream;

  RankGroup group(int rank) const {
    return groupOf(mesh, rank, collective.axes);
  }
  std::vector<uint8_t> source(int rank) const;
  /// The destination before the collective, and the expected one after it.
  std::vector<uint8_t> before(int rank) const;
  std::vector<uint8_t> expected(int rank) const;
  /// Whether it may work in place, and the byte of the whole at which the
  /// rank's part begins then.
  bool mayBeInPlace() const;
  size_t partBegin(int rank) const;
  /// For failures: "seed 3: all-gather of [...] f32 in a group of 4".
  std::string describe() const;

private:
  void chooseShape(std::mt19937_64 &random);
  void chooseAllToAll(std::mt19937_64 &random, int64_t elements);
  void choosePermute(std::mt19937_64 &random);
  int64_t part() const;
  int64_t sourceCount() const;
  int64_t destinationCount() const;
  float term(int rank, int64_t element) const;
  float old(int rank, int64_t element) const;
  std::vector<uint8_t> encode(const std::vector<float> &values) const;
  float reduced(const RankGroup &group, int64_t element) const;
  float exchanged(const RankGroup &group, int64_t element) const;

  uint64_t seed;
  std::vector<MeshAxis> mesh;
  int64_t members;
  // AllToAll: the output's local shape, the dimension gathered in it and the
  // one that is cut.
  std::vector<int64_t> shape;
  size_t gathered = 0, cut = 0;
};

/// Starts `count` random collectives and messages between all pairs, in one
/// order on all ranks, and waits for them in an order of each rank's own, with
/// random pauses. Expects the results of the reference. Every rank calls it.
void exchangeRandomly(Communicator &communicator, uint64_t seed, int count,
                      int64_t elements);

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_COLLECTIVE_RANDOMCOLLECTIVE_H
