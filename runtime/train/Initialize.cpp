// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Initialize.h"
#include "runtime/checkpoint/Convert.h"
#include "runtime/random/Philox.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace rota {

/// Elements that one piece of a parallel fill writes.
static constexpr int64_t kPiece = 1 << 16;

/// Calls body(begin, end) over [0, count) in parallel.
static void inPieces(RotaContext *context, int64_t count,
                     FunctionRef<void(int64_t, int64_t)> body) {
  parallelPieces(context, (count + kPiece - 1) / kPiece, [&](int64_t piece) {
    body(piece * kPiece, std::min(count, (piece + 1) * kPiece));
  });
}

static void draw(const Initializer &init, const RandomStream &stream,
                 int64_t begin, int64_t end, float *out) {
  switch (init.kind) {
  case Initializer::Kind::Normal:
    return stream.normal(begin, end, init.mean, init.scale, out);
  case Initializer::Kind::Uniform:
    return stream.uniform(begin, end, init.mean, init.scale, out);
  case Initializer::Kind::Constant:
    std::fill(out, out + (end - begin), static_cast<float>(init.mean));
  }
}

static void fillParameter(Machine &machine, int rank, const Update &update,
                          uint64_t seed, const Weights *weights) {
  const Parameter &parameter = machine.program().parameters[update.parameter];
  float *master = machine.at<float>(rank, update.master);
  RandomStream stream(seed, parameter.name, update.layer + 1);
  const TensorView *view =
      weights ? &weights->find(parameter, update.layer) : nullptr;
  inPieces(machine.context(rank), elementCount(parameter),
           [&](int64_t begin, int64_t end) {
             if (view)
               readFloats(*view, begin, end, master + begin);
             else
               draw(parameter.init, stream, begin, end, master + begin);
           });
}

static void writeOwnCopy(Machine &machine, int rank, const Update &update) {
  const Parameter &parameter = machine.program().parameters[update.parameter];
  const float *master = machine.at<float>(rank, update.master);
  char *place = machine.at<char>(rank, update.stored);
  inPieces(machine.context(rank), elementCount(parameter),
           [&](int64_t begin, int64_t end) {
             if (parameter.compute == ElementType::BF16) {
               auto *out = reinterpret_cast<uint16_t *>(place);
               std::transform(master + begin, master + end, out + begin,
                              toBf16);
             } else {
               std::memcpy(place + 4 * begin, master + begin,
                           static_cast<size_t>(end - begin) * 4);
             }
           });
}

void refreshCopies(Machine &machine, int rank, const Update &update, bool own) {
  bool separate = update.stored != update.master;
  if (own && separate)
    writeOwnCopy(machine, rank, update);
  const Parameter &parameter = machine.program().parameters[update.parameter];
  const char *source = machine.at<char>(rank, update.stored);
  int64_t size = byteSize(parameter.compute);
  for (const Place &copy : update.copies)
    inPieces(machine.context(rank), elementCount(parameter),
             [&](int64_t begin, int64_t end) {
               std::memcpy(machine.at<char>(copy) + begin * size,
                           source + begin * size,
                           static_cast<size_t>((end - begin) * size));
             });
}

static void fillTable(Machine &machine, int rank, const RotaryTable &table) {
  float *out = machine.at<float>(rank, table.offset);
  for (int64_t position = 0; position < table.positions; ++position)
    for (double frequency : table.frequencies) {
      double angle = static_cast<double>(position) * frequency;
      *out++ = static_cast<float>(table.scale * std::cos(angle));
      *out++ = static_cast<float>(table.scale * std::sin(angle));
    }
}

void initialize(Machine &machine, uint64_t seed, const Weights *weights) {
  machine.onEachRank([&](int rank) {
    ComputeToken token(machine.cores());
    const Stage &r = machine.program().stages[rank];
    for (const RotaryTable &table : r.tables)
      fillTable(machine, rank, table);
    for (const Update &update : r.updates) {
      fillParameter(machine, rank, update, seed, weights);
      refreshCopies(machine, rank, update, /*own=*/true);
    }
  });
}

} // namespace rota
