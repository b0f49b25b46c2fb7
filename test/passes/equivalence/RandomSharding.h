// SPDX-License-Identifier: Apache-2.0
//
// Random meshes, and random shardings wherever a module may have one.
#ifndef ROTA_TEST_PASSES_EQUIVALENCE_RANDOMSHARDING_H
#define ROTA_TEST_PASSES_EQUIVALENCE_RANDOMSHARDING_H

#include "ir/rota/sharding/Sharding.h"
#include "test/interpreter/GradientCheck.h"

namespace rota::interpreter {

class RandomSharding {
public:
  /// Chooses a mesh of one to three axes and 2 to 16 ranks.
  RandomSharding(uint64_t seed, mlir::MLIRContext *context);

  mlir::rota::MeshAttr getMesh() const { return mesh; }

  /// `data=2,tensor=4`, as options have it.
  std::string meshText() const;

  /// A rule for each of `names`, which divides the size beside it: an axis
  /// stands in one rule at most, none of `without` in any.
  std::string rules(llvm::ArrayRef<std::pair<std::string, int64_t>> names,
                    llvm::ArrayRef<mlir::rota::MeshAxis> without);

  /// Gives the module the mesh, parameters a placement, arguments and results
  /// of its functions a sharding, and puts `rota.constrain` after ops; some are
  /// left as they are, but for parameters. What ops get depends on
  /// their place in the function only.
  void decorate(mlir::ModuleOp module);

private:
  enum Freedom { Dividing, AnyPart, AnySum };
  mlir::rota::ShardingAttr
  sharding(Random &random, llvm::ArrayRef<int64_t> shape, Freedom freedom);
  llvm::SmallVector<mlir::rota::AxisRefAttr> pieces(Random &random);

  uint64_t seed;
  mlir::MLIRContext *context;
  mlir::rota::MeshAttr mesh;
};

} // namespace rota::interpreter

#endif // ROTA_TEST_PASSES_EQUIVALENCE_RANDOMSHARDING_H
