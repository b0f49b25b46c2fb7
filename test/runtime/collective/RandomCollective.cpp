// SPDX-License-Identifier: Apache-2.0
#include "test/runtime/collective/RandomCollective.h"
#include "runtime/collective/Blocks.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

namespace rota::test {

using Kind = Collective::Kind;

namespace {

uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

float bf16FromBits(uint16_t bits) {
  uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

/// The nearest bf16 value; the even one of two equally near.
uint16_t bf16Bits(float value) {
  uint32_t wide;
  std::memcpy(&wide, &value, sizeof wide);
  uint16_t below = static_cast<uint16_t>(wide >> 16), above = below + 1;
  double down = std::fabs(double(value) - bf16FromBits(below));
  double up = std::fabs(double(bf16FromBits(above)) - value);
  if (down != up)
    return down < up ? below : above;
  return below % 2 == 0 ? below : above;
}

int64_t draw(std::mt19937_64 &random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

} // namespace

std::vector<MeshAxis> makeMesh(int ranks) {
  std::vector<MeshAxis> mesh = {{"one", 1}};
  for (int factor = 2; ranks > 1; ++factor)
    while (ranks % factor == 0) {
      mesh.push_back({fmt::format("axis{}", mesh.size()), factor});
      ranks /= factor;
    }
  return mesh;
}

RandomCollective::RandomCollective(uint64_t seed,
                                   const std::vector<MeshAxis> &mesh,
                                   int64_t elements)
    : seed(seed), mesh(mesh) {
  std::mt19937_64 random(mix(seed));
  collective.kind = Kind(draw(random, 0, 5));
  collective.type = ElementType(draw(random, 0, 2));
  stream = Stream(draw(random, 0, 3));
  std::vector<int> axes(mesh.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::shuffle(axes.begin(), axes.end(), random);
  axes.resize(draw(random, 0, 3) == 0 ? draw(random, 0, axes.size())
                                      : axes.size());
  collective.axes = axes;
  members = groupSize(mesh, axes);
  collective.maximum = collective.kind == Kind::AllReduce && draw(random, 0, 1);
  collective.accumulate =
      collective.kind == Kind::ReduceScatter && draw(random, 0, 1);
  collective.size = draw(random, 1, elements);
  if (collective.kind == Kind::AllToAll)
    chooseAllToAll(random, elements);
  else if (collective.kind == Kind::Permute)
    choosePermute(random);
  else if (collective.kind != Kind::AllReduce)
    chooseShape(random);
}

/// One dimension, the first of several, the last, or one between.
void RandomCollective::chooseShape(std::mt19937_64 &random) {
  collective.outer = draw(random, 0, 2) == 0 ? draw(random, 2, 9) : 1;
  collective.inner = draw(random, 0, 1) == 0 ? draw(random, 2, 9) : 1;
  collective.size = std::max<int64_t>(
      collective.size / collective.outer / collective.inner, 1);
  if (draw(random, 0, 1) == 0) // equal parts
    collective.size = part() * members;
}

void RandomCollective::chooseAllToAll(std::mt19937_64 &random,
                                      int64_t elements) {
  gathered = draw(random, 0, 3);
  cut = (gathered + draw(random, 1, 3)) % 4;
  shape = {draw(random, 1, 3), draw(random, 1, 4), draw(random, 1, 5),
           draw(random, 1, 6)};
  int64_t block = std::accumulate(shape.begin(), shape.end(), int64_t(1),
                                  std::multiplies<>());
  shape[cut] *= std::max<int64_t>(collective.size / block / members, 1);
  std::vector<int64_t> input = shape;
  shape[gathered] *= members;
  input[cut] *= members;
  auto product = [](auto begin, auto end) {
    return std::accumulate(begin, end, int64_t(1), std::multiplies<>());
  };
  collective.outer = product(shape.begin(), shape.begin() + gathered);
  collective.size = shape[gathered];
  collective.inner = product(shape.begin() + gathered + 1, shape.end());
  collective.splitOuter = product(input.begin(), input.begin() + cut);
  collective.splitSize = input[cut];
  collective.splitInner = product(input.begin() + cut + 1, input.end());
}

void RandomCollective::choosePermute(std::mt19937_64 &random) {
  collective.order = collective.axes;
  std::shuffle(collective.order.begin(), collective.order.end(), random);
  collective.shift = draw(random, 0, members - 1);
  collective.mirrored = draw(random, 0, 1);
}

int64_t RandomCollective::part() const {
  return (collective.size + members - 1) / members;
}

int64_t RandomCollective::sourceCount() const {
  bool isPart = collective.kind == Kind::AllGather;
  return collective.outer * (isPart ? part() : collective.size) *
         collective.inner;
}

int64_t RandomCollective::destinationCount() const {
  bool isPart =
      collective.kind == Kind::ReduceScatter || collective.kind == Kind::Slice;
  return collective.outer * (isPart ? part() : collective.size) *
         collective.inner;
}

/// Values of very different magnitudes, so that the order of a sum changes it.
float RandomCollective::term(int rank, int64_t element) const {
  uint64_t bits = mix(mix(seed * 1000 + rank) + element);
  if (collective.type == ElementType::I32)
    return static_cast<float>(bits % 2001) - 1000.0f;
  float value = std::ldexp(static_cast<float>(bits >> 40) / (1 << 24) - 0.5f,
                           static_cast<int>(bits % 24));
  return collective.type == ElementType::BF16 ? bf16FromBits(bf16Bits(value))
                                              : value;
}

float RandomCollective::old(int rank, int64_t element) const {
  return term(rank + 500, element);
}

std::vector<uint8_t>
RandomCollective::encode(const std::vector<float> &values) const {
  size_t bytes = byteSize(collective.type);
  std::vector<uint8_t> encoded(values.size() * bytes);
  for (size_t i = 0; i < values.size(); ++i) {
    int32_t whole = static_cast<int32_t>(values[i]);
    uint16_t half = bf16Bits(values[i]);
    const void *element = &values[i];
    if (collective.type == ElementType::I32)
      element = &whole;
    if (collective.type == ElementType::BF16)
      element = &half;
    std::memcpy(encoded.data() + i * bytes, element, bytes);
  }
  return encoded;
}

std::vector<uint8_t> RandomCollective::source(int rank) const {
  std::vector<float> values(sourceCount());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = term(rank, i);
  return encode(values);
}

std::vector<uint8_t> RandomCollective::before(int rank) const {
  std::vector<float> values(destinationCount());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = old(rank, i);
  return encode(values);
}

float RandomCollective::reduced(const RankGroup &group, int64_t element) const {
  float result = term(group.ranks[0], element);
  for (int64_t i = 1; i < members; ++i) {
    float next = term(group.ranks[i], element);
    result = collective.maximum ? std::max(result, next) : result + next;
  }
  return result;
}

float RandomCollective::exchanged(const RankGroup &group,
                                  int64_t element) const {
  std::vector<int64_t> at(shape.size());
  for (size_t d = shape.size(); d-- > 0; element /= shape[d])
    at[d] = element % shape[d];
  int64_t part = shape[gathered] / members, giver = at[gathered] / part;
  at[gathered] %= part;
  at[cut] += group.index * shape[cut];
  int64_t there = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t size = shape[d];
    if (d == gathered)
      size /= members;
    if (d == cut)
      size *= members;
    there = there * size + at[d];
  }
  return term(group.ranks[giver], there);
}

std::vector<uint8_t> RandomCollective::expected(int rank) const {
  const Collective &c = collective;
  RankGroup g = group(rank);
  bool isPart = c.kind == Kind::ReduceScatter || c.kind == Kind::Slice;
  int64_t width = isPart ? part() : c.size;
  // Permute: the sender's position along `axes`, or from their end, plus the
  // shift, is this rank's along `order`.
  int giver = rank;
  if (c.kind == Kind::Permute) {
    auto own =
        (groupOf(mesh, rank, c.order).index + members - c.shift) % members;
    giver = g.ranks[static_cast<size_t>(c.mirrored ? members - 1 - own : own)];
  }
  std::vector<float> values(destinationCount());
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t inner = i % c.inner, s = i / c.inner % width,
            outer = i / c.inner / width;
    // The place of the own part's element in the whole.
    int64_t own = g.index * part() + s;
    int64_t inWhole = (outer * c.size + own) * c.inner + inner;
    switch (c.kind) {
    case Kind::AllGather:
      values[i] = term(g.ranks[s / part()],
                       (outer * part() + s % part()) * c.inner + inner);
      break;
    case Kind::ReduceScatter:
      values[i] = own < c.size ? reduced(g, inWhole) : 0.0f;
      if (c.accumulate)
        values[i] = old(rank, i) + values[i];
      break;
    case Kind::AllReduce:
      values[i] = reduced(g, i);
      break;
    case Kind::AllToAll:
      values[i] = exchanged(g, i);
      break;
    case Kind::Slice:
      values[i] = own < c.size ? term(rank, inWhole) : 0.0f;
      break;
    case Kind::Permute:
      values[i] = term(giver, i);
      break;
    }
  }
  return encode(values);
}

bool RandomCollective::mayBeInPlace() const {
  const Collective &c = collective;
  if (c.kind == Kind::AllReduce)
    return true;
  bool isCut = c.kind == Kind::AllGather ||
               (c.kind == Kind::ReduceScatter && !c.accumulate);
  return isCut && c.outer == 1 && c.size % members == 0;
}

size_t RandomCollective::partBegin(int rank) const {
  if (collective.kind == Kind::AllReduce)
    return 0;
  return group(rank).index * part() * collective.inner *
         byteSize(collective.type);
}

std::string RandomCollective::describe() const {
  return fmt::format("seed {}: {} in a group of {}", seed,
                     rota::describe(collective), members);
}

namespace {

struct Started {
  std::string what;
  Request request = 0;
  std::vector<uint8_t> source, destination, expected;
  size_t begin = 0; // byte of the destination where the result is
};

/// One buffer serves as both: the part lies in the whole.
void startInPlace(Communicator &communicator, const RandomCollective &next,
                  Started &started) {
  int rank = communicator.rank();
  size_t begin = next.partBegin(rank);
  bool gathers = next.collective.kind == Kind::AllGather;
  if (gathers)
    std::copy(started.source.begin(), started.source.end(),
              started.destination.begin() + static_cast<int64_t>(begin));
  else
    started.destination = started.source;
  uint8_t *whole = started.destination.data(), *part = whole + begin;
  started.begin = gathers ? 0 : begin;
  started.request =
      communicator.start(next.stream, next.collective, next.group(rank),
                         gathers ? part : whole, gathers ? whole : part);
}

std::vector<uint8_t> messageBytes(uint64_t seed, int from, int to,
                                  int64_t size) {
  std::vector<uint8_t> bytes(size);
  for (int64_t i = 0; i < size; ++i)
    bytes[i] = static_cast<uint8_t>(mix(seed + 100 * from + to) + 31 * i);
  return bytes;
}

void pause(std::mt19937_64 &random) {
  if (draw(random, 0, 3) == 0)
    std::this_thread::sleep_for(
        std::chrono::microseconds(draw(random, 0, 300)));
}

void startMessages(Communicator &communicator, uint64_t seed, int64_t size,
                   std::vector<Started> &all) {
  int rank = communicator.rank();
  for (int peer = 0; peer < communicator.size(); ++peer) {
    if (peer == rank)
      continue;
    Stream stream = peer > rank ? Stream::Forward : Stream::Backward;
    Started &sent = all.emplace_back();
    sent.source = messageBytes(seed, rank, peer, size);
    sent.request = communicator.send(stream, peer, sent.source.data(), size);
    Started &received = all.emplace_back();
    received.what = fmt::format("message of seed {} from {}", seed, peer);
    received.expected = messageBytes(seed, peer, rank, size);
    received.destination.resize(size);
    received.request =
        communicator.receive(peer < rank ? Stream::Forward : Stream::Backward,
                             peer, received.destination.data(), size);
  }
}

} // namespace

void exchangeRandomly(Communicator &communicator, uint64_t seed, int count,
                      int64_t elements) {
  std::mt19937_64 random(mix(seed) + communicator.rank());
  std::vector<MeshAxis> mesh = makeMesh(communicator.size());
  int rank = communicator.rank();
  std::vector<Started> all;
  all.reserve(count * (1 + 2 * communicator.size()));
  for (int i = 0; i < count; ++i) {
    RandomCollective next(seed * 10000 + i, mesh, elements);
    Started &started = all.emplace_back();
    started.what = next.describe();
    started.source = next.source(rank);
    started.destination = next.before(rank);
    started.expected = next.expected(rank);
    pause(random);
    communicator.setPosition(started.what);
    if (next.mayBeInPlace() && i % 2 == 0)
      startInPlace(communicator, next, started);
    else
      started.request =
          communicator.start(next.stream, next.collective, next.group(rank),
                             started.source.data(), started.destination.data());
    if (i % 4 == 0)
      startMessages(communicator, seed + i, 1 + i * elements / 50, all);
  }
  std::shuffle(all.begin(), all.end(), random);
  for (Started &started : all) {
    pause(random);
    TransferTime span = communicator.wait(started.request);
    EXPECT_LE(span.begin, span.end) << started.what;
    EXPECT_TRUE(communicator.isDone(started.request));
    EXPECT_TRUE(std::equal(started.expected.begin(), started.expected.end(),
                           started.destination.begin() +
                               static_cast<int64_t>(started.begin)))
        << "rank " << rank << ", " << started.what;
  }
}

} // namespace rota::test
