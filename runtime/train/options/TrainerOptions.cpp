// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/options/TrainerOptions.h"
#include "runtime/Error.h"

namespace rota {

namespace {

using namespace commands;
using Rows = OptionRows;

Rows trainingRows(Options &o) {
  const char *group = "Training";
  return {
      {"steps", group, "N", "Optimizer steps", runs, &o.steps, 1, kMaxCount},
      {"stop-after", group, "N",
       "End the run after this step, with the learning rates of 'steps'; 0: "
       "after the last one",
       train, &o.stopAfter, 0, kMaxCount},
      {"data", group, "PATH[:WEIGHT],...",
       "Files of tokens or text, folders of them, or 'synthetic'. Weights mix "
       "them in these proportions",
       train | eval, &o.data},
      {"token-type", group, "TYPE",
       "A token in files without a header (bytes); headers must agree",
       train | eval | Command::Detokenize, Choice(o.tokenType)},
      {"seed", group, "N", "Seed of all random numbers", runs | generate,
       &o.seed, 0, kMaxCount},
      {"time-limit", group, "SECONDS",
       "Stop training after this time; 0: no limit", train, &o.timeLimit},
      {"log-interval", group, "N", "Steps between lines", train, &o.logInterval,
       1, kMaxCount},
      {"save", group, "PATH", "Write the final weights (.safetensors)", train,
       &o.save}};
}

Rows probeRows(Options &o) {
  const char *group = "Probe";
  return {{.name = "tokens",
           .group = group,
           .value = "PATH",
           .help = "A .safetensors file with tokens [batch, sequence + 1] and, "
                   "if some targets do not count, mask [batch, sequence] with "
                   "0 there; or with inputs and targets",
           .commands = probe,
           .variable = &o.tokens,
           .requiredBy = probe},
          {.name = "write",
           .group = group,
           .value = "NAME,...",
           .help = "The tensors to write",
           .commands = probe,
           .variable = &o.write,
           .choices = {"loss", "logits", "gradients", "loss-curve"}}};
}

Rows evalRows(Options &o) {
  const char *group = "Evaluation";
  return {{"checkpoint", group, "PATH",
           "The weights: a checkpoint, or the newest of a folder of them",
           eval | generate, &o.checkpoint},
          {"eval-steps", group, "N", "Batches, from the first on; 0: all", eval,
           &o.evalSteps, 0, kMaxCount}};
}

Rows executionRows(Options &o) {
  const char *execution = "Execution", *output = "Output";
  return {
      {"ranks", execution, "KIND",
       "A rank is a thread of one process (threads), a process that mpirun "
       "or srun started (mpi), or one with a GPU of its own that torchrun, "
       "srun or mpirun started (nccl)",
       models, Choice(o.ranks)},
      {"threads", execution, "N",
       "Cores that a process computes with; 0: its share of those that "
       "affinity "
       "and control groups (of containers) allow",
       anyRun | Command::Tokenize, &o.threads, 0, 1024},
      {"allow-tf32", execution, "",
       "On a GPU, products of f32 may round their operands to TF32", anyRun,
       &o.allowTf32},
      {"post-validate", execution, "",
       "Update before the norm of all ranks is known, and take the update "
       "back where it was above 'gradient-clip': the same bits, and no rank "
       "waits. Keeps a copy of masters and states",
       train | Command::Plan, &o.optimizer.postValidate},
      {"no-recording", execution, "",
       "On a GPU, ask for each kernel of each step instead of replaying a "
       "recorded step",
       train, &o.noRecording},
      {.name = "output",
       .group = output,
       .value = "PATH",
       .help = "The file to write; of convert and of a plan's export, the "
               "folder",
       .commands = probe | Command::Compile | Command::Plan |
                   Command::Schedule | Command::Convert | Command::Report |
                   Command::Machine | Command::Tokenize | Command::Detokenize,
       .variable = &o.output,
       .letter = 'o',
       .requiredBy = probe | Command::Convert | Command::Tokenize},
      {"json", output, "", "Print JSON instead of text",
       anyRun | Command::Plan | Command::Schedule | Command::Checkpoint |
           Command::Convert | Command::Machine | Command::Tokenize,
       &o.json},
      {"profile", output, "",
       "Calls and time of each task, kernel and product; in training without "
       "those of the first step",
       runs, &o.profile},
      {"trace", output, "PATH", "Write the actions as a Chrome trace", runs,
       &o.trace}};
}

constexpr const char *kDescription =
    "Trains the model that this program was compiled from. `probe` as the\n"
    "first argument runs a few steps on given tokens and writes tensors; "
    "`eval`\n"
    "finds the loss of given weights on data; `generate` continues a prompt.\n"
    "Exit codes: 0 success, 1 the run failed, 2 bad arguments or input.";

std::optional<Ending> readArguments(std::vector<std::string> arguments,
                                    const std::string &program,
                                    Command &command, Options &options) {
  command = Command::Train;
  std::string name = program;
  for (auto [word, meaning] :
       {std::pair("probe", Command::Probe), std::pair("eval", Command::Eval),
        std::pair("generate", Command::Generate)})
    if (!arguments.empty() && arguments[0] == word) {
      command = meaning;
      name += std::string(" ") + word;
      arguments.erase(arguments.begin());
      break;
    }
  Rows table = trainOptions(options);
  CommandLine line(table, command,
                   {name, kDescription, "", "", /*flagWord=*/"argument"});
  std::set<std::string, std::less<>> given;
  if (auto ending = line.read(std::move(arguments)))
    return ending;
  if (auto ending = line.assign(given))
    return ending;
  if (auto missing = missingOptions(table, command, given); !missing.empty())
    return line.missing(missing);
  OptionMistake mistake = checkTrainOptions(options);
  if (!mistake.option.empty())
    return Ending::badInput("'" + mistake.option + "': " + mistake.message);
  return std::nullopt;
}

} // namespace

std::vector<Option> trainOptions(Options &options) {
  Rows table = {{"weights", "Model", "PATH",
                 "Initial weights: a .safetensors file, an index of several "
                 "or a folder that holds one (those beside the model)",
                 anyRun, &options.weights},
                {"adapter", "Model", "DIR",
                 "Initial low-rank adapters: a folder as PEFT writes it; of "
                 "convert, those that 'merge' adds",
                 anyRun | unsigned(Command::Convert), &options.adapter}};
  for (Rows rows :
       {optimizerRows(options.optimizer), skipRows(options.skip),
        trainingRows(options), validationRows(options.validation),
        checkpointRows(options.checkpoints), resumeRows(options.resume),
        sampleRows(options.samples), probeRows(options), evalRows(options),
        executionRows(options), metricsRows(options.metrics)})
    table.insert(table.end(), rows.begin(), rows.end());
  return table;
}

OptionMistake checkTrainOptions(const Options &options) {
  if (options.stopAfter > options.steps)
    return {"stop-after", "expected at most 'steps', got " +
                              std::to_string(options.stopAfter) + " and " +
                              std::to_string(options.steps)};
  if (OptionMistake mistake = checkCheckpointOptions(options.checkpoints);
      !mistake.option.empty())
    return mistake;
  if (options.checkpoints.keep.best && !options.validation.hasData())
    return {"keep-best", "expected 'eval-data', or an "
                         "'eval-fraction' above 0, beside it"};
  if (options.optimizer.postValidate && options.skip.isOn())
    return {"post-validate",
            "the decision to skip a step needs the norm before the update: "
            "expected neither 'skip-nonfinite' nor 'skip-spikes' beside it"};
  if (OptionMistake mistake = checkSampleOptions(options.samples);
      !mistake.option.empty())
    return mistake;
  return checkOptimizerOptions(options.optimizer);
}

std::optional<int> parseOptions(int argc, char **argv, bool prints,
                                Command &command, Options &options) {
  std::vector<std::string> arguments(argv, argv + argc);
  std::string program = "trainer";
  if (!arguments.empty()) {
    program = arguments.front();
    arguments.erase(arguments.begin());
  }
  auto ending = readArguments(std::move(arguments), program, command, options);
  if (!ending)
    return std::nullopt;
  return prints ? ending->print() : ending->exitCode;
}

} // namespace rota
