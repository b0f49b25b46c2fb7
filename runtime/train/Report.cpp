// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Report.h"
#include "runtime/program/Text.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <unistd.h>

using nlohmann::ordered_json;

namespace rota {

static constexpr const char *kBold = "\033[1m", *kGreen = "\033[32m",
                            *kPlain = "\033[0m", *kClear = "\r\033[K";

static void printLine(const ordered_json &object) {
  fmt::print("{}\n", object.dump());
  std::fflush(stdout);
}

/// "1:05:09", "5:09".
static std::string clockText(double seconds) {
  auto total = static_cast<int64_t>(std::max(0.0, seconds) + 0.5);
  int64_t hours = total / 3600, minutes = total / 60 % 60;
  return hours ? fmt::format("{}:{:02}:{:02}", hours, minutes, total % 60)
               : fmt::format("{}:{:02}", minutes, total % 60);
}

Report::Report(const Program &program, const Options &options)
    : program(program), options(options),
      terminal(!options.json && isatty(STDOUT_FILENO) &&
               !std::getenv("NO_COLOR")) {}

void Report::begin(const std::string &data) {
  if (options.json)
    return printLine({{"event", "begin"},
                      {"model", program.model},
                      {"schedule", program.schedule},
                      {"parameters", program.parameterCount},
                      {"ranks", program.stages.size()},
                      {"microbatches", program.microbatches},
                      {"flops_per_token", program.flopsPerToken},
                      {"bubble_theoretical", program.bubble},
                      {"data", data},
                      {"timeline", program.timeline},
                      {"plan", program.plan}});
  fmt::print("{}: {} parameters, schedule {}, {} ranks, {} microbatches\n",
             program.model, grouped(program.parameterCount), program.schedule,
             program.stages.size(), program.microbatches);
  fmt::print("data: {}\n", data);
  for (const std::string *text : {&program.timeline, &program.plan})
    if (!text->empty())
      fmt::print("\n{}{}", *text, text->back() == '\n' ? "" : "\n");
  fmt::print("\n");
  std::fflush(stdout);
}

void Report::header() {
  headerPrinted = true;
  fmt::print("{}{:>15} {:>9} {:>10} {:>10} {:>9} {:>8} {:>8}{}\n",
             terminal ? kBold : "", "step", "loss", "validation", "tokens/s",
             "bubble", "planned", "left", terminal ? kPlain : "");
}

void Report::clearLine() {
  if (lineOpen)
    fmt::print("{}", kClear);
  lineOpen = false;
}

void Report::step(const Progress &p, bool last) {
  bool keep = last || p.step == 1 || p.step % options.logInterval == 0;
  if (!keep && !terminal)
    return;
  if (options.json) {
    ordered_json line = {{"event", "step"},
                         {"step", p.step},
                         {"loss", p.loss},
                         {"validation_loss", nullptr},
                         {"learning_rate", p.learningRate},
                         {"gradient_norm", p.gradientNorm},
                         {"tokens_per_second", p.tokensPerSecond},
                         {"bubble_measured", p.bubble},
                         {"bubble_theoretical", program.bubble},
                         {"seconds", p.seconds},
                         {"seconds_left", p.secondsLeft}};
    if (p.validationLoss)
      line["validation_loss"] = *p.validationLoss;
    return printLine(line);
  }
  if (!headerPrinted)
    header();
  std::string validation =
      p.validationLoss ? fmt::format("{:.4f}", *p.validationLoss) : "-";
  clearLine();
  fmt::print("{:>15} {}{:>9.4f}{} {:>10} {:>10} {:>8.1f}% {:>7.1f}% {:>8}",
             fmt::format("{}/{}", p.step, options.steps),
             terminal ? kGreen : "", p.loss, terminal ? kPlain : "", validation,
             grouped(static_cast<int64_t>(p.tokensPerSecond)), 100.0 * p.bubble,
             100.0 * program.bubble, clockText(p.secondsLeft));
  if (keep)
    fmt::print("\n");
  lineOpen = !keep;
  std::fflush(stdout);
}

void Report::note(const std::string &text) {
  if (options.json)
    return printLine({{"event", "note"}, {"text", text}});
  clearLine();
  fmt::print("note: {}\n", text);
}

void Report::memory(const Machine &machine) {
  fmt::print("\nmemory by rank, bytes{:>21} {:>18} {:>18}\n", "planned",
             "reached", "resident");
  int64_t resident = 0;
  for (int rank = 0; rank < machine.ranks(); ++rank) {
    const Arena &arena = machine.arena(rank);
    resident += arena.residentBytes();
    fmt::print("{:>21}{:>21} {:>18} {:>18}\n", rank, grouped(arena.bytes()),
               grouped(arena.highWater()), grouped(arena.residentBytes()));
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("peak resident memory of the process: {} bytes, of which arenas "
             "{}; the rest is mapped data, libraries and compiled products\n",
             grouped(usage.ru_maxrss * 1024), grouped(resident));
}

void Report::end(const Progress &p, const Machine &machine) {
  if (options.json) {
    ordered_json ranks = ordered_json::array();
    for (int rank = 0; rank < machine.ranks(); ++rank) {
      const Arena &arena = machine.arena(rank);
      ranks.push_back({{"planned_bytes", arena.bytes()},
                       {"reached_bytes", arena.highWater()},
                       {"resident_bytes", arena.residentBytes()}});
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    ordered_json line = {{"event", "end"},
                         {"steps", p.step},
                         {"loss", p.loss},
                         {"validation_loss", nullptr},
                         {"seconds", p.seconds},
                         {"bubble_measured", p.bubble},
                         {"bubble_theoretical", program.bubble},
                         {"peak_resident_bytes", usage.ru_maxrss * 1024},
                         {"ranks", ranks}};
    if (p.validationLoss)
      line["validation_loss"] = *p.validationLoss;
    return printLine(line);
  }
  clearLine();
  std::string validation =
      p.validationLoss
          ? fmt::format(", validation loss {:.4f}", *p.validationLoss)
          : "";
  fmt::print("\n{} steps in {}: loss {:.4f}{}\n", p.step, clockText(p.seconds),
             p.loss, validation);
  memory(machine);
  std::fflush(stdout);
}

static void addTo(Profile::Table &sum, const Profile::Table &table) {
  for (const auto &[name, entry] : table) {
    Profile::Entry &out = sum[name];
    out.calls += entry.calls;
    out.seconds += entry.seconds;
    out.flops += entry.flops;
    out.bytes += entry.bytes;
  }
}

static void printTable(const char *what, const Profile::Table &table,
                       bool json) {
  std::vector<std::pair<std::string, Profile::Entry>> rows(table.begin(),
                                                           table.end());
  std::sort(rows.begin(), rows.end(), [](const auto &a, const auto &b) {
    return a.second.seconds > b.second.seconds;
  });
  if (!json && !rows.empty())
    fmt::print("\n{:>10} {:>12} {:>12} {:>9} {:>9}  {}\n", "calls", "ms",
               "us/call", "GF/s", "GB/s", what);
  for (const auto &[name, e] : rows) {
    if (json) {
      printLine({{"event", "profile"},
                 {"kind", what},
                 {"name", name},
                 {"calls", e.calls},
                 {"seconds", e.seconds},
                 {"flops", e.flops},
                 {"bytes", e.bytes}});
      continue;
    }
    auto rate = [&](double amount) {
      return amount > 0 ? fmt::format("{:.1f}", amount / e.seconds * 1e-9) : "";
    };
    fmt::print("{:>10} {:>12.2f} {:>12.1f} {:>9} {:>9}  {}\n", e.calls,
               e.seconds * 1e3, e.seconds / e.calls * 1e6, rate(e.flops),
               rate(e.bytes), name);
  }
}

void Report::profile(const Machine &machine, const Profile::Table &phases) {
  Profile::Table tasks, kernels, gemms;
  for (const Profile &profile : machine.profiles()) {
    addTo(tasks, profile.tasks(program));
    addTo(kernels, profile.kernels(program, machine.kernels()));
    addTo(gemms, profile.gemms());
  }
  printTable("phase", phases, options.json);
  printTable("task", tasks, options.json);
  printTable("kernel", kernels, options.json);
  printTable("gemm", gemms, options.json);
}

} // namespace rota
