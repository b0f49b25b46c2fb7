// SPDX-License-Identifier: Apache-2.0
//
// Bounds checks that the verifiers of a program's parts share.
#ifndef ROTA_RUNTIME_PROGRAM_CHECKS_H
#define ROTA_RUNTIME_PROGRAM_CHECKS_H

#include "runtime/program/Program.h"

#include <set>

namespace rota {

/// Keeps the first error of a walk over the program.
class Checks {
protected:
  Checks(const Program &program, std::string &error)
      : program(program), error(error) {}

  void fail(const std::string &message) {
    if (error.empty())
      error = message;
  }

  void expect(int64_t expected, int64_t got, const std::string &what) {
    if (expected != got)
      fail(what + ": expected " + std::to_string(expected) + ", got " +
           std::to_string(got));
  }

  /// A number of `size` things; -1 is "none" and allowed where `optional`.
  void index(int64_t value, size_t size, bool optional,
             const std::string &what) {
    if (optional && value == -1)
      return;
    if (value < 0 || value >= static_cast<int64_t>(size))
      fail(what + ": expected a number below " + std::to_string(size) +
           ", got " + std::to_string(value));
  }

  /// [offset, offset + bytes) must lie in the arena of that size; -1 is "none"
  /// and allowed where `optional`.
  void within(int64_t arena, int64_t offset, int64_t bytes, bool optional,
              const std::string &what, const char *which = "arena") {
    if (optional && offset == -1)
      return;
    if (offset < 0 || bytes < 0 || offset > arena - bytes)
      fail(what + ": expected bytes within the " + which + " of " +
           std::to_string(arena) + ", got offset " + std::to_string(offset) +
           " and " + std::to_string(bytes) + " bytes");
  }

  /// Checks that the bytes lie within the arena of `stage`; -1 is allowed where
  /// `optional`.
  void place(int stage, int64_t offset, int64_t bytes, bool optional,
             const std::string &what) {
    if (optional && offset == -1)
      return;
    if (stage < 0 || stage >= static_cast<int>(program.stages.size()))
      return fail(what + ": expected a stage below " +
                  std::to_string(program.stages.size()) + ", got " +
                  std::to_string(stage));
    within(program.stages[stage].arenaBytes, offset, bytes, optional, what);
  }

  /// Numbers of mesh axes, none twice.
  void axes(const std::vector<int> &list, const std::string &what) {
    for (int axis : list)
      index(axis, program.mesh.size(), false, what + ": axis");
    if (std::set<int>(list.begin(), list.end()).size() != list.size())
      fail(what + ": expected each axis once");
  }

  /// A distance between positions of the group along `axes`.
  void shift(int64_t shift, const std::vector<int> &axes,
             const std::string &what) {
    int64_t ranks = error.empty() ? groupSize(program.mesh, axes) : 1;
    if (shift < 0 || shift >= ranks)
      fail(what + ": expected a shift below the " + std::to_string(ranks) +
           " ranks of the group, got " + std::to_string(shift));
  }

  void division(const Division &division, const std::vector<int64_t> &shape,
                const std::string &what) {
    if (division.size() > shape.size())
      fail(what + ": expected at most " + std::to_string(shape.size()) +
           " dimensions, got " + std::to_string(division.size()));
    std::vector<int> all;
    for (const std::vector<int> &list : division)
      all.insert(all.end(), list.begin(), list.end());
    axes(all, what);
  }

  const Program &program;
  std::string &error;
};

/// The part of the checks that is about collectives, parameters and what their
/// updates take. The mesh has been checked.
bool verifyParameters(const Program &program, std::string &error);

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_CHECKS_H
