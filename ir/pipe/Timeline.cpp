// SPDX-License-Identifier: Apache-2.0
//
// The text form of actions and timelines, and the arithmetic of shapes.
#include "ir/pipe/Timeline.h"

#include <algorithm>

namespace rota::pipe {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// Takes a number of at most nine digits off the front of `text`.
std::optional<int> takeNumber(std::string_view &text) {
  size_t length = 0;
  int value = 0;
  while (length < text.size() && isDigit(text[length]))
    if (++length > 9)
      return std::nullopt;
    else
      value = value * 10 + (text[length - 1] - '0');
  if (length == 0)
    return std::nullopt;
  text.remove_prefix(length);
  return value;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  if (!text.empty() && text.front() > ' ' && text.back() > ' ')
    return text;
  size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos)
    return text.substr(0, 0);
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

constexpr std::string_view kPairSuffix = ")OVERLAP_F_B";

/// True for PyTorch's `[chunk]WAIT_SEND_F[microbatch]` and the like.
bool isWait(std::string_view text) {
  if (!takeNumber(text))
    return false;
  for (std::string_view name :
       {"WAIT_SEND_F", "WAIT_SEND_B", "WAIT_REDUCE_GRAD"})
    if (text.starts_with(name)) {
      text.remove_prefix(name.size());
      takeNumber(text);
      return text.empty();
    }
  return false;
}

/// Reads `(0F7;7B3)OVERLAP_F_B` into `row`. False when it has another form.
bool parsePair(std::string_view cell, std::vector<Action> &row) {
  if (cell.front() != '(' || !cell.ends_with(kPairSuffix))
    return false;
  cell.remove_prefix(1);
  cell.remove_suffix(kPairSuffix.size());
  size_t middle = std::min(cell.find(';'), cell.size());
  std::optional<Action> first = parseAction(trim(cell.substr(0, middle)));
  if (!first || middle == cell.size())
    return false;
  std::optional<Action> second = parseAction(trim(cell.substr(middle + 1)));
  if (!second)
    return false;
  first->startsPair = true;
  row.push_back(*first);
  row.push_back(*second);
  return true;
}

/// Reads one cell into `row`. A cell is empty, an action, a wait or a pair;
/// false when it is none of these.
bool parseCell(std::string_view cell, std::vector<Action> &row) {
  if (std::optional<Action> action = parseAction(cell)) {
    row.push_back(*action);
    return true;
  }
  return cell.empty() || isWait(cell) || parsePair(cell, row);
}

/// The text of a cell in an error message: short and printable.
std::string quoted(std::string_view text) {
  constexpr size_t kLongest = 40;
  std::string result = "'";
  for (char c : text.substr(0, kLongest))
    result += (c >= ' ' && c <= '~') ? c : '?';
  return result + (text.size() > kLongest ? "...'" : "'");
}

} // namespace

std::optional<Action> parseAction(std::string_view text) {
  std::optional<int> chunk = takeNumber(text);
  if (!chunk)
    return std::nullopt;
  size_t length = 0;
  while (length < text.size() && !isDigit(text[length]))
    ++length;
  std::string_view name = text.substr(0, length);
  if (name.empty())
    return std::nullopt;
  text.remove_prefix(length);
  auto found = std::find_if(std::begin(kActionKinds), std::end(kActionKinds),
                            [&](const ActionKindInfo &k) {
                              return k.name[0] == name[0] && k.name == name;
                            });
  if (found == std::end(kActionKinds))
    return std::nullopt;
  Action action{*chunk, ActionKind(found - kActionKinds), 0};
  if (found->hasMicrobatch) {
    std::optional<int> microbatch = takeNumber(text);
    if (!microbatch)
      return std::nullopt;
    action.microbatch = *microbatch;
  }
  if (!text.empty())
    return std::nullopt;
  return action;
}

int Shape::rankOf(int chunk, int microbatch) const {
  if (isUnpipelined(chunk))
    return microbatch % stages;
  int repeat = chunk / parts / stages, column = chunk / parts % stages;
  return placement == Placement::V && repeat % 2 == 1 ? stages - 1 - column
                                                      : column;
}

bool Shape::owns(int rank, int chunk) const {
  return isUnpipelined(chunk) || rankOf(chunk) == rank;
}

int Shape::chunkOf(int rank, int row) const {
  if (row == rows())
    return stages * rows();
  int repeat = row / parts;
  bool back = placement == Placement::V && repeat % 2 == 1;
  return (repeat * stages + (back ? stages - 1 - rank : rank)) * parts +
         row % parts;
}

bool Shape::sendsForward(int chunk, int microbatch) const {
  return chunk + 1 < chunks() &&
         rankOf(chunk, microbatch) != rankOf(chunk + 1, microbatch);
}

bool Shape::sendsBackward(int chunk, int microbatch) const {
  return chunk > 0 &&
         rankOf(chunk, microbatch) != rankOf(chunk - 1, microbatch);
}

/// `chunk` where it exists and the kind reads and makes values.
static int neighbour(const Shape &shape, ActionKind kind, int chunk) {
  bool exists = chunk >= 0 && chunk < shape.chunks();
  return exists && kind != ActionKind::BackwardWeight ? chunk : kNoChunk;
}

int Shape::producerOf(const Action &action) const {
  return neighbour(*this, action.kind,
                   action.chunk + (isForward(action.kind) ? -1 : 1));
}

int Shape::consumerOf(const Action &action) const {
  return neighbour(*this, action.kind,
                   action.chunk + (isForward(action.kind) ? 1 : -1));
}

