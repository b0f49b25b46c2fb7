// SPDX-License-Identifier: Apache-2.0
//
// From a model's path to rota IR.
#include "models/Models.h"

#include "ir/rota/experts/Experts.h"
#include "models/Family.h"
#include "runtime/files/Nesting.h"
#include "runtime/program/WeightFiles.h"
#include "runtime/text/Text.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::rota;
using ::rota::numberText;

ArrayRef<const Family *> mlir::rota::allFamilies() {
#define ROTA_FAMILY_ROW(name) &name##Family,
  static constexpr const Family *families[] = {ROTA_FAMILIES(ROTA_FAMILY_ROW)};
#undef ROTA_FAMILY_ROW
  return families;
}

static InFlightDiagnostic errorAt(MLIRContext &context, StringRef path) {
  return emitError(FileLineColLoc::get(&context, path, 0, 0));
}

/// The configuration's `dtype`, under its new or its old key.
static ComputeType readComputeType(Config &config) {
  StringRef key = config.spelling("dtype", "torch_dtype");
  std::string name = config.text(key, "float32");
  // f32 holds every float16 exactly.
  if (!config.failed() && name != "float32" && name != "float16" &&
      name != "bfloat16")
    config.expected(key, "\"float32\", \"bfloat16\" or \"float16\"");
  return name == "bfloat16" ? ComputeType::BF16 : ComputeType::F32;
}

/// The family of the configuration; null after an error.
static const Family *findFamily(Config &config) {
  std::string type = config.text("model_type");
  if (config.failed())
    return nullptr;
  for (const Family *family : allFamilies())
    if (family->modelType == type)
      return family;
  auto diagnostic = config.error("model_type");
  diagnostic << "expected one of ";
  llvm::interleaveComma(allFamilies(), diagnostic, [&](const Family *family) {
    diagnostic << "\"" << family->modelType << "\"";
  });
  diagnostic << ", got \"" << type << "\"";
  return nullptr;
}

/// The method by which the file's weights are quantized, with the size of its
/// blocks unless that is the one which is read; empty: they are not. The other
/// keys of the object describe these weights alone.
static std::string readQuantization(Config &config) {
  StringRef key = "quantization_config";
  if (!config.find(key))
    return "";
  config.ignore(key);
  std::string method = config.text((key + ".quant_method").str());
  const nlohmann::json *size = config.find((key + ".weight_block_size").str());
  if (size &&
      *size != nlohmann::json{::rota::kQuantizedBlock, ::rota::kQuantizedBlock})
    method += " with the 'weight_block_size' " + shortText(*size);
  return method;
}

/// Reports `architectures` unless it names the family's language model, with or
/// without its head.
static void checkArchitecture(Config &config, const Family &family) {
  const nlohmann::json *given = config.find("architectures");
  auto isKnown = [&](const nlohmann::json &name) {
    return name == family.languageModel.str() || name == family.bareModel.str();
  };
  if (given && !family.languageModel.empty() &&
      !(given->is_array() && llvm::any_of(*given, isKnown)))
    config.error("architectures")
        << "expected \"" << family.languageModel << "\", got "
        << shortText(*given) << "; other heads are not supported";
}

/// Sizes of a microbatch that a configuration can be built with.
static LogicalResult checkMicrobatch(MLIRContext &context, StringRef path,
                                     const BuildOptions &options) {
  auto check = [&](StringRef what, int64_t value) -> LogicalResult {
    if (value >= 1 && value <= Config::maxSize)
      return success();
    return errorAt(context, path) << "expected " << what << " from 1 to "
                                  << Config::maxSize << ", got " << value;
  };
  if (failed(check("sequences in a microbatch", options.sequences)))
    return failure();
  if (failed(check("a sequence length", options.sequenceLength)))
    return failure();
  for (auto [what, count] :
       {std::pair("blocks of the loss", options.lossBlocks),
        std::pair("'expert-pieces'", options.experts.pieces)})
    if (count < 1 || options.sequenceLength % count != 0)
      return errorAt(context, path)
             << "expected " << what << " that divide the sequence length, got "
             << count << " and " << options.sequenceLength;
  return success();
}

