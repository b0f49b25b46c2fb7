// SPDX-License-Identifier: Apache-2.0
//
// The folder of `--metrics`, which describes a run and its progress:
//
//   run.json       the program, its options and its plan; of the last run
//   metrics.jsonl  a line for each step, appended by each run; of lines with
//                  one step the last counts
//   samples.jsonl  a line for each sample, appended likewise
//   events.out.tfevents.*  the same numbers for TensorBoard, a file a run
//   trace.json     planned and real times of the first steps, of the last run
//   summary.json   the end of the last run that ended
//
// Rank 0 writes all of them, and `rota report` draws them.
#ifndef ROTA_RUNTIME_METRICS_METRICSFOLDER_H
#define ROTA_RUNTIME_METRICS_METRICSFOLDER_H

#include "runtime/metrics/AppendFile.h"
#include "runtime/metrics/EventFile.h"

#include <string>
#include <string_view>
#include <vector>

namespace rota {

/// Names of the folder's files.
namespace metricsfiles {
inline constexpr const char *run = "run.json";
inline constexpr const char *steps = "metrics.jsonl";
inline constexpr const char *samples = "samples.jsonl";
inline constexpr const char *trace = "trace.json";
inline constexpr const char *summary = "summary.json";
} // namespace metricsfiles

/// A number of a step: its key in metrics.jsonl and its tag in TensorBoard.
struct Metric {
  std::string key;
  std::string tag;
  double value;
};

/// "FOLDER/NAME".
std::string inFolder(const std::string &folder, const std::string &name);

/// Makes the folder where there is none. Throws InputError where that fails, or
/// where no files can be made in it: called before the run.
void prepareMetricsFolder(const std::string &folder);

class MetricsFolder {
public:
  /// The folder exists. Throws RunError where its files cannot be opened.
  explicit MetricsFolder(const std::string &folder);

  /// Appends a step's numbers to both files. Returns a warning when a file
  /// could not be written for the first time in this run; the step's numbers
  /// are lost then, and later steps are tried again.
  std::string addStep(int64_t step, const std::vector<Metric> &metrics);

  /// Appends the line of a sample, without its end. Returns a warning as
  /// addStep does.
  std::string addSample(const std::string &line);

  /// Replaces a file of the folder. Returns a warning when that fails.
  std::string replace(const char *name, std::string_view text) const;

private:
  std::string append(AppendFile &file, std::string_view record);

  const std::string folder;
  AppendFile lines, events;
  bool hasWarned = false;
};

} // namespace rota

#endif // ROTA_RUNTIME_METRICS_METRICSFOLDER_H
