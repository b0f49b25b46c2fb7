// SPDX-License-Identifier: Apache-2.0
//
// Drawings as text: grid, report and CSV.
#include "passes/pipeline/drawing/Columns.h"
#include "passes/pipeline/drawing/Drawing.h"
#include "passes/pipeline/drawing/Table.h"
#include "passes/pipeline/schedules/Schedules.h"

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

/// The columns that a line has room for: all but [first, end).
struct LeftOut {
  int first = 0, end = 0;
  bool has(int column) const { return column >= first && column < end; }
};

/// Leaves out columns of the middle so that a line has `width` characters. Some
/// of both ends stay in any case.
LeftOut leaveOut(int columns, int width, size_t label, size_t cell) {
  constexpr int kFewest = 4;
  int room = (width - int(label)) / int(cell + 1);
  if (width == 0 || columns <= std::max(room, kFewest))
    return {};
  int kept = std::max(room - 1, kFewest); // one for the sign
  int first = (kept + 1) / 2;
  return {first, columns - (kept - first)};
}

std::string joined(const std::vector<GridCell> &cells, size_t width,
                   const LeftOut &left) {
  std::string line;
  auto add = [&](const GridCell &cell, bool isLast) {
    line += cell.colour ? cell.colour + cell.text + "\33[0m" : cell.text;
    if (!isLast)
      line.append(width + 1 - cell.text.size(), ' ');
  };
  for (int i = 0; i < int(cells.size()); ++i) {
    if (i == left.first && left.end > left.first)
      add({".."}, /*isLast=*/false);
    if (!left.has(i))
      add(cells[i], i + 1 == int(cells.size()));
  }
  return line + "\n";
}

/// The cells of a rank.
std::vector<GridCell> rowOf(const Columns &columns, size_t rank,
                            const Shape &shape, bool colour) {
  std::vector<GridCell> row(columns.count, GridCell{"."});
  for (const WaitCells &wait : columns.waits[rank])
    for (int column = wait.first; column < std::min(wait.end, columns.count);
         ++column)
      row[column] = {"~"};
  for (const Cell &cell : columns.ranks[rank]) {
    const char *shade = colour ? colourOf(cell.action.kind) : nullptr;
    row[cell.first] = {cellText(shape, cell.action), shade};
    for (int column = cell.first + 1; column <= cell.last; ++column)
      row[column] = {"-", shade};
  }
  return row;
}

} // namespace

std::string drawGrid(const Timeline &timeline, const Simulation &simulation,
                     GridStyle style) {
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
  LeftOut left = leaveOut(columns.count, style.width, labelWidth, width);
  std::string text = padded("slot", labelWidth) + joined(header, width, left);
  for (size_t rank = 0; rank < columns.ranks.size(); ++rank)
    text +=
        padded("rank " + std::to_string(rank), labelWidth) +
        joined(rowOf(columns, rank, timeline.shape, style.colour), width, left);
  if (left.end > left.first)
    text += "slots " + std::to_string(left.first) + " to " +
            std::to_string(left.end - 1) +
            " are left out; `rota schedule --format svg` draws all\n";
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
  const Shape &shape = timeline.shape;
  auto activations = [&](const RankUsage &report) {
    return wholeActivations(report.peakLive, shape);
  };
  column("activations", [&](const RankUsage &report) {
    return numberCell(activations(report));
  });
  column("of 1f1b", [&](const RankUsage &report) {
    return percentCell(shareOfOneFOneB(activations(report), shape));
  });
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
  if (hasAny(timeline, ActionKind::SumGrad))
    exposure("exposed SUM_GRAD", &Exposure::sums);
  if (hasAny(timeline, ActionKind::Refresh))
    exposure("exposed REFRESH", &Exposure::refreshes);
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