std::string checkShape(const Shape &shape) {
  auto positive = [](const char *what, int value) {
    return value >= 1 ? std::string()
                      : std::string("expected a positive number of ") + what +
                            ", got " + std::to_string(value);
  };
  for (const std::string &error :
       {positive("stages", shape.stages), positive("repeats", shape.repeats),
        positive("microbatches", shape.microbatches),
        positive("parts", shape.parts)})
    if (!error.empty())
      return error;
  if (shape.stages > kMaxStages)
    return "expected at most " + std::to_string(kMaxStages) + " stages, got " +
           std::to_string(shape.stages);
  int64_t actions = shape.hasUnpipelined ? shape.microbatches : 0;
  int64_t product = 1;
  std::string names, numbers;
  for (auto [name, value] : {std::pair("stages", shape.stages),
                             {"repeats", shape.repeats},
                             {"parts", shape.parts},
                             {"microbatches", shape.microbatches}}) {
    if (std::string_view(name) == "parts" && value == 1)
      continue;
    names += (names.empty() ? "" : " * ") + std::string(name);
    numbers += (numbers.empty() ? "" : " * ") + std::to_string(value);
    product = std::min(product * value, kMaxActions + 1);
  }
  if (product + actions > kMaxActions)
    return "expected " + names + " to be at most " +
           std::to_string(kMaxActions) + ", got " + numbers;
  if (shape.hasUnpipelined && shape.microbatches % shape.stages != 0)
    return "expected microbatches to be a multiple of stages, which divide "
           "those of the layers outside of the pipeline, got " +
           std::to_string(shape.microbatches) + " and " +
           std::to_string(shape.stages);
  return "";
}

bool hasCommunication(const Timeline &timeline) {
  for (const std::vector<Action> &row : timeline.ranks)
    for (const Action &action : row)
      if (isMessage(action.kind))
        return true;
  return false;
}

bool hasAny(const Timeline &timeline, ActionKind kind) {
  for (const std::vector<Action> &row : timeline.ranks)
    for (const Action &action : row)
      if (action.kind == kind)
        return true;
  return false;
}

bool hasPairs(const Timeline &timeline) {
  for (const std::vector<Action> &row : timeline.ranks)
    for (const Action &action : row)
      if (action.startsPair)
        return true;
  return false;
}

void dropPairs(Timeline &timeline) {
  for (std::vector<Action> &row : timeline.ranks)
    for (Action &action : row)
      action.startsPair = false;
}

std::string textOf(const std::vector<Action> &row, size_t position) {
  std::string text = toString(row[position]);
  if (endsPair(row, position))
    return ";" + text + std::string(kPairSuffix);
  return (row[position].startsPair ? "(" : "") + text;
}

std::string printCsv(const ActionRows &ranks) {
  std::string text;
  for (const std::vector<Action> &row : ranks) {
    for (size_t i = 0; i < row.size(); ++i)
      text += (i && !endsPair(row, i) ? "," : "") + textOf(row, i);
    text += '\n';
  }
  return text;
}

std::optional<ActionRows> parseCsv(std::string_view text, std::string &error) {
  ActionRows ranks;
  // Spreadsheets put a byte order mark before the text.
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  if (text.starts_with(mark))
    text.remove_prefix(mark.size());
  // A line break ends a row; blank lines at the end of the file are no rows.
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  if (text.empty()) {
    error = "line 1, column 1: expected a row of actions for each rank, got an "
            "empty file";
    return std::nullopt;
  }
  size_t begin = 0;
  while (begin <= text.size()) {
    size_t lineEnd = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, lineEnd - begin);
    std::vector<Action> &row = ranks.emplace_back();
    if (trim(line).empty()) {
      error = "line " + std::to_string(ranks.size()) +
              ": expected a row of actions, got a blank line";
      return std::nullopt;
    }
    row.reserve(std::count(line.begin(), line.end(), ',') + 1);
    for (size_t cell = begin; cell <= lineEnd;) {
      size_t end = std::min(text.find(',', cell), lineEnd);
      std::string_view content = text.substr(cell, end - cell);
      if (!parseCell(trim(content), row)) {
        size_t spaces = trim(content).data() - content.data();
        error = "line " + std::to_string(ranks.size()) + ", column " +
                std::to_string(cell - begin + spaces + 1) +
                ": expected an action such as 0F0 or 2SEND_B1, got " +
                quoted(trim(content));
        return std::nullopt;
      }
      cell = end + 1;
    }
    begin = lineEnd + 1;
  }
  return ranks;
}

Shape inferShape(const ActionRows &ranks) {
  int maxChunk = 0, maxMicrobatch = 0;
  int stages = std::max<int>(1, ranks.size());
  int secondRowRank = -1, lastOwner = -1;
  bool isShared = false; // the last chunk, by several ranks
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    for (const Action &action : ranks[rank]) {
      if (action.chunk > maxChunk)
        isShared = false;
      else if (action.chunk == maxChunk)
        isShared |= lastOwner != int(rank);
      if (action.chunk >= maxChunk)
        lastOwner = rank;
      maxChunk = std::max(maxChunk, action.chunk);
      maxMicrobatch = std::max(maxMicrobatch, action.microbatch);
      if (action.chunk == stages)
        secondRowRank = rank;
    }
  bool hasUnpipelined = isShared && maxChunk > 0 && maxChunk % stages == 0;
  Shape shape{stages, maxChunk / stages + !hasUnpipelined, maxMicrobatch + 1};
  shape.hasUnpipelined = hasUnpipelined;
  if (stages > 1 && secondRowRank == stages - 1 && shape.repeats > 1)
    shape.placement = Placement::V;
  return shape;
}

} // namespace rota::pipe
