#include <fmt/format.h>

#include "analysis/bench/bench_energy.h"
#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/output.h"
#include "apps/cli/verb.h"
#include "base/say.h"
#include "base/text.h"
#include "importers/csv/csv_recording.h"
#include "importers/import.h"
#include "recording/writer.h"
#include "report/cells.h"
#include "report/results/bench.h"

namespace jouleprof::cli {
namespace {

class ImportVerb : public Verb {
 public:
  std::string_view name() const override { return "import"; }

  void declare(CLI::App& app) override {
    add(app, "FILES", files_);
    add(app, "--output", output_)->required();
    add(app, "--force", force_);
    add(app, "--format", format_);
    add(app, "--interval", options_.interval);
    add(app, "--columns", columns_);
    add(app, "--time-column", options_.time_column);
    add(app, "--power-column", options_.power_columns)->allow_extra_args(false);
    add(app, "--device-column", options_.device_column);
    add(app, "--trim", trim_);
    add(app, "--block", block_)->check(above_zero());
    add(app, "--latency", latency_);
    add(app, "--samples", csv_.samples);
    add(app, "--counter", csv_.counter);
    add(app, "--kernels", csv_.kernels);
    add(app, "--names", csv_.names);
    add(app, "--idle", csv_.idle)->allow_extra_args(false);
    add(app, "--device-name", csv_.device_name);
    add(app, "--sampled", csv_.sampled)->check(one_of({"ring", "instant", "average"}));
    add(app, "--events", csv_.events);
  }

  int run(const std::vector<std::string>&) override {
    if (auto possible = check_output(output()); !possible) {
      return complain(possible.error(), kCannotWrite);
    }
    auto recording = format_ == "csv" ? import_tables() : import_logs();
    if (!recording) return complain(recording.error(), status_of_input(recording.error()));
    std::vector<analysis::DevicePower> powers;
    if (latency_) {
      if (*latency_ <= Duration{}) {
        return complain_of_usage("--latency must be above 0, such as 4.37ms");
      }
      powers = analysis::power_of_work(*recording);
      if (powers.empty()) {
        return complain({Errc::kUnavailable,
                         "--latency needs a power log: these files have no power of a GPU at work"},
                        kBadContent);
      }
    }
    recording->run.tool_version = JOULEPROF_VERSION;
    const auto written = recording::write_recording(output_, *recording, {.overwrite = force_});
    if (!written) return complain(written.error(), kCannotWrite);
    for (const auto& warning : recording->warnings) {
      say("jouleprof: note: {}\n", report::printable(warning.text));
    }
    if (latency_) {
      const auto shown = write_output(
          Output{}, report::latency_energy_to_text(powers, *latency_, text_options(STDOUT_FILENO)));
      if (!shown) return complain(shown.error(), kCannotWrite);
    }
    say_wrote(output_);
    return kDone;
  }

 private:
  Output output() const {
    Output output{output_, force_, files_};
    for (const auto& file : {csv_.samples, csv_.counter, csv_.kernels, csv_.names}) {
      output.others.push_back(file);
    }
    return output;
  }

  Result<model::Recording> import_tables() const {
    if (!files_.empty()) {
      return fail(
          Errc::kInvalidArgument,
          fmt::format("--format csv takes no plain file names: give --samples {} or another option",
                      files_.front()));
    }
    return importers::import_csv(csv_);
  }

  Result<model::Recording> import_logs() const {
    if (!csv_.samples.empty() || !csv_.counter.empty() || !csv_.kernels.empty()) {
      return fail(Errc::kInvalidArgument, "--samples, --counter and --kernels need --format csv");
    }
    if (files_.empty())
      return fail(Errc::kInvalidArgument, "no file to import; name one or more files");
    if (options_.power_columns.empty() &&
        (!options_.time_column.empty() || !options_.device_column.empty())) {
      return fail(Errc::kInvalidArgument,
                  "--time-column and --device-column need --power-column, the column of power");
    }
    importers::ImportOptions options = options_;
    options.format = format_;
    options.columns = columns_;
    options.device_name = csv_.device_name;
    options.trim = trim_ || latency_;
    options.block = block_;
    return importers::import_files({files_.begin(), files_.end()}, options);
  }

  std::vector<std::string> files_;
  importers::CsvSources csv_;
  importers::ImportOptions options_;
  std::string output_;
  std::string format_;
  std::optional<Duration> latency_;
  std::string columns_;
  std::optional<std::size_t> block_;
  bool trim_ = false;
  bool force_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_import() { return std::make_unique<ImportVerb>(); }

}  // namespace jouleprof::cli
