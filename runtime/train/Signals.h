// SPDX-License-Identifier: Apache-2.0
//
// Signals to a training run.
#ifndef ROTA_RUNTIME_TRAIN_SIGNALS_H
#define ROTA_RUNTIME_TRAIN_SIGNALS_H

namespace rota {

/// From now on the first SIGINT, SIGTERM or SIGHUP ends the run after its step,
/// or within its validation, with a checkpoint and saving. A later SIGINT or
/// SIGTERM ends the process; a later SIGHUP, of which a terminal sends two,
/// does nothing, nor does any where the process ignores it (nohup). SIGUSR1
/// asks for a checkpoint.
void catchSignals();

/// Whether a signal has asked this process to end the run.
bool isInterrupted();
/// Whether a signal has asked this process for a checkpoint since the last
/// call by any of its ranks.
bool takeSaveRequest();

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_SIGNALS_H
