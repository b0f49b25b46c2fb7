// SPDX-License-Identifier: Apache-2.0
//
// The options of `rota`, set by flags or by a RUN.json whose keys are the long
// flags; flags win over the file. One table (OptionTable.cpp) serves the
// command line, the file and --help; its rows for the trainer are those that
// the trainer itself reads (runtime/train/options/TrainerOptions.cpp).
#ifndef ROTA_TOOLS_ROTA_RUNOPTIONS_H
#define ROTA_TOOLS_ROTA_RUNOPTIONS_H

#include "passes/pipeline/timeline/Simulator.h"
#include "runtime/Error.h"
#include "runtime/train/options/TrainerOptions.h"
#include "tools/compiler/CompilerOptions.h"
#include "tools/compiler/Level.h"
#include "tools/planner/Forecast.h"
#include "tools/planner/engines/Engines.h"
#include "tools/rota/Diagnostics.h"

namespace rota {

/// The forms in which `rota schedule` writes a timeline.
enum class TimelineFormat { Grid, CSV, JSON, SVG, Trace };
template <> struct Names<TimelineFormat> {
  static constexpr const char *list[] = {"grid", "csv", "json", "svg", "trace"};
};

/// Whether the tokens that a tokenizer's template puts around a document are
/// added, and special tokens written as text.
enum class SpecialTokens { Template, None };
template <> struct Names<SpecialTokens> {
  static constexpr const char *list[] = {"template", "none"};
};

/// The remat policy that is chosen for each stage.
inline constexpr const char *kAutoRemat = "auto";

/// `compiler` has the options of builders and passes, where these define them:
/// rows of the table point there. `stages` is the size of the mesh's stage
/// axis. Without a number, `microbatches` are the fewest that the schedule
/// takes.
struct RunOptions : Options {
  /// With the options of all optimizers.
  RunOptions();

  /// `remat` is `auto` until the planner has made a policy of it; sizes of the
  /// mesh that are -1 get what the others leave of `devices`, and every size is
  /// known once checked.
  CompilerOptions compiler;
  // Sequences in a step, all ranks together. 0: not given; a .mlir model has
  // its own shapes, and `probe` takes them from its tokens.
  int64_t batchSize = 0;
  int64_t devices = 0; // ranks in all; 0: the product of the sizes
  std::string
      machine; // a name or a file; empty: the generic one. Of `machine`: shown
  int64_t nodes = 0; // of the machine, which say `devices`; 0: not given

  // Output. `weights`, when empty, are those beside the model, if any.
  Level emit = Level::Executable;
  bool explain = false;
  bool state = false;
  CampaignRequest campaign;
  std::string report;   // page of a plan; empty: none
  bool search = false;  // `plan` alone: the best plan instead of a given one
  std::string measured; // a trace; empty: none
  std::optional<Remarks> remarks; // none: not printed
  /// The engine whose configuration is written in the place of the plan.
  std::optional<engines::Engine> exported;
  /// An engine, and a run in its words: flags, or the path of a file.
  std::vector<std::string> imported;

  // `checkpoint` and `convert`, which have `checkpoint` too.
  std::string action; // "list", "show", ...; of `machine` too
  std::string shardSize = "5GB";
  bool merge = false;    // adapters into weights
  std::string runFolder; // `report` alone

  // The text of `samples`.
  std::string prompt;       // of `generate`
  std::string samplePrompt; // of `train`
  bool ignoreEos = false;   // end tokens of the model's folder

  // `tokenize` and `detokenize`; of prompts too, but the first and the third.
  std::vector<std::string> texts; // files and folders

  // Texts as tokens: of these verbs, and of all that take data.
  std::string tokenizer;     // empty: the one beside the model, if any
  std::string endToken;      // empty: as the tokenizer's folder says
  bool documentMask = false; // sets `compiler.build.documentEnd`
  SpecialTokens specialTokens = SpecialTokens::Template;
  std::string field;         // of .jsonl; empty: by the record
  bool skipBadLines = false; // of .jsonl
  std::string chatTemplate;  // empty: as the tokenizer's folder says
  std::string cacheDir;      // empty: beside the data

  // `machine` alone.
  double measureSeconds = 48;

  // `schedule` alone.
  std::vector<std::string> compare; // schedules for a table; empty: none
  bool sweep = false; // a table for each of several numbers of microbatches
  TimelineFormat format = TimelineFormat::Grid;
  bool communication = false, offload = false;
  bool unpipelined = false; // a chunk of layers outside of the pipeline
  pipe::CostTable costs;

  /// Names of the options that the file or a flag gave.
  std::set<std::string, std::less<>> given;
};

/// Reads the arguments after the verb: flags and at most one RUN.json (for
/// `schedule`: a name or a file, for `report` a folder). Returns
/// an exit code when the program ends here (help that was printed, or an error
/// that has been printed to standard error), nothing when it goes on.
std::optional<int> parseRunOptions(Command verb, int argc,
                                   const char *const *argv,
                                   RunOptions &options);

/// The options of the compiler, once they are checked. Sequences in a
/// microbatch are 0 when the options leave them to the model's file or to the
/// tokens.
CompilerOptions compilerOptions(const RunOptions &options);

/// Whether the planner chooses the chunks of checked options: those of a single
/// stage whose weights or gradients travel.
bool opensRepeats(const RunOptions &options);

/// Whether the planner chooses how long weights of checked options stay
/// gathered.
bool opensGathers(const RunOptions &options);

/// "8" as given, or "8, the fewest that schedule 'zbv' takes on 4 stages".
std::string microbatchesText(const RunOptions &options);

/// The arguments of the trainer for `train`, `probe` or `eval`, without the
/// program's name: every option that it has, with its value.
std::vector<std::string> trainerArguments(Command verb, RunOptions options);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_RUNOPTIONS_H
