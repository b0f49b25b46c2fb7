// SPDX-License-Identifier: Apache-2.0
//
// Device memory that the runtime uses beside a rank's arena: the numbers of a
// step's end, which stay on the device, and what libraries work in. It follows
// from the program alone, so that the compiler can plan it.
#ifndef ROTA_RUNTIME_PROGRAM_RUNTIMEMEMORY_H
#define ROTA_RUNTIME_PROGRAM_RUNTIMEMEMORY_H

#include "runtime/program/Program.h"
#include "runtime/program/StepResult.h"

#include <map>

namespace rota {

/// The sum of squares of one part of a gradient, which counts for the norm.
struct NormTerm {
  int parameter = 0;
  int64_t layer = -1;
  int64_t number = 0; // among those of all ranks, `widest` for each
};

/// In the order of parameter, layer and part, so that neither placement nor
/// schedule changes a bit of their sum. One of each set of replicas counts.
std::vector<NormTerm> normTerms(const Program &program);

/// By the number of a layer that has auxiliary losses: its losses, in
/// Program::auxiliaryLosses. The runtime has the sums of all layers in this
/// order, f32 [microbatches, losses of the layer] for each.
std::map<int64_t, std::vector<int>> auxiliaryLayers(const Program &program);

/// By the number of a layer that is observed: its observations, in
/// Program::observations.
std::map<int64_t, std::vector<int>> observedLayers(const Program &program);

/// Host memory of each rank on a GPU, for bytes in flight to it.
inline constexpr int64_t kStagingBytes = 16 << 20;

/// Places in bytes, the same on every rank.
struct RuntimeMemory {
  int64_t widest = 0;    // the most updates of a stage
  int64_t normCount = 0; // number of normTerms
  int64_t lossRanks = 1; // ranks that add up the loss
  // Own copy of the losses while they are gathered, so that tasks may write the
  // next ones meanwhile. f32 [accumulationSteps, microbatches, lossCalls,
  // lossNumbers]; stays zero where the stage has no loss.
  int64_t ownLosses = 0;
  // f32 [accumulationSteps, auxiliaryCount]: sums of auxiliaryLayers, of which
  // a rank has those of its stage; the others stay zero.
  int64_t auxiliarySums = 0, auxiliaryCount = 0;
  // f64 [Program::auxiliaryLosses, 2]: CotangentNumbers::factors.
  int64_t cotangentFactors = 0;
  // f64 [kStepResults], Device::finishStep and decideStep; then f32 [lossRows,
  // microbatches, lossCalls, lossNumbers]: the losses of all, where row
  // accumulationStep * lossRanks + r is that of rank r in an accumulation step
  // of the step; then f32 [lossRows, auxiliaryCount]: their auxiliary sums;
  // then the tables of this rank, those of an accumulation step after those of
  // the one before: of observedLayers in order, of each [microbatches,
  // tableBytes]. One block, read by the host once a step.
  int64_t result = 0, losses = 0, auxiliary = 0, observed = 0;
  int64_t observedBytes = 0; // per accumulation step
  int64_t lossRows = 1;
  int64_t resultBytes = 0;
  // f32 [2, Program::scalars]: those of the next step if the step before
  // updates the parameters, and if it does not.
  int64_t scalars = 0;
  int64_t history = 0; // f64 [kHistoryNumbers]
  // f64 [squareVersions, widest], and those of all ranks [squareVersions,
  // ranks, widest]. Steps take turns where a step may begin while the squares
  // of the one before still travel: on the CPU.
  int64_t squares = 0, allSquares = 0, squareVersions = 1;
  int64_t order = 0; // i32 [normCount]: NormTerm::number
  // TableMemory of Device::launchTogether, for the squares and for the updates.
  // Only on GPUs.
  int64_t squareTables = 0, squareTableBytes = 0;
  int64_t updateTables = 0, updateTableBytes = 0;
  // Terms of a gradient from another stage: f32 [2, termElements].
  int64_t terms = 0, termElements = 0;
  // For products, and for those of second halves of pairs. Only on GPUs.
  int64_t workspace = 0, pairWorkspace = 0, workspaceBytes = 0;
  int64_t bytes = 0; // total
  // A block of its own, with --ranks nccl: for collectives, and for what the
  // host sends.
  int64_t exchangeBytes = 0, hostBytes = 0;
};
RuntimeMemory runtimeMemory(const Program &program);
/// Whether a stage has pairs, whose halves may run at the same time.
bool hasPairs(const Program &program);

/// Masters or states of one update, in the snapshot that --post-validate takes
/// before the update changes them.
struct SnapshotPiece {
  int64_t source = 0; // in the arena
  int64_t offset = 0; // in the snapshot
  int64_t bytes = 0;
};
std::vector<SnapshotPiece> snapshotPieces(const Program &program,
                                          const Stage &stage);
/// Bytes of the snapshot of a rank of the stage.
int64_t snapshotBytes(const Program &program, const Stage &stage);

/// Bytes of its device that a rank of a stage takes: the arena and, on a GPU,
/// what the runtime has beside it.
int64_t deviceBytes(const Program &program, size_t stage);

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_RUNTIMEMEMORY_H
