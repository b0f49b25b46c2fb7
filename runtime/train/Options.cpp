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

void addCommon(CLI::App &app, Options &o) {
  app.add_option("--steps", o.steps, "Optimizer steps")
      ->check(CLI::Range(int64_t(1), INT64_MAX))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "Seed of all random numbers")
      ->capture_default_str();
  app.add_option("--threads", o.threads, "Compute tokens; 0: one for each core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--weights", o.weights,
                 "Initial weights: a .safetensors file, a "
                 "model.safetensors.index.json or a folder that holds one");
  auto rate = [&](const char *name, double &value, const char *text) {
    app.add_option(name, value, text)
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
  };
  auto decay = [&](const char *name, double &value, const char *text) {
    app.add_option(name, value, text)
        ->check(CLI::Range(0.0, 0.999999999))
        ->capture_default_str();
  };
  rate("--learning-rate", o.adamw.learningRate, "Highest learning rate");
  decay("--beta1", o.adamw.beta1, "AdamW: decay of the first moment");
  decay("--beta2", o.adamw.beta2, "AdamW: decay of the second moment");
  rate("--epsilon", o.adamw.epsilon, "AdamW: added to the root");
  rate("--weight-decay", o.adamw.weightDecay,
       "AdamW: decay of tensors of two or more dimensions");
  rate("--gradient-clip", o.adamw.gradientClip,
       "Largest global norm of the gradient; 0: no clipping");
  app.add_option("--warmup-steps", o.adamw.warmupSteps,
                 "Steps in which the learning rate rises to its highest")
      ->check(CLI::Range(int64_t(0), INT64_MAX))
      ->capture_default_str();
  app.add_flag("--json", o.json, "One JSON object a line instead of text");
  app.add_flag("--profile", o.profile,
               "Print calls and time of each task, kernel and GEMM");
  app.add_option("--trace", o.trace,
                 "Write the first runs' actions as a Chrome trace");
}

void addTraining(CLI::App &app, Options &o) {
  app.add_option("--data", o.data,
                 "Token files, or text that is read as bytes");
  const std::map<std::string, TokenType> types = {
      {"bytes", TokenType::Bytes},
      {"uint16", TokenType::Uint16},
      {"uint32", TokenType::Uint32}};
  app.add_option("--token-type", o.tokenType,
                 "How a token stands in the files: bytes, uint16 or uint32")
      ->transform(CLI::CheckedTransformer(types, CLI::ignore_case))
      ->option_text("TYPE [bytes]");
  app.add_option("--validation-fraction", o.validationFraction,
                 "Part of the data, from its end, kept for validation")
      ->check(CLI::Range(0.0, 0.9))
      ->capture_default_str();
  app.add_option("--validation-interval", o.validationInterval,
                 "Steps between validations; 0: only after the last step")
      ->check(CLI::Range(int64_t(0), INT64_MAX))
      ->capture_default_str();
  app.add_option("--validation-steps", o.validationSteps,
                 "Batches in a validation")
      ->check(CLI::Range(int64_t(1), INT64_MAX))
      ->capture_default_str();
  app.add_option("--min-learning-rate", o.adamw.minLearningRate,
                 "Learning rate at the end of the cosine")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--time-limit", o.timeLimit,
                 "Stop training after these seconds; 0: no limit")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--log-interval", o.logInterval, "Steps between lines")
      ->check(CLI::Range(int64_t(1), INT64_MAX))
      ->capture_default_str();
  app.add_option("--save", o.save, "Write the final weights (.safetensors)");
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
      ->capture_default_str();
  probe->add_option("-o,--output", o.output, "The .safetensors file to write")
      ->required();
  return probe;
}

int complain(const std::string &message) {
  fmt::print(stderr, "error: {}\n", message);
  return kExitBadInput;
}

} // namespace

std::optional<int> parseOptions(int argc, char **argv, Options &options) {
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
    fmt::print("{}", app.help());
    return kExitSuccess;
  } catch (const CLI::ParseError &error) {
    return complain(error.what());
  }
  options.probe = probe->parsed();
  const CLI::App &used = options.probe ? *probe : app;
  if (std::vector<std::string> extras = app.remaining(true); !extras.empty())
    return complain(unknownArgument(used, extras.front()));
  if (options.adamw.minLearningRate > options.adamw.learningRate)
    return complain(fmt::format(
        "expected --min-learning-rate of at most --learning-rate {}, got {}",
        options.adamw.learningRate, options.adamw.minLearningRate));
  return std::nullopt;
}

} // namespace rota
