// Helpers of this folder's tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "importers/import.h"

namespace jouleprof::importers {

inline Result<model::Recording> import_text(std::string text, const ImportOptions& options = {}) {
  return import_texts(std::vector<SourceText>{{"in", std::move(text)}}, options);
}

inline std::string import_error(std::string text, const ImportOptions& options = {}) {
  const auto recording = import_text(std::move(text), options);
  EXPECT_FALSE(recording);
  return recording ? "" : recording.error().message;
}

// The power readings of the domain called `device`, in order.
inline std::vector<model::PowerReading> powers_of(const model::Recording& recording,
                                                  std::string_view device) {
  std::vector<model::PowerReading> powers;
  for (const auto& power : recording.readings.powers) {
    const auto& sensor = recording.sensors[static_cast<std::size_t>(power.sensor)];
    const auto& domain = recording.domains[static_cast<std::size_t>(sensor.domain)];
    if (domain.device == device) powers.push_back(power);
  }
  return powers;
}

// Joules by the trapezoid rule.
inline double trapezoid(const std::vector<model::PowerReading>& powers) {
  double joules = 0;
  for (std::size_t i = 1; i < powers.size(); ++i) {
    joules += 0.5 * (powers[i - 1].power.watts() + powers[i].power.watts()) *
              seconds(powers[i].at - powers[i - 1].at);
  }
  return joules;
}

inline bool has_warning(const model::Recording& recording, std::string_view part) {
  for (const auto& warning : recording.warnings) {
    if (warning.text.find(part) != std::string::npos) return true;
  }
  return false;
}

// Central European time, without the system's tables of zones.
inline constexpr const char* kBerlin = "CET-1CEST,M3.5.0,M10.5.0/3";

// Sets the time zone while it lives.
class ScopedZone {
 public:
  explicit ScopedZone(const char* zone) {
    if (const char* old = std::getenv("TZ")) before_ = old;
    setenv("TZ", zone, 1);
    tzset();
  }
  ScopedZone(const ScopedZone&) = delete;
  ScopedZone& operator=(const ScopedZone&) = delete;
  ~ScopedZone() {
    before_ ? setenv("TZ", before_->c_str(), 1) : unsetenv("TZ");
    tzset();
  }

 private:
  std::optional<std::string> before_;
};

// Sample output of other tools is outside the project.
inline std::filesystem::path peers_folder() {
  return std::filesystem::path(JOULEPROF_SOURCE_DIR) / ".." / "shared" / "data" / "peers";
}

// Skips the test that calls it when `relative` is not there.
#define JOULEPROF_PEER_FILE(name, relative)                       \
  const std::filesystem::path name = peers_folder() / (relative); \
  if (!std::filesystem::exists(name)) GTEST_SKIP() << name << ": sample is not present"

}  // namespace jouleprof::importers
