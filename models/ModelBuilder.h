// SPDX-License-Identifier: Apache-2.0
//
// The base of all builders: parameters, stacks, functions and reads.
#ifndef ROTA_MODELS_MODELBUILDER_H
#define ROTA_MODELS_MODELBUILDER_H

#include "ir/rota/model/Model.h"
#include "models/Adapters.h"
#include "models/Config.h"
#include "models/Models.h"

namespace mlir::rota {

/// Largest number of elements of a tensor or of a whole model: bytes of
/// parameters, moments and gradients then still fit in 64 bits.
inline constexpr int64_t maxElements = int64_t(1) << 56;

/// The key with the number of modules of multi-token prediction.
inline constexpr StringLiteral kPredictionKey = "num_nextn_predict_layers";

/// The shape of one microbatch, the element type of activations and the loss.
struct Microbatch {
  int64_t sequences;      // B
  int64_t sequenceLength; // S
  ComputeType compute;
  double zLoss; // coefficient; 0: none
  // Divides S: a call of the loss takes one of so many parts.
  int64_t lossBlocks;
  ExpertRoom experts = {};
  RouterLosses routers = {};
  std::optional<double> predictionLoss = {}; // BuildOptions::predictionLoss
  AdapterOptions adapters = {};
  std::optional<int32_t> documentEnd = {}; // BuildOptions::documentEnd
};

/// Builds one model module. Functions are built one at a time: `begin...` opens
/// one and the ops that follow go into it until `finish`.
class ModelBuilder : public ImplicitLocOpBuilder {
public:
  ModelBuilder(ModuleOp module, const Microbatch &microbatch);
  virtual ~ModelBuilder() = default;

  /// Builds the whole module, once.
  virtual void build() = 0;

  const Microbatch microbatch;

  /// The type of activations and of weights as they are read.
  FloatType computeType();
  RankedTensorType tensor(ArrayRef<int64_t> shape, Type element);
  /// [B, S, inner...] in the compute type, in the loss [B, S / blocks,
  /// inner...].
  RankedTensorType activation(ArrayRef<int64_t> inner);
  /// The S of functions: the whole sequence, or what a call of the loss takes,
  /// from `beginLoss` to `finish`.
  int64_t length() const { return sequenceLength; }
  void beginLoss();

  Attribute normal(double deviation);
  Attribute constant(double value);

  /// Names the key of the configuration that says how many whole parts an axis
  /// of parameters has: messages about those parts name it.
  void setAxisKey(StringRef axis, StringRef key) { axisKeys[axis] = key; }
  /// Declares a parameter at the current place: the module or a layer.
  void param(StringRef name, ArrayRef<int64_t> shape, ArrayRef<StringRef> axes,
             Attribute init, JoinedAttr joined = {});
  /// Declares the weight [out, in] of a linear layer, and its adapter if it
  /// gets one.
  void linear(StringRef name, ArrayRef<int64_t> shape, ArrayRef<StringRef> axes,
              Attribute init);
  /// The linear layers with adapters so far.
  const Adapters &adapters() const { return adapted; }
  /// A parameter that files join with others.
  struct JoinedPart {
    std::string name;
    SmallVector<int64_t> shape;
    SmallVector<StringRef> axes;
  };
  /// Declares parameters that files have as one tensor of that name, one after
  /// the other along `dimension`.
  void joinedParams(StringRef tensor, int64_t dimension,
                    ArrayRef<JoinedPart> parts, Attribute init);
  /// Opens a stack whose layer i is of kind `kinds[i]`; the IR has the shortest
  /// pattern that repeats. Between `beginLayers` and `endLayers`, which returns
  /// to the module, each kind is opened once by `beginKind`.
  void beginLayers(StringRef stack, ArrayRef<StringRef> kinds);
  void beginKind(StringRef kind);
  void endLayers();
  /// Opens the function of that part of the model and returns its arguments.
  RoleValues<Value> beginFunction(ModelPart part,
                                  const RoleValues<Type> &types);
  /// Declares the open function's `Role::LossTerm` of that index.
  void markLossTerm(size_t index, StringRef name, double coefficient);
  /// Returns `results` from the open function and leaves it.
  void finish(const RoleValues<Value> &results);

  /// Puts `names` before the names of parameters that are declared and read
  /// from here on.
  void setPrefix(std::string names) { prefix = std::move(names); }

  /// Whether the open function is a layer's.
  bool isInLayer();
  /// Whether a layer that was built has an auxiliary loss.
  bool hasAuxiliaryLoss();

  /// A parameter's value in the compute type, or in f32.
  Value read(StringRef name, ArrayRef<int64_t> shape);
  Value readF32(StringRef name, ArrayRef<int64_t> shape);
  /// `x` [B, S, in] times the transpose of parameter `name` [out, in], plus
  /// what the adapter of that layer adds.
  Value project(Value x, StringRef name, int64_t out, int64_t in);
  /// `x` plus parameter `name`, which lies along the last dimension.
  Value addBias(Value x, StringRef name);
  /// The tokens' positions [B, S] in their documents, once in a function; null
  /// where all tokens of a sequence are one document.
  Value documentPositions();
  /// A constant of `type` with this value everywhere.
  Value splat(Type type, double value);
  /// The value under a name for remat policies and probes.
  Value named(StringRef name, Value value);

private:
  void declare(StringRef name, ArrayRef<int64_t> shape,
               ArrayRef<StringRef> axes, Attribute init, JoinedAttr joined,
               bool isFrozen);
  Value product(Value x, StringRef name, int64_t out, int64_t in);

  Adapters adapted;
  Block *moduleBody;
  Block *stackBody = nullptr; // body of the open stack
  Block *outer = nullptr;     // around the open function
  int64_t sequenceLength;     // length in the functions that are built
  std::string prefix;         // begins the names of parameters
  llvm::StringMap<StringRef> axisKeys;
};

/// Reports, at `key`, a product of sizes that exceeds `maxElements`. `what`
/// spells the product: "vocab_size x hidden_size".
LogicalResult checkElements(Config &config, StringRef key, StringRef what,
                            ArrayRef<int64_t> sizes);

} // namespace mlir::rota

#endif // ROTA_MODELS_MODELBUILDER_H
