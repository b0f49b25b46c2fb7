// SPDX-License-Identifier: Apache-2.0
//
// The two commands of a trainer.
#ifndef ROTA_RUNTIME_TRAIN_TRAIN_H
#define ROTA_RUNTIME_TRAIN_TRAIN_H

#include "runtime/checkpoint/Weights.h"
#include "runtime/data/Batches.h"
#include "runtime/train/Machine.h"
#include "runtime/train/Options.h"

namespace rota {

/// The trainer's main function for the given compiled program (JSON text and
/// functions): parses the arguments, runs, prints errors, and returns an exit
/// code of runtime/Error.h.
int runTrainer(int argc, char **argv, const char *description,
               int64_t descriptionBytes, const RotaTask *tasks,
               const RotaKernel *kernels);

/// Trains. Throws InputError or RunError.
void train(const Executable &executable, const Options &options);

/// Runs `options.steps` steps on the batch of the file `options.tokens` and
/// writes to `options.output` what `options.write` names: `loss` (f64, before
/// the first update), `logits` (f32, microbatches concatenated along the first
/// dimension), `grad.<tensor>` (f32, of the mean loss at the initial weights,
/// before clipping) and `loss_curve` (f64 [steps], each before its update). The
/// learning rate is constant after the warm-up.
void probe(const Executable &executable, const Options &options);

/// Parts that both share.
int threadCount(const Options &options);
std::unique_ptr<Weights> openWeights(const Program &program,
                                     const Options &options);
void loadBatch(Machine &machine, const Batches &batches, Split split,
               int64_t batch);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_TRAIN_H
