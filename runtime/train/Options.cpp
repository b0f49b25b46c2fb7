// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/Options.h"
#include "runtime/Error.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace rota {

namespace {

/// Edits (insert, remove, replace a letter) that turn one word into the other.
size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

/// "unknown argument '--step'; did you mean '--steps'?"
std::string unknownArgument(const CLI::App &app, std::string word) {
  word = word.substr(0, word.find('='));
  std::string nearest;
  size_t best = std::max<size_t>(3, word.size() / 3);
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames()) {
      size_t distance = editDistance(word, "--" + name);
      if (distance < best) {
        best = distance;
        nearest = "--" + name;
      }
    }
  std::string message = fmt::format("unknown argument '{}'", word);
  return nearest.empty()
             ? message
             : message + fmt::format("; did you mean '{}'?", nearest);
}

/// Empty, or what is wrong with a number given as text.
template <typename T>
std::string rangeError(const std::string &text, T least, T most) {
  T value;
  if (!CLI::detail::lexical_cast(text, value))
    return fmt::format("expected a number, got '{}'", text);
  if (value < least)
    return fmt::format("expected at least {}, got {}", least, text);
  if (value > most)
    return fmt::format("expected at most {}, got {}", most, text);
  return "";
}

/// Options with a number show "N [default]" in the help, not their range.
template <typename T>
void addNumber(CLI::App &app, const char *name, T &value, T least, T most,
               const char *text) {
  app.add_option(name, value, text)
      ->check([=](const std::string &given) {
        return rangeError<T>(given, least, most);
      })
      ->option_text(fmt::format("N [{}]", value));
}

constexpr int64_t kManySteps = INT64_MAX;
constexpr double kManyNumber = 1e300;

void addCommon(CLI::App &app, Options &o) {
  AdamW &a = o.adamw;
  addNumber<int64_t>(app, "--steps", o.steps, 1, kManySteps, "Optimizer steps");
  addNumber<uint64_t>(app, "--seed", o.seed, 0, UINT64_MAX,
                      "Seed of all random numbers");
  const std::map<std::string, RankKind> kinds = {{"threads", RankKind::Threads},
                                                 {"mpi", RankKind::Mpi}};
  app.add_option("--ranks", o.ranks,
                 "What a rank is: a thread, or a process that mpirun or srun "
                 "started (mpi)")
      ->transform(CLI::CheckedTransformer(kinds))
      ->option_text("KIND [threads]");
  addNumber(
      app, "--threads", o.threads, 0, 1024,
      "Cores that a process computes with; 0: its share of the machine's");
  app.add_option("--weights", o.weights,
                 "Initial weights: a .safetensors file, a "
                 "model.safetensors.index.json or a folder that holds one")
      ->option_text("PATH");
  addNumber(app, "--learning-rate", a.learningRate, 0.0, kManyNumber,
            "Highest learning rate");
  addNumber<int64_t>(app, "--warmup-steps", a.warmupSteps, 0, kManySteps,
                     "Steps in which the learning rate rises to its highest");
  addNumber(app, "--beta1", a.beta1, 0.0, 0.999999999,
            "AdamW: decay of the first moment");
  addNumber(app, "--beta2", a.beta2, 0.0, 0.999999999,
            "AdamW: decay of the second moment");
  addNumber(app, "--epsilon", a.epsilon, 0.0, kManyNumber,
            "AdamW: added to the root");
  addNumber(app, "--weight-decay", a.weightDecay, 0.0, kManyNumber,
            "AdamW: decay of tensors of two or more dimensions");
  addNumber(app, "--gradient-clip", a.gradientClip, 0.0, kManyNumber,
            "Largest global norm of the gradient; 0: no clipping");
  app.add_flag("--json", o.json, "One JSON object a line instead of text");
  app.add_flag("--profile", o.profile,
               "Print calls and time of each task, kernel and GEMM");
  app.add_option("--trace", o.trace,
                 "Write the first runs' actions as a Chrome trace")
      ->option_text("FILE");
}

void addTraining(CLI::App &app, Options &o) {
  app.add_option("--data", o.data, "Token files, or text that is read as bytes")
      ->option_text("FILE ...");
  const std::map<std::string, TokenType> types = {
      {"bytes", TokenType::Bytes},
      {"uint16", TokenType::Uint16},
      {"uint32", TokenType::Uint32}};
  app.add_option("--token-type", o.tokenType,
                 "How a token stands in the files: bytes, uint16 or uint32")
      ->transform(CLI::CheckedTransformer(types))
      ->option_text("TYPE [bytes]");
  addNumber(app, "--validation-fraction", o.validationFraction, 0.0, 0.9,
            "Part of the data, from its end, kept for validation");
  addNumber<int64_t>(app, "--validation-interval", o.validationInterval, 0,
                     kManySteps,
                     "Steps between validations; 0: only after the last step");
  addNumber<int64_t>(app, "--validation-steps", o.validationSteps, 1, 1000000,
                     "Batches in a validation");
  addNumber(app, "--min-learning-rate", o.adamw.minLearningRate, 0.0,
            kManyNumber, "Learning rate at the end of the cosine");
  addNumber(app, "--time-limit", o.timeLimit, 0.0, kManyNumber,
            "Stop training after these seconds; 0: no limit");
  addNumber<int64_t>(app, "--log-interval", o.logInterval, 1, kManySteps,
                     "Steps between lines");
  app.add_option("--save", o.save, "Write the final weights (.safetensors)")
      ->option_text("FILE");
}

CLI::App *addProbe(CLI::App &app, Options &o) {
  CLI::App *probe = app.add_subcommand(
      "probe", "Run a few steps on given tokens and write named tensors");
  o.write = {"loss"};
  addCommon(*probe, o);
  probe
      ->add_option(
          "--tokens", o.tokens,
          "A .safetensors file with `tokens` [batch, sequence + 1], or "
          "`inputs` and `targets`")
      ->required();
  probe
      ->add_option("--write", o.write,
                   "What to write: loss, logits, gradients, loss-curve")
      ->delimiter(',')
      ->check(CLI::IsMember({"loss", "logits", "gradients", "loss-curve"}))
      ->option_text("NAME,... [loss]");
  probe->add_option("-o,--output", o.output, "The .safetensors file to write")
      ->option_text("FILE")
      ->required();
  return probe;
}

int complain(const std::string &message, bool speaks) {
  if (speaks)
    fmt::print(stderr, "error: {}\n", message);
  return kExitBadInput;
}

} // namespace

std::optional<int> parseOptions(int argc, char **argv, bool speaks,
                                Options &options) {
  CLI::App app("Trains the model that this program was compiled from.\n"
               "Exit codes: 0 success, 1 the run failed, 2 bad arguments or "
               "input.");
  app.allow_extras();
  addCommon(app, options);
  addTraining(app, options);
  CLI::App *probe = addProbe(app, options);
  probe->allow_extras();
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &) {
    if (speaks)
      fmt::print("{}", app.help());
    return kExitSuccess;
  } catch (const CLI::ParseError &error) {
    return complain(error.what(), speaks);
  }
  options.probe = probe->parsed();
  const CLI::App &used = options.probe ? *probe : app;
  if (std::vector<std::string> extras = app.remaining(true); !extras.empty())
    return complain(unknownArgument(used, extras.front()), speaks);
  if (options.adamw.minLearningRate > options.adamw.learningRate)
    return complain(
        fmt::format(
            "expected --min-learning-rate of at most --learning-rate {}, got "
            "{}",
            options.adamw.learningRate, options.adamw.minLearningRate),
        speaks);
  return std::nullopt;
}

} // namespace rota
