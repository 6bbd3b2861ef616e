// Fake RAPL interfaces for tests: powercap zones, the power PMU, and the kernel behind its events.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meters/rapl/rapl_meter.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::meters {

inline constexpr std::string_view kPowercap = "sys/class/powercap/";
inline constexpr std::string_view kPmu = "sys/bus/event_source/devices/power/";

inline void add_zone(const TempTree& tree, const std::string& path, const std::string& name,
                     const std::string& energy, const std::string& max = "262143328850\n") {
  const std::string folder = std::string(kPowercap) + path + "/";
  tree.write(folder + "name", name + "\n");
  tree.write(folder + "energy_uj", energy + "\n");
  if (!max.empty()) tree.write(folder + "max_energy_range_uj", max);
}

inline void add_cpu(const TempTree& tree, const std::string& vendor, const std::string& name) {
  tree.write("proc/cpuinfo", "processor\t: 0\nvendor_id\t: " + vendor + "\nmodel name\t: " + name +
                                 "\nflags\t\t: fpu\n");
}

inline void add_event(const TempTree& tree, const std::string& name, const std::string& config) {
  const std::string file = std::string(kPmu) + "events/" + name;
  tree.write(file, config + "\n");
  tree.write(file + ".unit", "Joules\n");
  tree.write(file + ".scale", "2.3283064365386962890625e-10\n");
}

// Stands in for the kernel: every event is a pipe, into which the test writes counts.
class FakePerf {
 public:
  ~FakePerf() {
    for (const auto& [key, fd] : writers_) ::close(fd);
  }
  rapl::OpenEvent opener() {
    return [this](std::uint32_t type, std::uint64_t config, int cpu) -> Result<int> {
      EXPECT_EQ(type, 21u);
      if (denied) return fail(Errc::kPermissionDenied, "perf says no");
      int ends[2];
      // Not blocking: a read that the test did not expect fails instead of hanging.
      if (::pipe2(ends, O_NONBLOCK) != 0) return fail(Errc::kInternal, "no pipe");
      writers_[{config, cpu}] = ends[1];
      return ends[0];
    };
  }
  void count(std::uint64_t config, int cpu, std::uint64_t value) {
    ASSERT_EQ(::write(writers_.at({config, cpu}), &value, sizeof value),
              static_cast<ssize_t>(sizeof value));
  }
  void end(std::uint64_t config, int cpu) {
    ::close(writers_.at({config, cpu}));
    writers_.erase({config, cpu});
  }
  std::size_t opened() const { return writers_.size(); }
  bool denied = false;

 private:
  std::map<std::pair<std::uint64_t, int>, int> writers_;
};

inline std::unique_ptr<RaplMeter> open_meter(const TempTree& tree, FakePerf& perf,
                                             Demand demand = {}) {
  auto meter = RaplMeter::open({tree.root(), demand, perf.opener(), Duration{}});
  if (!meter) {
    ADD_FAILURE() << meter.error().message;
    return nullptr;
  }
  return std::move(*meter);
}

inline std::vector<std::string> describe_domains(const Meter& meter) {
  std::vector<std::string> lines;
  for (const auto& d : meter.domains()) {
    std::string line = std::string(to_string(d.kind)) + " " + d.device;
    if (d.parent) {
      line += " in " + meter.domains()[static_cast<std::size_t>(*d.parent)].device;
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace jouleprof::meters
