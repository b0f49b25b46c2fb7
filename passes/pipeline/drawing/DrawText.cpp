// SPDX-License-Identifier: Apache-2.0
//
// Drawings as text: grid, report and CSV.
#include "passes/pipeline/drawing/Columns.h"
#include "passes/pipeline/drawing/Drawing.h"
#include "passes/pipeline/drawing/Table.h"

#include <algorithm>

namespace rota::pipe {
namespace {

std::string cellText(const Shape &shape, const Action &action) {
  std::string text = toString(action);
  if (shape.chunks() == shape.stages)
    text.erase(0, text.find_first_not_of("0123456789"));
  return action.startsPair ? text + "+" : text;
}

std::string padded(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

/// One cell of the grid; `colour` is a terminal's escape sequence, or null.
struct GridCell {
  std::string text;
  const char *colour = nullptr;
};

const char *colourOf(ActionKind kind) {
  // Blue, yellow, green, magenta.
  constexpr const char *kColours[] = {"\33[34m", "\33[33m", "\33[32m",
                                      "\33[35m"};
  return kColours[static_cast<int>(kind)];
}

std::string joined(const std::vector<GridCell> &cells, size_t width) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const GridCell &cell = cells[i];
    line += cell.colour ? cell.colour + cell.text + "\33[0m" : cell.text;
    if (i + 1 < cells.size())
      line.append(width + 1 - cell.text.size(), ' ');
  }
  return line + "\n";
}

} // namespace

std::string drawGrid(const Timeline &timeline, const Simulation &simulation,
                     bool colour) {
  Columns columns = layOut(timeline, simulation);
  std::vector<GridCell> header;
  for (int column = 0; column < columns.count; ++column)
    header.push_back({std::to_string(column)});
  size_t width = header.empty() ? 0 : header.back().text.size();
  for (const std::vector<Cell> &cells : columns.ranks)
    for (const Cell &cell : cells)
      width = std::max(width, cellText(timeline.shape, cell.action).size());
  std::string last = std::to_string(columns.ranks.size() - 1);
  size_t labelWidth = std::string("rank " + last + "  ").size();
  std::string text = padded("slot", labelWidth) + joined(header, width);
  for (size_t rank = 0; rank < columns.ranks.size(); ++rank) {
    std::vector<GridCell> row(columns.count, GridCell{"."});
    for (const WaitCells &wait : columns.waits[rank])
      for (int column = wait.first; column < std::min(wait.end, columns.count);
           ++column)
        row[column] = {"~"};
    for (const Cell &cell : columns.ranks[rank]) {
      const char *shade = colour ? colourOf(cell.action.kind) : nullptr;
      row[cell.first] = {cellText(timeline.shape, cell.action), shade};
      for (int column = cell.first + 1; column <= cell.last; ++column)
        row[column] = {"-", shade};
    }
    text +=
        padded("rank " + std::to_string(rank), labelWidth) + joined(row, width);
  }
  return text;
}

std::string drawReport(const Timeline &timeline, const Simulation &simulation,
                       const SteadyStep &steady) {
  std::vector<std::vector<std::string>> table(1 + simulation.ranks.size());
  auto column = [&](const char *title, auto textOf) {
    table[0].push_back(title);
    for (size_t rank = 0; rank < simulation.ranks.size(); ++rank)
      table[1 + rank].push_back(textOf(simulation.ranks[rank]));
  };
  auto count = [&](const char *title, int RankUsage::*field) {
    column(title, [&](const RankUsage &report) {
      return std::to_string(report.*field);
    });
  };
  auto exposure = [&](const char *title, double Exposure::*field) {
    column(title, [&](const RankUsage &report) {
      return numberCell(report.exposed.*field);
    });
  };
  size_t next = 0;
  column("rank", [&](const RankUsage &) { return std::to_string(next++); });
  column("busy",
         [](const RankUsage &report) { return numberCell(report.busy); });
  column("bubble",
         [](const RankUsage &report) { return percentCell(report.bubble); });
  count("live", &RankUsage::peakLive);
  if (hasCommunication(timeline)) {
    count("received F", &RankUsage::peakReceivedForward);
    count("received B", &RankUsage::peakReceivedBackward);
  }
  if (hasAny(timeline, ActionKind::Offload)) {
    count("offloaded", &RankUsage::peakOffloaded);
    exposure("exposed OFFLOAD", &Exposure::offloads);
    exposure("exposed FETCH", &Exposure::fetches);
  }
  if (hasAny(timeline, ActionKind::Unshard)) {
    count("windows", &RankUsage::peakWindows);
    exposure("exposed UNSHARD", &Exposure::gathers);
  }
  if (hasAny(timeline, ActionKind::ReduceGrad)) {
    count("gradients", &RankUsage::peakGradients);
    exposure("exposed REDUCE_GRAD", &Exposure::reductions);
  }
  return "makespan " + numberCell(simulation.makespan) + ", bubble " +
         percentCell(simulation.bubble) + ", idle " +
         percentCell(simulation.idleShare) +
         "\nwithout a step barrier: " + numberCell(steady.time) +
         " a step, bubble " + percentCell(steady.bubble) + "\n" +
         alignedTable(table);
}

std::string drawCsv(const Timeline &timeline, const Simulation &simulation) {
  for (const std::vector<Action> &row : timeline.ranks)
    for (const Action &action : row)
      if (!isCompute(action.kind))
        return printCsv(timeline.ranks);
  std::string text;
  Columns columns = layOut(timeline, simulation);
  for (size_t rank = 0; rank < columns.ranks.size(); ++rank) {
    const std::vector<Action> &row = timeline.ranks[rank];
    int column = 0;
    for (const Cell &cell : columns.ranks[rank]) {
      if (endsPair(row, cell.position)) // in the cell of its other half
        column = cell.first;
      for (; column < cell.first; ++column)
        text += ',';
      text += textOf(row, cell.position);
    }
    text += '\n';
  }
  return text;
}

} // namespace rota::pipe
