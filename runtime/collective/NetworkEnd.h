// SPDX-License-Identifier: Apache-2.0
//
// One rank's handle on what moves bytes between the ranks of a process.
#ifndef ROTA_RUNTIME_COLLECTIVE_NETWORKEND_H
#define ROTA_RUNTIME_COLLECTIVE_NETWORKEND_H

#include "runtime/collective/Exchange.h"

namespace rota {

/// Passes all calls on to a Switch, which must outlive it. The functions of a
/// Switch are those of Communicator, after the number of the calling rank.
template <typename Switch> class NetworkEnd : public Communicator {
public:
  NetworkEnd(Switch &network, int number) : network(network), number(number) {}

  int rank() const override { return number; }
  int size() const override { return network.size(); }
  Request start(Stream stream, const Collective &collective,
                const RankGroup &group, const void *source,
                void *destination) override {
    return network.start(number, {stream, collective, group}, group.index,
                         source, destination);
  }
  Request send(Stream stream, int peer, const void *source,
               int64_t bytes) override {
    return network.start(number, {stream, number, peer, bytes}, 0, source,
                         nullptr);
  }
  Request receive(Stream stream, int peer, void *destination,
                  int64_t bytes) override {
    return network.start(number, {stream, peer, number, bytes}, 1, nullptr,
                         destination);
  }
  Request copy(const void *source, void *destination, int64_t bytes) override {
    return network.copy(number, source, destination, bytes);
  }
  TransferTime wait(Request request) override {
    return network.wait(number, request);
  }
  bool isDone(Request request) override {
    return network.isDone(number, request);
  }
  double now() const override { return network.now(); }
  void setPosition(const std::string &position) override {
    network.setPosition(number, position);
  }
  void fail(const std::string &message) override { network.fail(message); }

protected:
  Switch &network;
  const int number;
};

} // namespace rota

#endif // ROTA_RUNTIME_COLLECTIVE_NETWORKEND_H
