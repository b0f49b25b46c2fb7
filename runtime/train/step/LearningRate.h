// SPDX-License-Identifier: Apache-2.0
//
// The learning rate of each step.
#ifndef ROTA_RUNTIME_TRAIN_STEP_LEARNINGRATE_H
#define ROTA_RUNTIME_TRAIN_STEP_LEARNINGRATE_H

#include "runtime/train/options/OptimizerOptions.h"

namespace rota {

/// The rate of step t = 1, 2, ... of T = `steps`. The warm-up is linear (Goyal
/// et al. 2017, "Accurate, large minibatch SGD"): step t of N has the rate
/// peak * t / N. After it, with a decay that begins at step B + 1 and x =
/// (t - B - 1) / (T - B) from there on, the rate is
///   constant  peak
///   linear    peak + (min - peak) * x, B = N
///   cosine    min + (peak - min) * (1 + cos(pi * x)) / 2, B = N (Loshchilov
///             and Hutter 2017, "SGDR", without restarts)
///   wsd       peak up to step B, then as linear, B = max(N, T - round(share *
///             T)) (warm-up, stable, decay: Hu et al. 2024, "MiniCPM"; linear:
///             Hägele et al. 2024, "Scaling laws and compute-optimal training
///             beyond fixed training durations")
/// So step B + 1 has the peak, and step T + 1 would have the minimum.
double learningRateAt(const OptimizerOptions &options, int64_t t,
                      int64_t steps);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_LEARNINGRATE_H
