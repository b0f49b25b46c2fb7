// SPDX-License-Identifier: Apache-2.0
//
// The objects that the opaque handles stand for of the emulated driver.
#ifndef ROTA_RUNTIME_DEVICE_SIMT_HANDLES_H
#define ROTA_RUNTIME_DEVICE_SIMT_HANDLES_H

#include <cstdint>
#include <map>
#include <memory>

namespace rota::simt {

/// A handle is a number that is not used again, so the handle of an object
/// that was removed is not found. The caller locks.
template <typename Handle, typename Object> class Handles {
public:
  Handle add(std::shared_ptr<Object> object) {
    Handle handle = reinterpret_cast<Handle>(++last * kStep);
    objects.emplace(handle, std::move(object));
    return handle;
  }
  std::shared_ptr<Object> find(Handle handle) const {
    auto place = objects.find(handle);
    return place == objects.end() ? nullptr : place->second;
  }
  bool remove(Handle handle) { return objects.erase(handle) > 0; }

  auto begin() const { return objects.begin(); }
  auto end() const { return objects.end(); }

private:
  static constexpr uintptr_t kStep = 16; // looks like an address

  uintptr_t last = 0;
  std::map<Handle, std::shared_ptr<Object>> objects;
};

} // namespace rota::simt

#endif // ROTA_RUNTIME_DEVICE_SIMT_HANDLES_H
