// SPDX-License-Identifier: Apache-2.0
//
// Number and first seed of random cases: few by default, so that the suite is
// short, and as many as the environment asks for.
#ifndef ROTA_TEST_RANDOMCASES_H
#define ROTA_TEST_RANDOMCASES_H

#include <cstdint>
#include <cstdlib>

namespace rota {

inline uint64_t environmentNumber(const char *variable, uint64_t otherwise) {
  const char *text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// The number of random cases of a test: ROTA_TEST_CASES, or `otherwise`.
inline uint64_t randomCases(uint64_t otherwise) {
  return environmentNumber("ROTA_TEST_CASES", otherwise);
}

/// The seed of the first case: ROTA_TEST_SEED, or `otherwise`. Later cases have
/// the seeds after it.
inline uint64_t firstSeed(uint64_t otherwise = 0) {
  return environmentNumber("ROTA_TEST_SEED", otherwise);
}

} // namespace rota

#endif // ROTA_TEST_RANDOMCASES_H
