// SPDX-License-Identifier: Apache-2.0
//
// A folder that is removed at the end of a test, with functions to fill it.
#ifndef ROTA_TEST_RUNTIME_TEMPORARYFOLDER_H
#define ROTA_TEST_RUNTIME_TEMPORARYFOLDER_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace rota::test {

class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "rota-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(folder); }

  std::string path(const std::string &name) const {
    return (folder / name).string();
  }
  std::string write(const std::string &name, const std::string &bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  std::string read(const std::string &name) const {
    std::ifstream stream(path(name), std::ios::binary);
    std::stringstream text;
    text << stream.rdbuf();
    return text.str();
  }
  /// Number of entries: 1 after one file was written and nothing left behind.
  int64_t count() const {
    return std::distance(std::filesystem::directory_iterator(folder), {});
  }

private:
  std::filesystem::path folder;
};

/// The message of the exception of type E that `body` throws.
template <typename E, typename F> std::string messageOf(F body) {
  try {
    body();
  } catch (const E &error) {
    return error.what();
  }
  return "(no exception)";
}

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_TEMPORARYFOLDER_H