/// Checks the elements of all parameters. Those of each are within maxElements.
static LogicalResult checkParameters(Config &config, ModuleOp module) {
  auto model = Model::get(module);
  if (failed(model))
    return failure();
  int64_t largest = 0;
  for (LayerOp kind : model->kinds()) {
    int64_t elements = 0;
    for (ParamOp param : Model::params(kind))
      elements += param.getTensorType().getNumElements();
    largest = std::max(largest, elements);
  }
  return checkElements(config, "num_hidden_layers",
                       "num_hidden_layers x the parameters of a layer",
                       {int64_t(model->stack.getLayers()), largest});
}

/// A loss of multi-token prediction needs a module of it.
static LogicalResult checkPrediction(MLIRContext &context, StringRef path,
                                     Config &config,
                                     const BuildOptions &options) {
  const nlohmann::json *modules = config.find(kPredictionKey);
  if (options.predictionLoss.value_or(0) == 0 || (modules && *modules != 0))
    return success();
  return errorAt(context, path)
         << "expected no loss of multi-token prediction, as '" << kPredictionKey
         << "' has no module of it, got "
         << numberText(*options.predictionLoss);
}

/// The options about experts that ask for something: flags and values.
static SmallVector<std::pair<const char *, double>>
askedOfExperts(const BuildOptions &options) {
  SmallVector<std::pair<const char *, double>> asked;
  for (auto option :
       {std::pair("expert-pieces", options.experts.pieces > 1
                                       ? double(options.experts.pieces)
                                       : 0.0),
        std::pair("expert-buffer", options.experts.buffer),
        std::pair("expert-capacity", options.experts.capacity),
        std::pair("load-balance-loss", options.routers.balance.value_or(0)),
        std::pair("router-z-loss", options.routers.zLoss),
        std::pair("router-bias-rate", options.routers.biasRate)})
    if (option.second != 0)
      asked.push_back(option);
  return asked;
}

