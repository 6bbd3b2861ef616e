
#include <cerrno>
#include <cstdio>

#include "apps/cli/measure/rest_watch.h"
#include "apps/cli/measuring.h"
#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/output.h"
#include "apps/cli/verb.h"
#include "base/file.h"
#include "base/say.h"
#include "base/text.h"
#include "meters/all/open_meters.h"
#include "report/csv/readings_csv.h"
#include "report/json/live_json.h"
#include "report/snapshot.h"
#include "session/run/session.h"

namespace jouleprof::cli {
namespace {

// Writes snapshots in one of the formats; the header comes before the first.
using Printer = std::function<std::string(const model::Snapshot&)>;

Result<Printer> make_printer(const std::string& format, const report::DmonOptions& dmon) {
  if (format == "dmon") {
    auto table = report::DmonTable::create(dmon);
    if (!table) return forward_error(table);
    return Printer([t = std::move(*table)](const auto& s) mutable { return t.rows(s); });
  }
  const auto with_header = [](std::string header, std::string (*rows)(const model::Snapshot&)) {
    return Printer([header = std::move(header), rows](const model::Snapshot& s) mutable {
      return std::exchange(header, {}) + rows(s);
    });
  };
  if (format == "csv") {
    return with_header(report::snapshot_csv_header(), report::snapshot_csv_rows);
  }
  if (format == "jsonl") return with_header({}, report::snapshot_json_line);
  return with_header(report::monitor_table_header(), report::monitor_table_rows);
}

class MonitorVerb : public Verb {
 public:
  std::string_view name() const override { return "monitor"; }

  void declare(CLI::App& app) override {
    add(app, "--format", format_)->check(one_of({"table", "csv", "jsonl", "dmon"}));
    add_parsed(app, "--delay", delay_, parse_duration_or_seconds);
    add(app, "--count", count_)->check(above_zero());
    add(app, "--select", select_);
    add(app, "--options", stamps_);
    add(app, "--record", record_);
    sensors_.declare(app);
    app.final_callback([this, &app] {
      for (const char* option : {"--select", "--options"}) {
        if (app.count(option) > 0) of_dmon_ = option;
      }
    });
  }

  int run(const std::vector<std::string>&) override {
    if (of_dmon_ != nullptr && format_ != "dmon") {
      return complain_of_usage(
          fmt::format("{} is of --format dmon: give that too, or leave it out", of_dmon_));
    }
    if (delay_ < std::chrono::milliseconds{10}) {
      return complain_of_usage("--delay must be at least 10ms");
    }
    auto printer = make_printer(format_, {.select = select_, .time = stamps_, .interval = delay_});
    if (!printer) return complain(printer.error(), kUsageError);
    const auto sensors = sensors_.meters({.shortest_window = delay_, .poll_period = {}});
    if (!sensors) return complain(sensors.error(), kUsageError);
    auto found = meters::open_meters(*sensors);
    if (!found) return complain(found.error(), kUsageError);

    auto destination =
        record_.empty() ? Result<Destination>(Destination{}) : Destination::file(record_, false);
    if (!destination) return complain(destination.error(), kCannotWrite);

    session::SessionOptions options;
    options.tool_version = JOULEPROF_VERSION;
    options.devices = sensors_.devices;
    options.snapshot_period = delay_;
    if (count_) options.snapshots = *count_;
    std::stop_source stop;
    options.stop = stop.get_token();
    int write_error = 0;  // EPIPE: the reader is gone, as with `monitor | head`
    RestWatch rest;       // stored for later runs; if that fails, the next one observes it again
    options.on_snapshot = [&](const model::Snapshot& snapshot) {
      if (rest.add(snapshot)) (void)meters::nvml::keep_levels(rest.levels());
      const std::string rows = (*printer)(snapshot);
      errno = 0;
      if (std::fputs(rows.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return;
      write_error = errno != 0 ? errno : EIO;
      stop.request_stop();
    };
    const auto result = session::run(options, std::move(found->meters),
                                     record_.empty() ? nullptr : &destination->sink());
    if (!result) return complain(result.error(), kUsageError);
    for (const auto& warning : result->warnings) {
      say("jouleprof: {}\n", report::printable(warning.text));
    }
    if (result->sink_error) return complain(*result->sink_error, kCannotWrite);
    if (write_error != 0 && write_error != EPIPE) {
      return complain(system_error("cannot write to the standard output", write_error),
                      kCannotWrite);
    }
    if (!record_.empty()) {
      say_wrote(record_);
    }
    return kDone;
  }

 private:
  std::string format_ = "table";
  Duration delay_ = std::chrono::seconds{1};
  std::optional<std::uint64_t> count_;
  std::string select_ = "puc";
  std::string stamps_;
  const char* of_dmon_ = nullptr;  // an option of dmon on the command line: a setting is no request
  SensorChoice sensors_;
  std::string record_;
};

}  // namespace

std::unique_ptr<Verb> make_monitor() { return std::make_unique<MonitorVerb>(); }

}  // namespace jouleprof::cli
