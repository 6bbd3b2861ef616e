#include "apps/cli/bench/bench_workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>

#include <system_error>

#include "apps/cli/bench/bench_document.h"
#include "apps/cli/options/checks.h"
#include "base/file.h"
#include "base/text.h"

namespace jouleprof::cli {

namespace fs = std::filesystem;

BenchResult::BenchResult() {
  std::error_code err;
  std::string name = (fs::temp_directory_path(err) / "jouleprof-bench-XXXXXX").string();
  if (::mkdtemp(name.data()) != nullptr) folder_ = name;
}

BenchResult::~BenchResult() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

Result<fs::path> BenchResult::path() const {
  if (!folder_.empty()) return folder_ / "result.json";
  return fail(Errc::kUnavailable,
              "no temporary folder can be made; set TMPDIR to one that can be written");
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

Result<std::string> seconds_of(const char* option, const std::string& text) {
  const auto time = parse_duration(text);
  if (!time) return tl::unexpected(time.error());
  if (*time <= Duration{} || *time > std::chrono::hours{24}) {
    return fail(Errc::kInvalidArgument,
                fmt::format("{} {}: give a time above 0, such as 10s", option, text));
  }
  return shortest(seconds(*time));
}

std::vector<CLI::Option*> BenchWorkload::declare(CLI::App& app) {
  return {
      app.add_option("-s,--seq-length", length, "")->check(above_zero()),
      app.add_option("--mode", mode, "")
          ->check(CLI::IsMember({"eager", "compile", "graph", "train", "generate"})),
      app.add_option("--new-tokens", new_tokens, "")->check(CLI::Range(2, 1'000'000)),
      app.add_option("--dtype", dtype, "")
          ->check(CLI::IsMember({"auto", "float32", "float16", "bfloat16", "amp", "amp-bfloat16"})),
      app.add_option("--device", device, ""),
      app.add_option("--min-time", min_time, ""),
      app.add_option("--max-warm-up", max_warm_up, ""),
      app.add_option("--python", python, "")->envname("JOULEPROF_PYTHON"),
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
  for (const auto& [option, text] :
       {std::pair{"--min-time", &min_time}, std::pair{"--max-warm-up", &max_warm_up}}) {
    auto time = seconds_of(option, *text);
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

}  // namespace jouleprof::cli
