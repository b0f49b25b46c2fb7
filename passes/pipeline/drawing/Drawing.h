// SPDX-License-Identifier: Apache-2.0
//
// A simulated timeline as text, for people and for other programs.
#ifndef ROTA_PASSES_PIPELINE_DRAWING_DRAWING_H
#define ROTA_PASSES_PIPELINE_DRAWING_DRAWING_H

#include "passes/pipeline/timeline/SteadyStep.h"

namespace rota::pipe {

/// Time from left to right, a line for each rank. A column is as long as the
/// shortest action; a longer one continues with '-', '.' is idle, and '~' waits
/// for a message or a transfer alone. Actions
/// are written as in the text form, without the chunk when a rank has only one;
/// all other actions take no column and are left out. The halves of a pair
/// divide its columns; '+' joins them. With `colour`, each kind has one, in a
/// terminal's escape sequences.
///
///   slot    0  1  2  3  4  5
///   rank 0  F0 F1 .  .  B0 B1
///   rank 1  .  F0 F1 B0 B1 .
std::string drawGrid(const Timeline &timeline, const Simulation &simulation,
                     bool colour = false);

/// Makespan, bubble and the largest idle share of a rank (Simulation); time and
/// bubble of a step without a step barrier; then a line for each
/// rank: busy time, bubble, largest number of live activations,
/// and, where there are such actions, of received values, offloaded
/// activations, weight windows and gradients, with exposed times of transfers.
std::string drawReport(const Timeline &timeline, const Simulation &simulation,
                       const SteadyStep &steady);

/// The CSV that PyTorch reads. A timeline of compute actions has an empty cell
/// for each idle column of the grid; one with other actions has none. A pair is
/// one cell.
std::string drawCsv(const Timeline &timeline, const Simulation &simulation);

/// Shape, makespan, usage, each action's lane, start and end, and each rank's
/// waits, as a JSON object. The second half of a pair has the lane "pair".
std::string drawJson(const Timeline &timeline, const Simulation &simulation,
                     const SteadyStep &steady, const std::string &name);

/// A picture whose width is time, with a lane under each rank for each kind of
/// transfer (UNSHARD, REDUCE_GRAD, OFFLOAD, FETCH) that the timeline has. The
/// halves of a pair are one above the other. What a rank waits for alone is
/// outlined.
std::string drawSvg(const Timeline &timeline, const Simulation &simulation,
                    const std::string &name);

/// Chrome's trace events (https://ui.perfetto.dev): a thread for each rank and
/// one for each kind of its transfers and for the second halves of its pairs, a
/// millisecond for each unit of cost, an arrow for each value that crosses
/// ranks.
std::string drawTrace(const Timeline &timeline, const Simulation &simulation,
                      const std::string &name);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_DRAWING_DRAWING_H
