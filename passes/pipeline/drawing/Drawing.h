// SPDX-License-Identifier: Apache-2.0
//
// A simulated timeline as text, for people and for other programs.
#ifndef ROTA_PASSES_PIPELINE_DRAWING_DRAWING_H
#define ROTA_PASSES_PIPELINE_DRAWING_DRAWING_H

#include "passes/pipeline/timeline/SteadyStep.h"

namespace rota::pipe {

/// The look of a grid.
struct GridStyle {
  bool colour = false; // a colour for each kind, in escape sequences
  int width = 0;       // characters of a line, about; 0: any number
};

/// Time from left to right, a line for each rank. A column is as long as the
/// shortest action; a longer one continues with '-', '.' is idle, and '~' waits
/// for a message or a transfer alone. Actions
/// are written as in the text form, without the chunk when a rank has only one;
/// all other actions take no column and are left out. The halves of a pair
/// divide its columns; '+' joins them. Where lines would be longer than the
/// style allows, columns of the middle are left out, '..' stands for them, and
/// a line below says which.
///
///   slot    0  1  2  3  4  5
///   rank 0  F0 F1 .  .  B0 B1
///   rank 1  .  F0 F1 B0 B1 .
std::string drawGrid(const Timeline &timeline, const Simulation &simulation,
                     GridStyle style = {});

/// Makespan, bubble and the largest idle share of a rank (Simulation); time and
/// bubble of a step without a step barrier; then a line for each
/// rank: busy time, bubble, the most activations that it holds
/// (wholeActivations) and their share of those of 1f1b, and, where there are
/// such actions, of received values, offloaded activations, weight windows and
/// gradients, with exposed times of transfers.
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
