// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/report/Report.h"
#include "runtime/files/Terminal.h"
#include "runtime/metrics/RunDescription.h"
#include "runtime/program/JsonText.h"
#include "runtime/text/Printable.h"
#include "runtime/text/Text.h"
#include "runtime/train/step/Skipping.h"
#include "runtime/train/step/StepBarrier.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

using nlohmann::ordered_json;

namespace rota {

static constexpr const char *kBold = "\033[1m", *kGreen = "\033[32m",
                            *kPlain = "\033[0m", *kClear = "\r\033[K";

static void printLine(const ordered_json &object) {
  fmt::print("{}\n", jsonText(object));
  std::fflush(stdout);
}

Report::Report(const Program &program, const Options &options, bool prints)
    : program(program), options(options), prints(prints),
      terminal(prints && !options.json && isTerminal() &&
               !std::getenv("NO_COLOR")) {}

bool Report::keeps(int64_t t) const {
  return t == before + 1 || t % options.logInterval == 0;
}

bool Report::keeps(const StepReport &p, bool last) const {
  return last || p.skip != SkipReason::None || keeps(p.step);
}

std::optional<double> StepReport::valueOf(StepNumber number) const {
  switch (number) {
  case StepNumber::Loss:
    return loss;
  case StepNumber::GradientNorm:
    return gradientNorm;
  case StepNumber::LearningRate:
    return learningRate;
  case StepNumber::TokensPerSecond:
    return tokensPerSecond;
  case StepNumber::BubbleMeasured:
    return bubble;
  case StepNumber::BubblePlanned:
    return plannedBubble;
  case StepNumber::Seconds:
    return seconds;
  case StepNumber::SecondsLeft:
    return secondsLeft;
  case StepNumber::CheckpointStall:
    return checkpointStall;
  case StepNumber::SkippedSteps:
    return static_cast<double>(skippedSteps);
  case StepNumber::RolledBackSteps:
    return static_cast<double>(rolledBackSteps);
  case StepNumber::ValidationLoss:
    return validationLoss;
  case StepNumber::Utilization:
    return utilization;
  default: // a number of all ranks
    return std::nullopt;
  }
}

/// The loss has the first column of a step's line; the parts of the loss and
/// what layers observe come next, then the other columns in their order.
static constexpr const StepNumberInfo &kLossColumn = infoOf(StepNumber::Loss);

static StepNumber numberOf(const StepNumberInfo &info) {
  return StepNumber(&info - kStepNumbers);
}

static std::string column(const StepNumberInfo &info, const std::string &text) {
  return fmt::format("{:>{}}", text, info.width);
}

/// The columns after those of the loss, with the text that `textOf` gives each.
template <typename TextOf> static std::string columns(TextOf textOf) {
  std::string line;
  for (const StepNumberInfo &info : kStepNumbers)
    if (info.column && &info != &kLossColumn)
      line += " " + column(info, textOf(info));
  return line;
}

void Report::begin(const std::string &data) {
  if (!prints)
    return;
  if (options.json)
    return printLine(
        {{"event", "begin"},
         {"model", program.model},
         {"schedule", program.schedule},
         {"parameters", program.parameterCount},
         {"ranks", rankCount(program)},
         {"mesh", meshJson(program)},
         {"microbatches", program.microbatches},
         {"accumulation_steps", program.accumulationSteps},
         {"flops_per_token", program.flopsPerToken},
         {keyOf(StepNumber::BubblePlanned), plannedBubble(program, options)},
         {"data", data},
         {"timeline", program.timeline},
         {"plan", program.plan}});
  fmt::print("{}: {} parameters, schedule {}, {}, {}{}\n", program.model,
             grouped(program.parameterCount), program.schedule,
             ranksText(program),
             counted(program.microbatches, "microbatch", "es"),
             program.accumulationSteps > 1
                 ? fmt::format(", {} times a step", program.accumulationSteps)
                 : "");
  fmt::print("data: {}\n", data);
  if (const std::string &plan = program.plan; !plan.empty())
    fmt::print("\n{}{}", plan, plan.back() == '\n' ? "" : "\n");
  fmt::print("\n");
  std::fflush(stdout);
}

void Report::header(const StepReport &p) {
  headerPrinted = true;
  std::string parts;
  for (const LossPart &part : p.lossParts)
    parts += fmt::format(" {:>9}", part.name);
  for (const ObservedStep &observed : p.observed) {
    parts += fmt::format(" {:>11}", observed.name);
    if (observed.dropped)
      parts += fmt::format(" {:>8}", "dropped");
  }
  fmt::print("{}{:>15} {}{}{}{}\n", terminal ? kBold : "", "step",
             column(kLossColumn, kLossColumn.column), parts,
             columns([](const StepNumberInfo &info) { return info.column; }),
             terminal ? kPlain : "");
}

void Report::clearLine() {
  if (lineOpen)
    fmt::print("{}", kClear);
  lineOpen = false;
}

void Report::step(const StepReport &p, bool last) {
  bool keep = keeps(p, last);
  bool isSkipped = p.skip != SkipReason::None;
  if (!prints || (!keep && !terminal))
    return;
  if (options.json) {
    ordered_json line = {{"event", "step"}, {"step", p.step}};
    for (const StepNumberInfo &info : kStepNumbers) {
      std::optional<double> value = p.valueOf(numberOf(info));
      if (info.isInLine && value)
        line[info.key] = *value;
      else if (info.isInLine && info.column)
        line[info.key] = nullptr;
    }
    if (isSkipped)
      line["skipped"] = reasonText(p.skip, options.skip);
    for (const LossPart &part : p.lossParts)
      line["loss_parts"][part.name] = part.value;
    for (const ObservedStep &observed : p.observed) {
      ordered_json &object = line[observed.name];
      object = {{"worst", observed.worst}, {"mean", observed.mean}};
      if (observed.dropped) {
        object["dropped"] = observed.dropped->count;
        object["dropped_share"] = observed.dropped->share;
      }
    }
    return printLine(line);
  }
  if (!headerPrinted)
    header(p);
  std::string parts;
  for (const LossPart &part : p.lossParts)
    parts += fmt::format(" {:>9.4f}", part.value);
  for (const ObservedStep &observed : p.observed) {
    parts += fmt::format(" {:>11.2f}", observed.worst);
    if (observed.dropped)
      parts += fmt::format(" {:>7.1f}%", 100.0 * observed.dropped->share);
  }
  clearLine();
  fmt::print("{:>15} {}{}{}{}{}", fmt::format("{}/{}", p.step, options.steps),
             terminal ? kGreen : "",
             column(kLossColumn, textOf(kLossColumn.format, p.loss)),
             terminal ? kPlain : "", parts,
             columns([&](const StepNumberInfo &info) {
               std::optional<double> value = p.valueOf(numberOf(info));
               return value ? textOf(info.format, *value) : "-";
             }));
  if (isSkipped)
    fmt::print("  skipped: its {}", reasonText(p.skip, options.skip));
  if (keep)
    fmt::print("\n");
  lineOpen = !keep;
  std::fflush(stdout);
}

void Report::weights(const std::string &text) {
  if (!prints)
    return;
  if (options.json)
    return printLine({{"event", "weights"}, {"weights", text}});
  fmt::print("weights: {}\n", text);
  std::fflush(stdout);
}

void Report::note(const std::string &text) {
  if (!prints)
    return;
  if (options.json)
    return printLine({{"event", "note"}, {"text", text}});
  clearLine();
  fmt::print("note: {}\n", text);
}

void Report::sample(const Sample &sample) {
  if (!prints)
    return;
  if (options.json)
    return printLine(sampleJson(sample));
  clearLine();
  fmt::print("sample after step {}: {}\n", sample.step.value_or(0),
             sample.text
                 ? printable(*sample.text)
                 : fmt::format("tokens {}", fmt::join(sample.tokens, ",")));
  std::fflush(stdout);
}

void Report::memory(const std::vector<RankReport> &ranks) {
  fmt::print("\nmemory by rank, bytes{:>21} {:>18} {:>18}\n", "planned",
             "reached", "resident");
  int64_t resident = 0, peak = 0;
  for (size_t r = 0; r < ranks.size(); ++r) {
    resident += ranks[r].resident;
    peak = std::max(peak, ranks[r].peak);
    fmt::print("{:>21}{:>21} {:>18} {:>18}\n", r, grouped(ranks[r].planned),
               grouped(ranks[r].reached), grouped(ranks[r].resident));
    if (ranks[r].host > 0)
      fmt::print("{:>21}{:>21}\n", "offloaded", grouped(ranks[r].host));
  }
  if (options.ranks != RankKind::Threads)
    fmt::print("peak resident memory of a process: {} bytes at most\n",
               grouped(peak));
  else
    fmt::print("peak resident memory of the process: {} bytes, of which "
               "arenas {}; the rest is libraries and compiled products\n",
               grouped(peak), grouped(resident));
}

static std::string hiddenText(const std::vector<RankReport> &ranks) {
  TransferTimes weights = sumOf(ranks, ActionKind::Unshard);
  TransferTimes gradients = sumOf(ranks, ActionKind::ReduceGrad);
  weights += sumOf(ranks, ActionKind::Refresh);
  gradients += sumOf(ranks, ActionKind::SumGrad);
  if (weights.seconds + gradients.seconds == 0.0)
    return "";
  return fmt::format("hidden under computing: {:.1f} % of the time that "
                     "gathering weights took, {:.1f} % of that of reducing "
                     "gradients\n",
                     100.0 * weights.hidden(), 100.0 * gradients.hidden());
}

/// "interrupted after step 236 of 1000; the same command goes on".
static std::string earlyEndText(const StepReport &p, const Options &options) {
  if (p.earlyEnd == EarlyEnd::None)
    return "";
  return fmt::format(
      "{} after step {} of {}; {}\n",
      p.earlyEnd == EarlyEnd::Signal ? "interrupted" : "at its time limit",
      p.step, options.steps,
      options.checkpoints.folder.empty()
          ? "without 'checkpoint-dir' there is no checkpoint to go on from"
          : options.resume.continuation());
}

/// "2.6046 (main 2.5846, z_loss 0.0200)".
static std::string lossText(const StepReport &p) {
  std::vector<std::string> parts;
  for (const LossPart &part : p.lossParts)
    parts.push_back(fmt::format("{} {:.4f}", part.name, part.value));
  return fmt::format("{:.4f}", p.loss) +
         (parts.empty() ? "" : fmt::format(" ({})", fmt::join(parts, ", ")));
}

/// ", validation loss 2.5125 (best 2.5101 after step 50)".
static std::string validationText(const StepReport &p, double target) {
  if (!p.validationLoss)
    return "";
  std::string text = fmt::format(", validation loss {:.4f}", *p.validationLoss);
  if (p.best && p.best->step != p.step)
    text +=
        fmt::format(" (best {:.4f} after step {})", p.best->loss, p.best->step);
  if (p.reachedTarget)
    text += fmt::format(", at most the target of {}", target);
  return text;
}

/// ", 3 steps skipped".
static std::string skippedText(const StepReport &p) {
  if (p.skippedSteps == 0)
    return "";
  return fmt::format(", {} step{} skipped", p.skippedSteps,
                     p.skippedSteps == 1 ? "" : "s");
}

void Report::end(const StepReport &p, const RunSummary &summary) {
  if (!prints)
    return;
  if (options.json)
    return printLine(summaryJson(program, p, summary));
  clearLine();
  std::string steps =
      before == 0 ? fmt::format("{} step{}", p.step, p.step == 1 ? "" : "s")
                  : fmt::format("steps {} to {}", before + 1, p.step);
  memory(summary.ranks);
  if (p.step > before)
    fmt::print("\n{} in {}: loss {}{}{}\n{}{}{}", steps, clockText(p.seconds),
               lossText(p), validationText(p, options.validation.targetLoss),
               skippedText(p), summaryText(program, summary),
               hiddenText(summary.ranks), earlyEndText(p, options));
  std::fflush(stdout);
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

void Report::profile(const ProfileTables &tables, const Profile::Table &phases,
                     const std::vector<RankReport> &ranks) {
  if (!prints)
    return;
  clearLine();
  Profile::Table transfers;
  for (ActionKind kind : {ActionKind::Unshard, ActionKind::ReduceGrad,
                          ActionKind::SumGrad, ActionKind::Refresh})
    if (TransferTimes times = sumOf(ranks, kind); times.count > 0) {
      std::string row = toString(kind);
      if (!options.json && times.seconds > 0.0)
        row += fmt::format(" ({:.1f} % hidden)", 100.0 * times.hidden());
      transfers[row] = {times.count, times.seconds};
    }
  printTable("phase", phases, options.json);
  printTable("transfer", transfers, options.json);
  printTable("task", tables.tasks, options.json);
  printTable("kernel", tables.kernels, options.json);
  printTable("gemm", tables.gemms, options.json);
  std::fflush(stdout);
}

} // namespace rota
