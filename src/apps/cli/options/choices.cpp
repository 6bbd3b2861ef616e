#include "apps/cli/options/choices.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/output.h"
#include "base/file.h"
#include "base/gzip/gzip.h"
#include "base/text.h"
#include "importers/import.h"
#include "importers/source_text.h"
#include "recording/merge/merged_file.h"
#include "recording/reader.h"
#include "recording/sweep_file.h"

namespace jouleprof::cli {
namespace {

// The recording of one run of a sweep or of a merged file, by way of a file that is removed again.
Result<model::Recording> read_run(const std::string& file, unsigned run, bool is_merged) {
  const auto folder = TemporaryFolder::create();
  if (!folder) return forward_error(folder);
  const auto path = folder->path() / "run.jprof";
  const auto extracted = is_merged ? recording::extract_part(file, run, path)
                                   : recording::extract_run(file, run, path);
  if (!extracted) return forward_error(extracted);
  return recording::read_recording(path);
}

constexpr std::size_t kLargestFile = 64 << 20;             // of carbon intensities
constexpr std::size_t kLargestLog = std::size_t{1} << 30;  // of a wall meter

Result<model::WallLog> read_log(const std::string& file, const std::string& column) {
  const auto source = importers::read_source(file, kLargestLog);
  if (!source) return forward_error(source);
  return importers::read_wall_log(source->text, file, column);
}

}  // namespace

void Input::declare(CLI::App& app) {
  add(app, "FILE", file)->required();
  add(app, "--run", run)->check(above_zero());
  add(app, "--no-memory", no_memory);
  add(app, "--from", part.from);
  add(app, "--to", part.to);
}

Result<analysis::Run> Input::open() const {
  const bool is_sweep = recording::is_sweep_file(file);
  const bool is_merged = !is_sweep && recording::is_merged_file(file);
  if (run == 0 && (is_sweep || is_merged)) {
    return fail(Errc::kInvalidArgument,
                is_sweep ? fmt::format("{0} is a sweep: give one of its runs with --run N, or use "
                                       "jouleprof recommend {0}",
                                       file)
                         : fmt::format("{0} holds several recordings: give one with --run N, or "
                                       "use jouleprof report {0}",
                                       file));
  }
  if (run > 0 && !is_sweep && !is_merged) {
    if (const auto one = recording::read_recording(file); !one) return forward_error(one);
    return fail(Errc::kInvalidArgument,
                fmt::format("{} is one recording, so that it has no --run", file));
  }
  auto recording = run > 0 ? read_run(file, run, is_merged) : recording::read_recording(file);
  if (!recording) return forward_error(recording);
  if (no_memory) recording->remembered.clear();
  return analysis::Run(std::move(*recording));
}

int write_run(const analysis::Run& run, const Input& input, const report::Format& format,
              const report::FormatOptions& options, const Output& output) {
  Result<void> made;
  const auto written = write_output(output, [&](std::ostream& out) {
    if (!names_gzip(output.path) || format.is_packed) {
      made = format.write(run, input.part, options, out);
      return made.has_value();
    }
    GzipStream packed(out);
    made = format.write(run, input.part, options, packed);
    packed.finish();
    return made.has_value();
  });
  if (!written) return complain(written.error(), kCannotWrite);
  if (made) return kDone;
  return complain({made.error().code, fmt::format("{}: {}", input.file, made.error().message)},
                  status_of_input(made.error()));
}

void CostChoice::declare(CLI::App& app) {
  add(app, "--price", price);
  add(app, "--carbon", carbon);
  add(app, "--pue", pue);
}

Result<report::CostFactors> CostChoice::factors() const {
  report::CostFactors factors;
  if (!price.empty()) {
    auto parsed = report::parse_price(price);
    if (!parsed) return forward_error(parsed);
    factors.price = std::move(*parsed);
  }
  if (!carbon.empty()) {
    std::string_view number = trim(carbon);
    if (number.ends_with("g/kWh")) number = trim(number.substr(0, number.size() - 5));
    if (const auto grams = parse_number(number)) {
      if (*grams < 0) return fail(Errc::kInvalidArgument, "--carbon must not be below 0");
      factors.grams = *grams;
    } else {
      const auto text = read_file(carbon, kLargestFile);
      if (!text) {
        return fail(text.error().code,
                    fmt::format("--carbon {}: neither a number of grams for a kilowatt-hour nor a "
                                "file: {}",
                                carbon, text.error().message));
      }
      auto series = report::parse_carbon_series(*text, carbon);
      if (!series) return forward_error(series);
      factors.series = std::move(*series);
    }
  }
  if (!pue.empty()) {
    const auto ratio = parse_number(pue);
    if (!ratio || *ratio < 1 || *ratio > 10) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("--pue {}: give the power usage effectiveness, from 1 to 10, such as "
                              "1.2",
                              pue));
    }
    if (!factors.any()) return fail(Errc::kInvalidArgument, "--pue needs --price or --carbon");
    factors.pue = *ratio;
  }
  return factors;
}

void WallChoice::declare(CLI::App& app) {
  auto* wall = add(app, "--wall", files)->allow_extra_args(false);
  add(app, "--wall-column", column)->needs(wall);
}

Result<std::optional<model::WallLog>> WallChoice::of_run() const {
  if (files.empty()) return std::optional<model::WallLog>();
  if (files.size() > 1) {
    return fail(Errc::kInvalidArgument,
                "a recording has one --wall; several are of a job's machines");
  }
  auto log = read_log(files.front(), column);
  if (!log) return forward_error(log);
  return std::optional(std::move(*log));
}

Result<std::vector<std::pair<std::string, model::WallLog>>> WallChoice::of_job() const {
  std::vector<std::pair<std::string, model::WallLog>> logs;
  for (const auto& word : files) {
    const auto equals = word.find('=');
    if (equals == word.npos || equals == 0) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("--wall {}: of a job, name the machine, such as --wall node1={}",
                              word, word));
    }
    auto log = read_log(word.substr(equals + 1), column);
    if (!log) return forward_error(log);
    logs.emplace_back(word.substr(0, equals), std::move(*log));
  }
  return logs;
}

}  // namespace jouleprof::cli
