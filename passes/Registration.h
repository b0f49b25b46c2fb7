// SPDX-License-Identifier: Apache-2.0
//
// Named pipelines for tools that read them from text.
#ifndef ROTA_PASSES_REGISTRATION_H
#define ROTA_PASSES_REGISTRATION_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

namespace rota {

/// Registers the pipeline that `build` makes with defaults. Its options are
/// those of its passes: one that several passes have is set in each.
inline void
registerPipeline(llvm::StringRef name, llvm::StringRef description,
                 const std::function<void(mlir::OpPassManager &)> &build) {
  auto parse =
      [build](
          mlir::OpPassManager &manager, llvm::StringRef text,
          llvm::function_ref<llvm::LogicalResult(const llvm::Twine &)> report) {
        size_t first = manager.size();
        build(manager);
        for (llvm::StringRef option : llvm::split(text, ' ')) {
          bool isKnown = option.empty();
          for (mlir::Pass &pass :
               llvm::drop_begin(manager.getPasses(), first)) {
            std::string error;
            auto keep = [&](const llvm::Twine &message) {
              error = message.str();
              return llvm::failure();
            };
            if (succeeded(pass.initializeOptions(option, keep)))
              isKnown = true;
            else if (error.find("no such option") == std::string::npos)
              return report(error);
          }
          if (!isKnown)
            return report("no pass of the pipeline has the option '" + option +
                          "'");
        }
        return llvm::success();
      };
  mlir::registerPassPipeline(name, description, parse, [](auto) {});
}

} // namespace rota

#endif // ROTA_PASSES_REGISTRATION_H
