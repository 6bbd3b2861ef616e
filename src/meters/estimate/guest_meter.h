// Reads a virtual machine's share of its host's energy.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "meters/meter.h"
#include "model/device/guest_file.h"

namespace jouleprof::meters {

struct GuestOptions {
  std::filesystem::path file;
  std::function<ClockPoint()> clock = [] { return ClockPoint::now(); };
};

// One domain for each line of energy. A reading is the mean power since the one before, at the
// host's stamp, which the guest's own real time is compared with: a stamp that is more than a
// minute old, or 2 s or more ahead, is a failure. The energies follow the CPU time of the virtual
// machine, so that they are labelled estimated.
//
// Not thread safe, as every Meter. No privileges needed.
class GuestMeter : public Meter {
 public:
  // Errors: as read_file's; corrupt; unsupported for a file without a line of energy.
  static Result<std::unique_ptr<GuestMeter>> open(const GuestOptions& options);

  std::string name() const override { return "guest"; }
  HostTime read(std::size_t index, model::Readings& out) override;

 private:
  explicit GuestMeter(GuestOptions options) : options_(std::move(options)) {}

  const GuestOptions options_;
  model::GuestFile last_;
};

}  // namespace jouleprof::meters
