// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/report/RankReport.h"
#include "runtime/files/WriteFile.h"
#include "runtime/program/JsonText.h"
#include "runtime/train/step/Gather.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <fstream>
#include <type_traits>

using nlohmann::json;

namespace rota {

TransferTimes sumOf(const std::vector<RankReport> &ranks, ActionKind kind) {
  TransferTimes sum;
  for (const RankReport &rank : ranks)
    sum += rank.transfers[static_cast<size_t>(kind)];
  return sum;
}

/// The objects as the bytes of a message.
template <typename T> static std::string pack(const T *values, size_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char *>(values), count * sizeof(T)};
}

template <typename T>
static void unpack(const std::string &text, std::vector<T> &out) {
  size_t old = out.size(), count = text.size() / sizeof(T);
  out.resize(old + count);
  if (count > 0)
    std::memcpy(out.data() + old, text.data(), count * sizeof(T));
}

/// The largest resident size since this program began, in bytes. getrusage
/// would include the compiler, which `rota train` replaces by the trainer.
static int64_t peakResidentBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:"))
      return std::stoll(line.substr(6)) * 1024; // given in KiB
  return 0;
}

std::vector<RankReport> gatherReports(Rank &rank, const Executor &executor) {
  const Arena &arena = rank.arena();
  RankReport own{arena.bytes(),         arena.highWater(),
                 arena.residentBytes(), rank.hostArena().bytes(),
                 peakResidentBytes(),   executor.times().transfers(),
                 rank.inTaskSeconds(),  rank.stepEndTimes()};
  std::vector<RankReport> all;
  for (const std::string &text : gatherTexts(rank, pack(&own, 1)))
    unpack(text, all);
  return all;
}

std::string gatherTrace(Rank &rank, Executor &executor) {
  const std::vector<TraceEvent> &own = executor.times().events();
  std::vector<TraceEvent> all;
  for (const std::string &text :
       gatherTexts(rank, pack(own.data(), own.size())))
    unpack(text, all);
  return rank.number() == 0 ? chromeTrace(rank.program(), all) : "";
}

void writeTrace(Rank &rank, Executor &executor, const std::string &path) {
  std::string trace = gatherTrace(rank, executor);
  if (rank.number() == 0)
    writeFile(path, {trace});
}

static json toJson(const Profile::Table &table) {
  json rows = json::object();
  for (const auto &[name, e] : table)
    rows[name] = {e.calls, e.seconds, e.flops, e.bytes};
  return rows;
}

static void addTo(Profile::Table &sum, const json &rows) {
  for (const auto &[name, row] : rows.items()) {
    Profile::Entry &out = sum[name];
    out.calls += row[0].get<int64_t>();
    out.seconds += row[1].get<double>();
    out.flops += row[2].get<double>();
    out.bytes += row[3].get<double>();
  }
}

ProfileTables gatherProfiles(Rank &rank) {
  Profile &own = *rank.profile();
  own.settle(rank.device());
  json tables = {toJson(own.tasks(rank.program())),
                 toJson(own.kernels(rank.program(), rank.kernels())),
                 toJson(own.gemms())};
  ProfileTables sum;
  for (const std::string &text : gatherTexts(rank, jsonText(tables))) {
    json given = json::parse(text);
    addTo(sum.tasks, given[0]);
    addTo(sum.kernels, given[1]);
    addTo(sum.gemms, given[2]);
  }
  return sum;
}

} // namespace rota
