#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>

#include "meters/all/open_meters.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::meters {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using Names = std::set<std::string>;

// A machine whose hardware is another at each look.
class Looks {
 public:
  explicit Looks(std::vector<Names> all) : all_(std::move(all)) {}

  Names look() {
    const std::lock_guard lock(mutex_);
    if (next_ == all_.size()) is_over_ = true;
    changed_.notify_all();
    return all_[std::min(next_++, all_.size() - 1)];
  }
  void find(const std::vector<std::string>& names) {
    const std::lock_guard lock(mutex_);
    found_.insert(found_.end(), names.begin(), names.end());
  }
  // After all looks, and what was done about the last of them.
  std::vector<std::string> found() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_over_; });
    return found_;
  }

 private:
  const std::vector<Names> all_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t next_ = 0;
  bool is_over_ = false;
  std::vector<std::string> found_;
};

model::Domain board(std::string uuid) {
  model::Domain domain;
  domain.uuid = std::move(uuid);
  return domain;
}

std::vector<std::string> found_in(std::vector<Names> looks, std::vector<model::Domain> opened) {
  Looks all(std::move(looks));
  HardwareWatch watch([&] { return all.look(); });
  watch.start(opened, 1ms, [&](const auto& names) { all.find(names); });
  auto found = all.found();
  watch.stop();
  return found;
}

TEST(HardwareWatch, NamesWhatAppears) {
  EXPECT_THAT(found_in({{}, {"GPU-1"}, {"GPU-1"}, {"GPU-0", "GPU-1"}}, {}),
              ElementsAre("GPU-1", "GPU-0"));
}

TEST(HardwareWatch, WhatWasOpenedHasNotAppeared) {
  EXPECT_THAT(found_in({{"GPU-0"}, {"GPU-0", "GPU-1"}}, {board("GPU-0"), board("")}),
              ElementsAre("GPU-1"));
}

TEST(HardwareWatch, WhatComesBackIsNamedAgain) {
  EXPECT_THAT(found_in({{"GPU-0"}, {}, {"GPU-0"}}, {board("GPU-0")}), ElementsAre("GPU-0"));
}

TEST(HardwareWatch, ZonesAndChipsAreOffered) {
  const TempTree tree({{"sys/class/powercap/intel-rapl:0/energy_uj", "1\n"},
                       {"sys/class/powercap/intel-rapl/enabled", "1\n"},
                       {"sys/class/hwmon/hwmon2/name", "amdgpu\n"},
                       {"sys/bus/event_source/devices/power/type", "9\n"}});
  setenv("JOULEPROF_ROOT", tree.root().c_str(), 1);
  setenv("JOULEPROF_NVML_LIBRARY", "/nonexistent/libnvidia-ml.so.1", 1);
  const auto names = offered_hardware();
  unsetenv("JOULEPROF_ROOT");
  unsetenv("JOULEPROF_NVML_LIBRARY");
  EXPECT_EQ(names, (Names{"hwmon2 amdgpu", "perf power", "powercap intel-rapl:0"}));
}

}  // namespace
}  // namespace jouleprof::meters
