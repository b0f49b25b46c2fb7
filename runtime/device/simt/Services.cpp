// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/simt/Services.h"
#include "runtime/device/simt/Block.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>

using namespace rota::simt;
using Kind = WarpOperation::Kind;

static uint32_t along(uint32_t dimension, Size size) {
  return dimension == 0 ? size.x : dimension == 1 ? size.y : size.z;
}

uint32_t rotaSimtThreadIndex(uint32_t dimension) {
  return Block::current().running().index[dimension];
}

uint32_t rotaSimtBlockIndex(uint32_t dimension) {
  return Block::current().getIndex()[dimension];
}

uint32_t rotaSimtBlockSize(uint32_t dimension) {
  return along(dimension, Block::current().getLaunch().block);
}

uint32_t rotaSimtGridSize(uint32_t dimension) {
  return along(dimension, Block::current().getLaunch().grid);
}

uint32_t rotaSimtLane() { return Block::current().running().lane; }

uint32_t rotaSimtWarp() { return Block::current().running().warp; }

void *rotaSimtSharedMemory() { return Block::current().sharedMemory(); }

void rotaSimtRead(const void *address, uint64_t bytes, uint64_t alignment,
                  uint32_t site) {
  if (bytes > 0)
    Block::current().read({address, bytes, alignment, 0, site});
}

void rotaSimtWrite(void *address, uint64_t bytes, uint64_t alignment,
                   const void *value, uint32_t site) {
  if (bytes > 0)
    Block::current().write({address, bytes, alignment, 0, site}, value);
}

void rotaSimtBarrier(uint32_t site) { Block::current().barrier(site); }

void rotaSimtWarpBarrier(uint32_t mask, uint32_t site) {
  Block::current().collective({Kind::WarpBarrier}, mask, site, {});
}

uint32_t rotaSimtShuffle(uint32_t kind, uint32_t mask, uint32_t value,
                         uint32_t operand, uint32_t site) {
  return Block::current().collective({Kind::Shuffle, kind}, mask, site,
                                     {value, operand})[0];
}

uint32_t rotaSimtBallot(uint32_t mask, uint32_t predicate, uint32_t site) {
  return Block::current().collective({Kind::Ballot}, mask, site,
                                     {predicate})[0];
}

void rotaSimtLoadMatrix(uint32_t *result, const void *row, uint32_t matrices,
                        uint32_t transpose, uint32_t site) {
  Operands operands;
  operands.row = row;
  Words words = Block::current().collective(
      {Kind::LoadMatrix, 0, matrices, transpose != 0}, kAllLanes, site,
      operands);
  std::memcpy(result, words.data(), 4 * matrices);
}

void rotaSimtMultiplyBf16(float *result, const RotaSimtFragments *fragments,
                          uint32_t site) {
  Operands operands;
  operands.fragments = *fragments;
  Words words =
      Block::current().collective({Kind::Multiply}, kAllLanes, site, operands);
  std::memcpy(result, words.data(), sizeof(words));
}

void rotaSimtCopyAsync(void *to, const void *from, uint32_t bytes,
                       uint32_t sourceBytes, uint32_t site) {
  Block::current().copy({static_cast<char *>(to),
                         static_cast<const char *>(from), bytes, sourceBytes,
                         site});
}

void rotaSimtCommitCopies() { Block::current().commitCopies(); }

void rotaSimtWaitCopies(uint32_t groups) {
  Block::current().waitForCopies(groups);
}

void rotaSimtProductRead(const void *address, uint64_t bytes,
                         uint64_t alignment, uint32_t site) {
  Block::current().readForProduct({address, bytes, alignment, 0, site});
}

void rotaSimtHoldSums(float *sums, uint32_t count, uint32_t site) {
  Block::current().running().products.hold({sums, count}, site);
}

void rotaSimtTakeSums(float *sums, uint32_t count, uint32_t mayBePending,
                      uint32_t site) {
  Block::current().takeSums({sums, count}, mayBePending != 0, site);
}

void rotaSimtCommitProducts() { Block::current().running().products.commit(); }

void rotaSimtWaitProducts(uint32_t groups) {
  Block::current().waitForProducts(groups);
}

static std::atomic<uint64_t> perturbation = 0; // seed; 0: none

void rota::simt::perturbApproximations(uint64_t seed) { perturbation = seed; }

/// The result of a function of x that a GPU approximates.
static float approximate(float exact, float x) {
  uint64_t seed = perturbation.load(std::memory_order_relaxed);
  if (seed == 0 || x == 0.0f || exact == 0.0f || !std::isfinite(exact))
    return exact;
  uint64_t hash = (seed ^ std::bit_cast<uint32_t>(x)) * 0x9E3779B97F4A7C15ull;
  auto steps = static_cast<int32_t>((hash >> 40) % 5) - 2;
  float near = std::bit_cast<float>(std::bit_cast<int32_t>(exact) + steps);
  return std::isnormal(near) ? near : exact;
}

float rotaSimtExp2(float x) { return approximate(std::exp2(x), x); }
float rotaSimtLog2(float x) { return approximate(std::log2(x), x); }
float rotaSimtSqrt(float x) { return approximate(std::sqrt(x), x); }
float rotaSimtReciprocalSqrt(float x) {
  return approximate(1.0f / std::sqrt(x), x);
}
float rotaSimtReciprocal(float x) { return approximate(1.0f / x, x); }
