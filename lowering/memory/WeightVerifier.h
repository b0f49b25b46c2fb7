// SPDX-License-Identifier: Apache-2.0
//
// The plan verifier's checks of weights and gradients: where calls find them,
// how UNSHARD, RESHARD and REDUCE_GRAD move them, and when SUM_GRAD and REFRESH
// exchange them for the updates.
#ifndef ROTA_LOWERING_MEMORY_WEIGHTVERIFIER_H
#define ROTA_LOWERING_MEMORY_WEIGHTVERIFIER_H

#include "lowering/memory/VerifierState.h"

#include <algorithm>

namespace rota::memory {

class WeightVerifier {
public:
  explicit WeightVerifier(VerifierState &state);

  /// Begins a walk.
  void reset();

  void unshard(int chunk, const ActionTemplate &actionTemplate);
  void reshard(int chunk);
  void reduceGrad(int chunk, const ActionTemplate &actionTemplate);
  void sumGrad(int chunk, const ActionTemplate &actionTemplate);
  void refresh(int chunk, const ActionTemplate &actionTemplate);
  /// The zeros that a compute action writes before its calls, to which these
  /// add: see `finish`.
  void clear(const ActionTemplate &actionTemplate);

  /// A call finds the weights of a block at `values` and, where it `adds` to
  /// them, the sums of its gradients so far at `gradients`. Where it has none,
  /// the offset must be -1.
  /// `again`: an earlier call of the action has used the same places.
  void use(const NamedBlock &block, int64_t values, int64_t gradients,
           bool adds, bool again);

  /// The calls of an action have ended.
  void finish();

private:
  const Parameter &parameter(const ParameterBlock::Entry &entry) const {
    return state.program.parameters[entry.parameter];
  }
  int64_t bytesOf(const ParameterBlock::Entry &entry) const {
    return byteSize(parameter(entry).compute) * elements[entry.parameter];
  }
  const KeptParameter &keptOf(int parameter, int64_t layer) const;
  int64_t accumulatorOf(int parameter, int64_t layer) const;
  void gather(int chunk, const NamedBlock &block,
              std::span<const Transfer> transfers);
  std::string reduceOne(int chunk, const Transfer &transfer);
  /// The exchanges of a tensor for its update so far, by action.
  struct Exchanged {
    std::vector<int> reductions; // by REDUCE_GRAD
    std::vector<int> sums;       // by SUM_GRAD, a round each
    int refresh = -1;
    bool isRead = false; // by a call or an UNSHARD
    bool isAdded = false;
  };
  Exchanged &exchangedOf(const ParameterBlock::Entry &entry, int64_t layer) {
    return exchanged[{entry.parameter, std::max(layer, NamedBlock::kEmbed)}];
  }
  Exchanged *exchangedOf(int chunk, int update);
  void readWeights(const ParameterBlock::Entry &entry, const NamedBlock &block);
  void addGradient(const ParameterBlock::Entry &entry, const NamedBlock &block);
  void expectComplete(const std::vector<int> &actions, const char *what);
  void expectAt(int64_t expected, int64_t got, const Name &name);

  VerifierState &state;
  bool hasWindows;
  KeptParameters kept;
  std::vector<int64_t> elements; // by parameter, as functions see it
  // By chunk: the places and names of its gathered weights, of which a chunk
  // without parameters has none; nothing where they are not gathered.
  std::vector<std::optional<std::vector<std::pair<int64_t, Name>>>> gathered;
  // Exchanges by parameter and layer, which is -1 for an end's.
  std::map<std::pair<int, int64_t>, Exchanged> exchanged;
  std::vector<Clear> cleared; // by this action; no call has added to it yet
};

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_WEIGHTVERIFIER_H