template <typename Op> static bool contains(ModuleOp module) {
  return module.walk([](Op) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Options about experts need experts.
static LogicalResult checkExperts(Config &config, const BuildOptions &options,
                                  ModuleOp module) {
  auto asked = askedOfExperts(options);
  if (asked.empty() || contains<RouteOp>(module))
    return success();
  auto [name, value] = asked.front();
  return config.error("model_type")
         << "expected no '" << name << "' for a model without experts, got "
         << numberText(value);
}

/// A balance over the step needs a loss of balance.
static LogicalResult checkBalance(MLIRContext &context, StringRef path,
                                  const BuildOptions &options,
                                  ModuleOp module) {
  if (options.routers.balanceOver != LoadBalanceOver::Step ||
      contains<ObservedMeanOp>(module))
    return success();
  return errorAt(context, path)
         << "expected a model with a load balance loss, by its configuration "
            "or 'load-balance-loss', for 'load-balance-over' step";
}

/// A rate of biases needs routers with biases of choices.
static LogicalResult checkBiasRate(Config &config, double rate,
                                   ModuleOp module) {
  auto hasRate = [](RouteOp route) {
    return route.getBiasRate() ? WalkResult::interrupt()
                               : WalkResult::advance();
  };
  if (rate == 0 || module.walk(hasRate).wasInterrupted())
    return success();
  return config.error("model_type")
         << "expected no 'router-bias-rate' for a model whose routers have no "
            "bias of choices, as those of 'deepseek_v3' have, got "
         << numberText(rate);
}

static FailureOr<BuiltModel> buildFromConfig(MLIRContext &context,
                                             StringRef path,
                                             const BuildOptions &options) {
  if (failed(checkMicrobatch(context, path, options)))
    return failure();
  auto config = Config::read(context, path, options.config);
  if (!config)
    return failure();
  const Family *family = findFamily(*config);
  if (!family)
    return failure();
  ComputeType compute = readComputeType(*config);
  BuiltModel model;
  Microbatch microbatch{options.sequences,
                        options.sequenceLength,
                        options.compute.value_or(compute),
                        options.zLoss,
                        options.lossBlocks,
                        options.experts,
                        options.routers,
                        options.predictionLoss,
                        options.adapters,
                        options.documentEnd};
  model.sequences = options.sequences;
  model.sequenceLength = options.sequenceLength;
  model.config = config->source();
  model.module = ModuleOp::create(UnknownLoc::get(&context));
  auto builder = family->read(*config, microbatch, *model.module);
  checkArchitecture(*config, *family);
  model.quantization = readQuantization(*config);
  checkOtherKeys(*config, family->modelType, family->neutralKeys,
                 options.allowUnknownKeys);
  if (config->failed() ||
      failed(checkPrediction(context, path, *config, options)))
    return failure();
  builder->build();
  if (std::string mistake = builder->adapters().mistake(); !mistake.empty())
    return errorAt(context, path) << "'lora-targets': " << mistake;
  if (failed(verify(*model.module)) ||
      failed(checkParameters(*config, *model.module)) ||
      failed(checkExperts(*config, options, *model.module)) ||
      failed(checkBalance(context, path, options, *model.module)) ||
      failed(checkBiasRate(*config, options.routers.biasRate, *model.module)))
    return failure();
  if (!options.config.empty()) // there is no folder
    return model;
  for (const char *name : ::rota::kWeightFiles) {
    SmallString<128> weights(llvm::sys::path::parent_path(path));
    llvm::sys::path::append(weights, name);
    if (model.weights.empty() && llvm::sys::fs::exists(weights))
      model.weights = weights.str();
  }
  return model;
}

/// Checks one size of a user's module against what was asked for; 0 asks for
/// nothing.
static LogicalResult checkAsked(func::FuncOp embed, StringRef what,
                                int64_t asked, int64_t size) {
  if (asked == 0 || asked == size)
    return success();
  return embed.emitOpError("expected ")
         << asked << " " << what << " as asked for, got " << size;
}

/// Refuses options that mean something for configurations alone.
static LogicalResult checkModuleOptions(MLIRContext &context, StringRef path,
                                        const BuildOptions &options) {
  auto refuse = [&](const Twine &what, const Twine &reason,
                    const Twine &value) -> LogicalResult {
    return errorAt(context, path) << "expected no " << what << " for a module, "
                                  << reason << ", got " << value;
  };
  if (options.compute)
    return refuse("'dtype'", "whose types are its own",
                  ::rota::nameOf(*options.compute));
  if (options.zLoss != 0)
    return refuse("z-loss", "whose loss is its own", numberText(options.zLoss));
  if (options.predictionLoss.value_or(0) != 0)
    return refuse("loss of multi-token prediction", "whose loss is its own",
                  numberText(*options.predictionLoss));
  if (options.lossBlocks != 1)
    return refuse("blocks of the loss", "which has its own shapes",
                  Twine(options.lossBlocks));
  if (options.documentEnd)
    return refuse("'document-mask'", "whose attention is its own",
                  "end token " + Twine(*options.documentEnd));
  if (options.adapters.rank != 0)
    return refuse("'lora-rank'", "whose layers are its own",
                  Twine(options.adapters.rank));
  for (auto [name, value] : askedOfExperts(options))
    return refuse("'" + Twine(name) + "'", "whose experts are its own",
                  numberText(value));
  if (options.routers.balanceOver == LoadBalanceOver::Step)
    return refuse("'load-balance-over'", "whose losses are its own",
                  ::rota::nameOf(options.routers.balanceOver));
  return success();
}

/// Parses a model's own module. A module of a later level has ops of dialects
/// that a model lacks, whose names say less than the level does.
static OwningOpRef<ModuleOp> parseModel(MLIRContext &context, StringRef path,
                                        llvm::SourceMgr &sources) {
  bool isLowered = false;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    isLowered |=
        StringRef(diagnostic.str()).contains("not found for custom op");
    return failure(); // other handlers print it
  });
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (isLowered)
    errorAt(context, path)
        << "expected a model in the dialects rota, func, arith and math; a "
           "module that is already differentiated, sharded or lowered is an "
           "output of 'rota compile', for 'rota-opt' alone";
  return module;
}

