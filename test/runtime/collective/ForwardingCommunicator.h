// SPDX-License-Identifier: Apache-2.0
//
// A communicator of a test that changes some of what another one does.
#ifndef ROTA_TEST_RUNTIME_COLLECTIVE_FORWARDINGCOMMUNICATOR_H
#define ROTA_TEST_RUNTIME_COLLECTIVE_FORWARDINGCOMMUNICATOR_H

#include "runtime/collective/Communicator.h"

namespace rota::test {

/// Leaves everything to `inner`.
class ForwardingCommunicator : public Communicator {
public:
  explicit ForwardingCommunicator(Communicator &inner) : inner(inner) {}

  int rank() const override { return inner.rank(); }
  int size() const override { return inner.size(); }
  Request start(Stream stream, const Collective &collective,
                const RankGroup &group, const void *source,
                void *destination) override {
    return inner.start(stream, collective, group, source, destination);
  }
  Request send(Stream stream, int peer, const void *source,
               int64_t bytes) override {
    return inner.send(stream, peer, source, bytes);
  }
  Request receive(Stream stream, int peer, void *destination,
                  int64_t bytes) override {
    return inner.receive(stream, peer, destination, bytes);
  }
  Request copy(const void *source, void *destination, int64_t bytes) override {
    return inner.copy(source, destination, bytes);
  }
  TransferTime wait(Request request) override { return inner.wait(request); }
  TransferTime waitForTurn(Request request, Turn &turn) override {
    return inner.waitForTurn(request, turn);
  }
  bool isDone(Request request) override { return inner.isDone(request); }
  double now() const override { return inner.now(); }
  void setPosition(const std::string &position) override {
    inner.setPosition(position);
  }
  void fail(const std::string &message) override { inner.fail(message); }

protected:
  Communicator &inner;
};

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_COLLECTIVE_FORWARDINGCOMMUNICATOR_H
