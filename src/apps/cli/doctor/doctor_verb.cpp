#include <fmt/format.h>

#include "apps/cli/doctor/calibrate.h"
#include "apps/cli/doctor/doctor_report.h"
#include "apps/cli/doctor/forget.h"
#include "apps/cli/measuring.h"
#include "apps/cli/options/input.h"
#include "apps/cli/terminal/exit_status.h"
#include "apps/cli/verb.h"

namespace jouleprof::cli {
namespace {

class DoctorVerb : public Verb {
 public:
  std::string_view name() const override { return "doctor"; }

  void declare(CLI::App& app) override {
    app.add_flag("--json", json_, "");
    app.add_flag("--calibrate", calibrate_, "");
    app.add_flag("--forget", forget_, "");
    app.add_flag("--forget-kernels", forget_kernels_, "");
    app.add_option("--devices", devices_, "")->delimiter(',')->envname("JOULEPROF_DEVICES");
    app.add_option("--cpu-tdp", cpu_tdp_, "")->envname("JOULEPROF_CPU_TDP");
  }

  int run(const std::vector<std::string>&) override {
    const auto cpu_tdp = parse_cpu_tdp(cpu_tdp_);
    if (!cpu_tdp) return complain(cpu_tdp.error(), kUsageError);
    if (forget_) {
      const auto done = forget(devices_);
      const bool wrong = !done && done.error().code == Errc::kInvalidArgument;
      if (!done) return complain(done.error(), wrong ? kUsageError : kCannotWrite);
    }
    if (forget_kernels_) {
      if (const auto done = forget_kernels(); !done) return complain(done.error(), kCannotWrite);
    }
    std::optional<Result<void>> calibration;
    if (calibrate_) calibration = calibrate(devices_);
    const bool failed = calibration && !*calibration;
    // With --json a document is printed also after a failure.
    if (failed && !json_) return complain(calibration->error(), kNothingToMeasure);
    meters::MeterOptions options;
    options.cpu_tdp = *cpu_tdp;
    options.devices = devices_;
    const auto found = meters::open_meters(options);
    if (!found) return complain(found.error(), kUsageError);
    const auto memory = remembered();
    const auto written = write_output(
        Output{}, json_ ? doctor_json(*found, calibration, memory) : doctor_text(*found, memory));
    if (!written) return complain(written.error(), kCannotWrite);
    if (failed) return complain(calibration->error(), kNothingToMeasure);
    return found->can_measure() ? kDone : kNothingToMeasure;
  }

 private:
  bool json_ = false;
  bool calibrate_ = false;
  bool forget_ = false;
  bool forget_kernels_ = false;
  std::vector<std::string> devices_;
  std::string cpu_tdp_;
};

}  // namespace

std::unique_ptr<Verb> make_doctor() { return std::make_unique<DoctorVerb>(); }

}  // namespace jouleprof::cli