/// Refuses a module that has backward functions.
static LogicalResult checkUndifferentiated(ModuleOp module) {
  auto result = module.walk([](func::FuncOp function) {
    FunctionKind kind = signatureOf(function).kind;
    if (kind != FunctionKind::Backward && kind != FunctionKind::BackwardInput &&
        kind != FunctionKind::BackwardWeight)
      return WalkResult::advance();
    function.emitOpError("expected a model without backward functions: this "
                         "module is already differentiated");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

static FailureOr<BuiltModel> loadModule(MLIRContext &context, StringRef path,
                                        const BuildOptions &options) {
  if (failed(checkModuleOptions(context, path, options)))
    return failure();
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return errorAt(context, path) << buffer.getError().message();
  if (auto mistake = ::rota::nestingMistake((*buffer)->getBuffer());
      !mistake.empty() && !isBytecode(**buffer))
    return errorAt(context, path) << mistake;
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*buffer), {});
  BuiltModel built;
  built.module = parseModel(context, path, sources);
  if (!built.module || failed(checkUndifferentiated(*built.module)))
    return failure();
  FailureOr<Model> model = Model::get(*built.module);
  if (failed(model))
    return failure();
  Type type = FunctionRoles(model->embed).argument(Role::Tokens).type();
  auto input = dyn_cast<RankedTensorType>(type);
  if (!input || input.getRank() < 2)
    return model->embed.emitOpError(
               "expected an argument [sequences, sequence, ...], got ")
           << type;
  built.sequences = input.getDimSize(0);
  built.sequenceLength = input.getDimSize(1);
  if (failed(checkAsked(model->embed, "sequences in a microbatch",
                        options.sequences, built.sequences)) ||
      failed(checkAsked(model->embed, "tokens in a sequence",
                        options.sequenceLength, built.sequenceLength)))
    return failure();
  return built;
}

FailureOr<BuiltModel> mlir::rota::buildModel(MLIRContext &context,
                                             StringRef path,
                                             const BuildOptions &options) {
  context.loadDialect<RotaDialect>(); // and with it what it depends on
  if (!options.config.empty()) {
    FailureOr<BuiltModel> model = buildFromConfig(context, path, options);
    if (succeeded(model))
      model->name = path.str();
    return model;
  }
  llvm::sys::fs::file_status status;
  std::error_code error = llvm::sys::fs::status(path, status);
  if (error == std::errc::no_such_file_or_directory)
    return errorAt(context, path) << "no such file or folder";
  if (error)
    return errorAt(context, path) << "cannot read: " << error.message();
  SmallString<128> file(path);
  StringRef name = llvm::sys::path::stem(path);
  if (llvm::sys::fs::is_directory(status)) {
    name = llvm::sys::path::filename(path.rtrim('/'));
    llvm::sys::path::append(file, "config.json");
  } else if (path.ends_with("config.json")) {
    StringRef folder = llvm::sys::path::parent_path(path);
    if (!folder.empty())
      name = llvm::sys::path::filename(folder);
  }
  StringRef extension = llvm::sys::path::extension(file);
  FailureOr<BuiltModel> model;
  if (extension == ".json")
    model = buildFromConfig(context, file, options);
  else if (extension == ".mlir")
    model = loadModule(context, file, options);
  else
    return errorAt(context, path) << "expected a model folder, a .json "
                                     "configuration or a .mlir file";
  if (succeeded(model))
    model->name = name.str();
  return model;
}

void mlir::rota::registerModelDialects(DialectRegistry &registry) {
  registry.insert<RotaDialect, arith::ArithDialect, func::FuncDialect,
                  math::MathDialect>();
  registerArithModels(registry);
}
