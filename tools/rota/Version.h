// SPDX-License-Identifier: Apache-2.0
//
// The text of `rota --version`.
#ifndef ROTA_TOOLS_ROTA_VERSION_H
#define ROTA_TOOLS_ROTA_VERSION_H

namespace rota {

/// Prints Rota's version, then a line for each library with the version that is
/// loaded here, not the one of the build where the library can tell. Libraries
/// that trainers load at run time are looked for as a trainer does it.
void printVersion();

} // namespace rota

#endif // ROTA_TOOLS_ROTA_VERSION_H
