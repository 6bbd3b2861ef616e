// The domains that a window is charged with.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "model/domain.h"

namespace jouleprof::model {

// All domains, or some. Copies share their list.
class DeviceSet {
 public:
  DeviceSet() = default;  // all
  explicit DeviceSet(std::vector<DomainId> some) {
    std::sort(some.begin(), some.end());
    some.erase(std::unique(some.begin(), some.end()), some.end());
    some_ = std::make_shared<const std::vector<DomainId>>(std::move(some));
  }

  bool is_all() const { return some_ == nullptr; }
  bool contains(DomainId id) const {
    return is_all() || std::binary_search(some_->begin(), some_->end(), id);
  }
  // In order; empty of all.
  std::vector<DomainId> list() const { return is_all() ? std::vector<DomainId>{} : *some_; }

  bool operator==(const DeviceSet& other) const {
    return is_all() == other.is_all() && list() == other.list();
  }

 private:
  std::shared_ptr<const std::vector<DomainId>> some_;
};

}  // namespace jouleprof::model
