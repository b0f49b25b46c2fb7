// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/Libraries.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fmt/format.h>
#include <glob.h>

namespace rota::cuda {

static void addMatches(const std::string &pattern,
                       std::vector<std::string> &folders) {
  glob_t found = {};
  if (glob(pattern.c_str(), GLOB_ONLYDIR, nullptr, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i)
      folders.push_back(found.gl_pathv[i]);
  globfree(&found);
}

std::vector<std::string> libraryFolders() {
  auto variable = [](const char *name) -> std::string {
    const char *text = std::getenv(name);
    return text ? text : "";
  };
  std::vector<std::string> folders;
  if (std::string home = variable("CUDA_HOME"); !home.empty())
    folders.push_back(home + "/lib64");
  folders.push_back("/usr/local/cuda/lib64");
  std::string home = variable("HOME");
  for (const std::string &environment :
       {variable("VIRTUAL_ENV"), variable("CONDA_PREFIX"),
        home.empty() ? home : home + "/.local", std::string("/usr/local"),
        std::string("/usr")})
    if (!environment.empty())
      for (const char *packages : {"site-packages", "dist-packages"})
        addMatches(fmt::format("{}/lib/python3*/{}/nvidia/*/lib", environment,
                               packages),
                   folders);
  return folders;
}

void *openLibrary(std::span<const char *const> names, std::string &faults) {
  for (const char *name : names) {
    if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL))
      return library;
    faults += fmt::format("; {}", dlerror());
    for (const std::string &folder : libraryFolders())
      if (void *library =
              dlopen((folder + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL))
        return library;
  }
  return nullptr;
}

} // namespace rota::cuda
