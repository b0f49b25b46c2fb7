// SPDX-License-Identifier: Apache-2.0
//
// Environment variables of a test.
#ifndef ROTA_TEST_RUNTIME_ENVIRONMENTVARIABLE_H
#define ROTA_TEST_RUNTIME_ENVIRONMENTVARIABLE_H

#include <cstdlib>
#include <optional>
#include <string>

namespace rota::test {

/// Sets an environment variable, or removes it where the value is null, for a
/// scope.
class EnvironmentVariable {
public:
  EnvironmentVariable(const char *name, const char *value) : name(name) {
    if (const char *text = std::getenv(name))
      before = text;
    set(value);
  }
  ~EnvironmentVariable() { set(before ? before->c_str() : nullptr); }
  EnvironmentVariable(const EnvironmentVariable &) = delete;
  EnvironmentVariable &operator=(const EnvironmentVariable &) = delete;

private:
  void set(const char *value) {
    if (value)
      setenv(name, value, /*overwrite=*/1);
    else
      unsetenv(name);
  }
  const char *name;
  std::optional<std::string> before;
};

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_ENVIRONMENTVARIABLE_H
