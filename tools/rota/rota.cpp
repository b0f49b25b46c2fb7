// SPDX-License-Identifier: Apache-2.0
//
// rota: compile, plan and train language models; make and check schedules; look
// at checkpoints.
#include "runtime/files/Streams.h"
#include "tools/rota/Completion.h"
#include "tools/rota/Docs.h"
#include "tools/rota/Verbs.h"
#include "tools/rota/Version.h"

#include <fmt/format.h>

using namespace rota;

static constexpr struct Verb {
  std::string_view name;
  Command command;
  int (*run)(const RunOptions &options);
  const char *summary;
} verbs[] = {
    {"train", Command::Train, runTrain, "compile a trainer and run it here"},
    {"compile", Command::Compile, runCompile,
     "write a native trainer, or any level of IR"},
    {"plan", Command::Plan, runPlan,
     "parameters, operations, memory by rank and use, timeline"},
    {"schedule", Command::Schedule, runSchedule,
     "make, verify, simulate and draw a timeline, or read one"},
    {"probe", Command::Probe, runProbe,
     "run a few steps on given tokens and write named tensors"},
    {"eval", Command::Eval, runEval,
     "the loss of a checkpoint or of a model's weights on data"},
    {"generate", Command::Generate, runGenerate,
     "continue a prompt with a checkpoint or a hub folder"},
    {"checkpoint", Command::Checkpoint, runCheckpoint,
     "list, show or verify checkpoints"},
    {"convert", Command::Convert, runConvert,
     "write a checkpoint's weights as a folder of a model hub"},
    {"tokenize", Command::Tokenize, runTokenize,
     "write text as tokens for --data, with a tokenizer of a hub"},
    {"detokenize", Command::Detokenize, runDetokenize, "write tokens as text"},
    {"report", Command::Report, runReport,
     "draw a run out of the folder that its --metrics wrote"},
    {"machine", Command::Machine, runMachine,
     "list and show the machines of plans, or measure this host or its GPUs"},
};

static constexpr const char *kUsage =
    R"(Compiles a language model, a device mesh and a pipeline schedule into a native
program that trains the model.

Usage: rota VERB [RUN.json] [flags]

{}
`rota help VERB` lists the verb's flags, `rota --version` the versions of rota and its libraries.
Exit codes: 0 success, 1 the work failed, 2 bad arguments or input.
)";

static void printUsage() {
  std::string list;
  for (const Verb &verb : verbs)
    list += fmt::format("  {:<11}{}\n", verb.name, verb.summary);
  fmt::print(kUsage, list);
}

/// Parses the flags after the verb and runs it.
static int runVerb(const Verb &verb, int count, const char *const *arguments) {
  RunOptions options;
  if (std::optional<int> code =
          parseRunOptions(verb.command, count, arguments, options))
    return *code;
  return verb.run(options);
}

static const Verb *findVerb(std::string_view name) {
  for (const Verb &verb : verbs)
    if (name == verb.name)
      return &verb;
  std::vector<std::string> names;
  for (const Verb &verb : verbs)
    names.emplace_back(verb.name);
  fmt::print(stderr, "error: expected a verb out of {}, got {}{}\n",
             fmt::join(names, ", "),
             name.empty() ? "none" : fmt::format("'{}'", name),
             nearestOf(names, name));
  return nullptr;
}

static std::vector<std::pair<Command, std::string_view>> verbNames() {
  std::vector<std::pair<Command, std::string_view>> names;
  for (const Verb &verb : verbs)
    names.emplace_back(verb.command, verb.name);
  return names;
}

static int run(int argc, char **argv) {
  std::string_view name = argc > 1 ? argv[1] : "";
  std::string_view topic = argc > 2 ? argv[2] : "";
  if (name == "docs") // for the target rota-docs
    return printDocs(topic, verbNames());
  if (name == "completion") // for packages
    return printCompletion(topic, verbNames());
  bool isHelp = name == "--help" || name == "-h" || name == "help";
  if (isHelp && argc < 3) {
    printUsage();
    return kExitSuccess;
  }
  if (name == "--version") {
    printVersion();
    return kExitSuccess;
  }
  const Verb *verb = findVerb(isHelp ? argv[2] : name);
  if (!verb)
    return kExitBadInput;
  const char *help = "--help";
  return isHelp ? runVerb(*verb, 1, &help) : runVerb(*verb, argc - 2, argv + 2);
}

int main(int argc, char **argv) {
  prepareStreams();
  return endOutput(run(argc, argv));
}
