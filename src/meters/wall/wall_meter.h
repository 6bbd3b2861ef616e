// A meter at the wall as a domain of its own.
#pragma once

#include <memory>
#include <string>

#include "meters/meter.h"
#include "meters/wall/wall_source.h"

namespace jouleprof::meters {

struct WallOptions {
  std::string spec;  // of parse_wall_spec
  std::string device = "wall";
  Demand demand = {};
};

// A domain of kind kPlatform: it contains all others, and no total has it. A reading is
// taken as often as the specification says, or at Demand::poll_period where that is longer.
class WallMeter : public Meter {
 public:
  // Errors: as of parse_wall_spec and open_wall_source.
  static Result<std::unique_ptr<WallMeter>> open(const WallOptions& options);

  std::string name() const override { return "wall meter"; }
  HostTime read(std::size_t index, model::Readings& out) override;  // blocks up to kWallPatience
  void set_demand(const Demand& demand) override;

 private:
  WallMeter(WallSpec spec, std::unique_ptr<WallSource> source);

  WallSpec spec_;
  std::unique_ptr<WallSource> source_;
};

}  // namespace jouleprof::meters
