// SPDX-License-Identifier: Apache-2.0
//
// The commands of a trainer.
#ifndef ROTA_RUNTIME_TRAIN_TRAIN_H
#define ROTA_RUNTIME_TRAIN_TRAIN_H

#include "runtime/checkpoint/Weights.h"
#include "runtime/train/Data.h"
#include "runtime/train/rank/ProcessRanks.h"

namespace rota {

/// The processor that code is made for, and its features (ProcessorAbi.h).
struct CodeProcessor {
  std::string_view name, features;
};

/// The trainer's main function for the given compiled program (its bytes and
/// functions): parses the arguments, runs, prints errors, and returns an exit
/// code of runtime/Error.h.
int runTrainer(int argc, char **argv, const char *description,
               int64_t descriptionBytes, const RotaTask *tasks,
               const RotaKernel *kernels,
               std::span<const RotaGpuCode> gpuCode = {},
               const CodeProcessor &processor = {});

/// The input of all commands: the ranks of this process, and the data that
/// they share.
struct Run {
  const Executable &executable;
  const Options &options;
  ProcessRanks &machine;
  const Weights *weights; // null: initializers
};

/// Trains. Throws InputError or RunError.
void train(const Run &run);

/// Runs `options.steps` steps on the batch of the file `options.tokens` and
/// writes to `options.output` what `options.write` names: `loss` (f64, before
/// the first update), `logits` (f32, microbatches concatenated along the first
/// dimension), `grad.<tensor>` (f32, of the mean loss at the initial weights,
/// before clipping) and `loss_curve` (f64 [steps], each before its update). The
/// learning rate is constant after the warm-up.
void probe(const Run &run);

/// Prints the mean loss of the weights (of `options.checkpoint` or
/// `options.weights`) over the data: `options.evalSteps` batches, or all.
/// Throws InputError or RunError.
void evaluate(const Run &run);

/// Prints the tokens with which the weights continue
/// `options.samples.prompt`, each as it comes, with commas between them.
/// Throws InputError or RunError.
void generate(const Run &run);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_TRAIN_H
