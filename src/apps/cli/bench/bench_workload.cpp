#include "apps/cli/bench/bench_workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <system_error>
#include <type_traits>

#include "apps/cli/options/option_table.h"
#include "base/file.h"
#include "base/json/json.h"
#include "base/text.h"

namespace jouleprof::cli {

namespace fs = std::filesystem;

Result<fs::path> BenchResult::path() const {
  if (!folder_) return forward_error(folder_);
  return folder_->path() / "result.json";
}

Result<model::BenchDocument> BenchResult::read() const {
  const auto file = path();
  if (!file) return forward_error(file);
  if (!fs::exists(*file)) {
    return fail(Errc::kUnavailable, "the workload wrote no result; its messages are above");
  }
  const auto text = read_file(*file);
  if (!text) return forward_error(text);
  return parse_bench_document(*text);
}

Result<std::string> seconds_of(const char* option, Duration time) {
  if (time <= Duration{} || time > std::chrono::hours{24}) {
    return fail(Errc::kInvalidArgument,
                fmt::format("{}: give a time above 0, at most 24h, such as 10s", option));
  }
  return shortest(seconds(time));
}

std::vector<CLI::Option*> BenchWorkload::declare(CLI::App& app) {
  return {
      add(app, "--seq-length", length)->check(above_zero()),
      add(app, "--mode", mode)->check(one_of({"eager", "compile", "graph", "train", "generate"})),
      add(app, "--new-tokens", new_tokens)->check(within(2, 1'000'000)),
      add(app, "--dtype", dtype)
          ->check(one_of({"auto", "float32", "float16", "bfloat16", "amp", "amp-bfloat16"})),
      add(app, "--device", device),
      add(app, "--min-time", min_time),
      add(app, "--max-warm-up", max_warm_up),
      add(app, "--python", python),
  };
}

Result<std::vector<std::string>> BenchWorkload::command(const std::string& word,
                                                        const std::vector<int>& batches) const {
  std::vector<std::string> words{python,
                                 "-m",
                                 "jouleprof.bench",
                                 word,
                                 "--mode",
                                 mode,
                                 "--batch",
                                 fmt::format("{}", fmt::join(batches, ",")),
                                 "--new-tokens",
                                 std::to_string(new_tokens),
                                 "--dtype",
                                 dtype,
                                 "--device",
                                 device};
  const auto add = [&](const char* option, std::string value) {
    words.emplace_back(option);
    words.push_back(std::move(value));
  };
  for (const auto& [option, given] :
       {std::pair{"--min-time", min_time}, std::pair{"--max-warm-up", max_warm_up}}) {
    auto time = seconds_of(option, given);
    if (!time) return forward_error(time);
    add(option, std::move(*time));
  }
  if (length) add("--seq-length", std::to_string(*length));
  return words;
}

Duration BenchWorkload::shortest_window() const {
  // Prefill and decode are short windows.
  return std::chrono::milliseconds{mode == "generate" ? 50 : 1000};
}

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "jouleprof.bench.workload/1";

// nlohmann's own conversion of a number is undefined where T does not hold it.
template <typename T>
T value_of(const Json& j) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    constexpr double kMost = 9e18;
    const double lowest = std::is_signed_v<T> ? -kMost : 0;
    const bool fits = j.is_number() && j.get<double>() >= lowest && j.get<double>() <= kMost;
    if (!fits) return Json().get<T>();  // nlohmann's exception of what is no number
  }
  return j.get<T>();
}

std::vector<std::int64_t> whole_numbers(const Json& object, const char* key) {
  std::vector<std::int64_t> numbers;
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return numbers;
  for (const auto& number : *found) numbers.push_back(value_of<std::int64_t>(number));
  return numbers;
}

// Absent where the value is null.
template <typename T>
std::optional<T> maybe(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  return value_of<T>(*found);
}

template <typename T>
T value_or(const Json& object, const char* key) {
  return maybe<T>(object, key).value_or(T{});
}

std::vector<model::BenchUnit> units_of(const Json& list) {
  std::vector<model::BenchUnit> units;
  for (const auto& unit : list) {
    units.push_back({unit.at("name").get<std::string>(), unit.at("per_iteration").get<double>()});
  }
  return units;
}

