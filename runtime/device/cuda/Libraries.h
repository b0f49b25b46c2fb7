// SPDX-License-Identifier: Apache-2.0
//
// Libraries of CUDA, which are loaded at run time.
#ifndef ROTA_RUNTIME_DEVICE_CUDA_LIBRARIES_H
#define ROTA_RUNTIME_DEVICE_CUDA_LIBRARIES_H

#include <span>
#include <string>
#include <vector>

namespace rota::cuda {

/// The folders of CUDA's libraries beside those of the system's loader, in
/// order: $CUDA_HOME/lib64, /usr/local/cuda/lib64, and the `lib` folders of
/// NVIDIA's packages in the environments of Python: $VIRTUAL_ENV,
/// $CONDA_PREFIX, ~/.local, /usr/local and /usr.
std::vector<std::string> libraryFolders();

/// A handle of dlopen of the first of `names` that loads: each by the system's
/// loader, then in libraryFolders(). Null where there is none; `faults` is then
/// what the system's loader said of each.
void *openLibrary(std::span<const char *const> names, std::string &faults);

} // namespace rota::cuda

#endif // ROTA_RUNTIME_DEVICE_CUDA_LIBRARIES_H
