// SPDX-License-Identifier: Apache-2.0
//
// The columns of a drawing that an action occupies.
#ifndef ROTA_PASSES_PIPELINE_DRAWING_COLUMNS_H
#define ROTA_PASSES_PIPELINE_DRAWING_COLUMNS_H

#include "passes/pipeline/timeline/Simulator.h"

namespace rota::pipe {

/// A compute action and the columns [first, last] that it fills. The halves of
/// a pair divide its time, as if one followed the other.
struct Cell {
  Action action;
  int first, last;
  size_t position; // in its row
};

/// The columns [first, end) of a wait.
struct WaitCells {
  int first, end;
};

/// The compute actions of a timeline in columns as long as the shortest action
/// that takes time, or half of a pair.
struct Columns {
  double width = 0; // time of a column
  int count = 0;
  std::vector<std::vector<Cell>> ranks;
  std::vector<std::vector<WaitCells>> waits; // by rank
};

Columns layOut(const Timeline &timeline, const Simulation &simulation);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_DRAWING_COLUMNS_H