model::BenchLatency latency_of(const Json& j) {
  model::BenchLatency latency;
  latency.median = j.at("median_seconds").get<double>();
  if (const auto three = maybe<std::vector<double>>(j, "quartiles_seconds")) {
    if (three->size() == 3) latency.quartiles = {three->front(), three->back()};
  }
  latency.mean = j.at("mean_seconds").get<double>();
  latency.mean_error = maybe<double>(j, "mean_relative_error_ratio");
  latency.p50 = j.at("p50_seconds").get<double>();
  latency.p90 = j.at("p90_seconds").get<double>();
  latency.p99 = j.at("p99_seconds").get<double>();
  latency.quantiles_of = value_of<std::uint64_t>(j.at("quantiles_of_iterations"));
  latency.blocks = value_of<std::uint64_t>(j.at("blocks"));
  latency.iterations_per_block = value_of<std::uint64_t>(j.at("iterations_per_block"));
  latency.first_token_p50 = maybe<double>(j, "first_token_p50_seconds");
  latency.first_token_p99 = maybe<double>(j, "first_token_p99_seconds");
  latency.inter_token_p50 = maybe<double>(j, "inter_token_p50_seconds");
  latency.inter_token_p99 = maybe<double>(j, "inter_token_p99_seconds");
  return latency;
}

void read_model(const Json& j, model::BenchCase& bench) {
  bench.parameters = maybe<std::uint64_t>(j, "parameters");
  bench.trainable_parameters = maybe<std::uint64_t>(j, "trainable_parameters");
  bench.forward_macs = maybe<std::uint64_t>(j, "macs");
  for (const auto& layer : j.at("layers")) {
    bench.layers.push_back(
        {layer.at("name").get<std::string>(), layer.at("class").get<std::string>(),
         whole_numbers(layer, "input_size"), whole_numbers(layer, "output_size"),
         value_of<std::uint64_t>(layer.at("parameters")), maybe<std::uint64_t>(layer, "macs")});
  }
}

model::BenchCase case_of(const Json& j) {
  model::BenchCase bench;
  bench.window = j.at("window").get<std::string>();
  bench.workload = j.at("workload").get<std::string>();
  bench.mode = j.at("mode").get<std::string>();
  bench.batch = value_of<std::uint64_t>(j.at("batch"));
  bench.dtype = j.at("dtype").get<std::string>();
  bench.device = j.at("device").get<std::string>();
  bench.device_name = value_or<std::string>(j, "device_name");
  bench.energy_device = value_or<std::string>(j, "energy_device");
  bench.seed = value_of<std::int64_t>(j.at("seed"));
  bench.inputs = j.at("inputs").get<std::string>();
  bench.input_size = whole_numbers(j, "input_size");
  bench.iterations = value_of<std::uint64_t>(j.at("iterations"));
  bench.units = units_of(j.at("units"));
  for (const auto& phase : j.at("phases")) {
    bench.phases.push_back({phase.at("name").get<std::string>(),
                            phase.at("window").get<std::string>(), units_of(phase.at("units"))});
  }
  const auto& warm_up = j.at("warm_up");
  bench.warm_up_seconds = warm_up.at("seconds").get<double>();
  bench.warm_up_iterations = value_of<std::uint64_t>(warm_up.at("iterations"));
  bench.steady = warm_up.at("steady").get<bool>();
  bench.not_steady = warm_up.at("remark").get<std::string>();
  bench.compared = warm_up.at("compared").get<std::vector<std::string>>();
  bench.reached_target = maybe<bool>(j, "reached_target");
  bench.latency = latency_of(j.at("latency"));
  const auto timer = j.find("torch_timer");
  if (timer != j.end()) {
    bench.torch_timer_median = timer->at("median_seconds").get<double>();
    bench.torch_timer_text = value_or<std::string>(*timer, "text");
    bench.torch_compare_text = value_or<std::string>(*timer, "compare_text");
  }
  bench.threads = maybe<std::uint64_t>(j, "threads");
  bench.macs = maybe<std::uint64_t>(j, "macs");
  bench.macs_reason = value_or<std::string>(j, "macs_reason");
  read_model(j.at("model"), bench);
  bench.document = json_text(j);
  return bench;
}

}  // namespace

Result<model::BenchDocument> parse_bench_document(std::string_view text) {
  try {
    const Json j = Json::parse(text);
    const auto schema = j.at("schema").get<std::string>();
    if (schema != kSchema) {
      return fail(Errc::kUnsupported,
                  fmt::format("the workload wrote {}, and this tool reads {}; install the Python "
                              "package and the tool of one version",
                              schema, kSchema));
    }
    model::BenchDocument document;
    for (const auto& [name, version] : j.at("versions").items()) {
      if (!version.is_null()) document.versions[name] = version.get<std::string>();
    }
    for (const auto& bench : j.at("cases")) {
      document.cases.push_back(case_of(bench));
      if (document.cases.back().iterations == 0) {
        return fail(Errc::kCorrupt, "the workload's result has a case without an iteration");
      }
    }
    return document;
  } catch (const Json::exception& e) {
    return fail(Errc::kCorrupt,
                fmt::format("the workload's result cannot be read: {}", one_line(e.what())));
  }
}

}  // namespace jouleprof::cli
