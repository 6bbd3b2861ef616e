#include <fmt/format.h>

#include "analysis/analyse.h"
#include "analysis/attribute.h"
#include "analysis/windows/windows.h"
#include "apps/cli/clip.h"
#include "apps/cli/exit_status.h"
#include "apps/cli/input.h"
#include "apps/cli/verb.h"
#include "base/gzip/gzip_stream.h"
#include "recording/reader.h"
#include "report/chrome/chrome_trace.h"
#include "report/csv/export_samples.h"
#include "report/foreign/aipowermeter.h"
#include "report/render.h"

namespace jouleprof::cli {
namespace {

Result<void> write_power_metrics(std::ostream& out, const Analysed& input,
                                 const analysis::Options& part) {
  std::vector<report::PowerCurve> curves;
  for (const auto& domain : input.profile.domains) {
    auto steps = analysis::power_curve(input.recording, domain.domain.id,
                                       std::chrono::milliseconds{100}, part);
    if (!steps.empty()) curves.push_back({domain.domain.id, std::move(steps)});
  }
  return report::write_aipowermeter(out, input.recording, curves);
}

class ExportVerb : public Verb {
 public:
  std::string_view name() const override { return "export"; }

  void declare(CLI::App& app) override {
    input_.declare(app);
    app.add_option("--format", format_, "")
        ->check(CLI::IsMember({"csv", "counters", "gauges", "processes", "windows", "json",
                               "aipowermeter", "chrome"}));
    app.add_option("-o,--output", output_, "");
    app.add_flag("-f,--force", force_, "");
  }

  int run(const std::vector<std::string>&) override {
    if (format_ == "windows") return export_windows();
    auto input = read_and_analyse(input_);
    if (!input) return complain(input.error(), status_of_input(input.error()));
    if (!input_.from.empty() || !input_.to.empty()) {
      clip(input->recording, input->profile.begin, input->profile.end);
    }
    Result<void> made;
    const auto written = write_output(output_, force_, [&](std::ostream& out) {
      if (format_ == "csv") report::write_power_csv(out, input->recording);
      if (format_ == "counters") report::write_counter_csv(out, input->recording);
      if (format_ == "gauges") report::write_gauge_csv(out, input->recording);
      if (format_ == "processes") out << report::processes_to_csv(input->profile);
      if (format_ == "json") out << report::to_json(input->profile);
      if (format_ == "aipowermeter") made = write_power_metrics(out, *input, *input_.options());
      if (format_ == "chrome") made = export_chrome(out, *input);
    });
    if (!written) return complain(written.error(), kCannotWrite);
    if (!made) {
      return complain({made.error().code, fmt::format("{}: {}", input_.file, made.error().message)},
                      status_of_input(made.error()));
    }
    return kDone;
  }

 private:
  Result<void> export_chrome(std::ostream& out, const Analysed& input) const {
    const auto profiles = analysis::attribute(input.recording, *input_.options());
    if (!profiles) return forward_error(profiles);
    analysis::WindowEnergies energies(input.recording);
    report::ChromeTraceParts parts;
    parts.profiles = &*profiles;
    parts.version = JOULEPROF_VERSION;
    if (!input_.from.empty()) parts.begin = input.profile.begin;
    if (!input_.to.empty()) parts.end = input.profile.end;
    parts.window_energy = [&](const model::Window& window, std::size_t domain) {
      return energies.energy(window, domain);
    };
    for (const auto& domain : input.recording.domains) {
      const auto step =
          std::chrono::milliseconds{domain.kind == model::DomainKind::kGpu ? 20 : 100};
      auto steps = analysis::power_curve(input.recording, domain.id, step, *input_.options());
      if (!steps.empty()) parts.curves.push_back({domain.id, std::move(steps)});
    }
    if (!names_gzip(output_)) return report::write_chrome_trace(out, input.recording, parts);
    GzipStream packed(out);
    auto made = report::write_chrome_trace(packed, input.recording, parts);
    packed.finish();
    return made;
  }

  // Windows without a time can't be analysed, and those with one need no profile.
  int export_windows() const {
    auto recording = recording::read_recording(input_.file);
    if (!recording) return complain(recording.error(), status_of_input(recording.error()));
    analysis::WindowEnergies energies(*recording);  // told of all windows, whatever is exported
    if (auto ok = keep_part(*recording); !ok) {
      return complain({ok.error().code, fmt::format("{}: {}", input_.file, ok.error().message)},
                      status_of_input(ok.error()));
    }
    const auto written = write_output(output_, force_, [&](std::ostream& out) {
      report::write_window_csv(out, *recording,
                               [&](const model::Window& window, std::size_t domain) {
                                 return energies.energy(window, domain);
                               });
    });
    return written ? kDone : complain(written.error(), kCannotWrite);
  }

  // Of the windows those that begin between --from and --to, as a report has them.
  Result<void> keep_part(model::Recording& recording) const {
    if (input_.from.empty() && input_.to.empty()) return {};
    const auto options = input_.options();
    if (!options) return tl::unexpected(options.error());
    const auto profile = analysis::analyse(recording, *options);
    if (!profile) return forward_error(profile);
    const auto outside = [&](std::optional<HostTime> begin) {
      return !begin || *begin < profile->begin || *begin >= profile->end;
    };
    std::erase_if(recording.windows, [&](const auto& w) { return outside(w.begin); });
    std::erase_if(recording.imported_windows, [&](const auto& w) { return outside(w.begin); });
    return {};
  }

  Input input_;
  std::string format_ = "csv";
  std::string output_;
  bool force_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_export() { return std::make_unique<ExportVerb>(); }

}  // namespace jouleprof::cli
