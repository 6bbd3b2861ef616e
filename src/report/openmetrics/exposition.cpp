#include "report/openmetrics/exposition.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace jouleprof::report {
namespace {

constexpr std::string_view kTotal = "_total";
constexpr std::string_view kInfo = "_info";

// The length of the UTF-8 sequence that `text` begins with; 0: it is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xf0 && first < 0xf5   ? 4
                           : first >= 0xe0 && first < 0xf0 ? 3
                           : first >= 0xc2 && first < 0xe0 ? 2
                                                           : 0;
  if (size == 0 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const unsigned second = byte(1);
  const bool is_overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool is_no_character =
      (first == 0xed && second >= 0xa0) || (first == 0xf4 && second >= 0x90);
  return is_overlong || is_no_character ? 0 : size;
}

std::string_view without(std::string_view name, std::string_view suffix) {
  if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

}  // namespace

std::string escaped_label(std::string_view value) {
  std::string out;
  while (!value.empty()) {
    const auto size = sequence_length(value);
    const char c = value.front();
    if (size == 0) {
      out += "\xef\xbf\xbd";  // U+FFFD, the replacement character
    } else if (c == '\\' || c == '"') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += value.substr(0, size);
    }
    value.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

Labels& Labels::add(std::string_view name, std::string_view value) {
  if (value.empty()) return *this;
  if (!text_.empty()) text_ += ',';
  text_.append(name).append("=\"").append(escaped_label(value)).append("\"");
  return *this;
}

Labels& Labels::append(const Labels& more) {
  if (!text_.empty() && !more.text_.empty()) text_ += ',';
  text_ += more.text_;
  return *this;
}

void Exposition::announce() {
  announced_ = true;
  const auto& m = *metric_;
  auto to = std::back_inserter(out_);
  if (dialect_ == Dialect::kText) {
    fmt::format_to(to, "# HELP {} {}\n# TYPE {} {}\n", m.name, m.help, m.name,
                   m.type == MetricType::kCounter ? "counter" : "gauge");
    return;
  }
  std::string_view family = m.name;
  std::string_view type = "gauge";
  if (m.type == MetricType::kCounter) {
    type = family.ends_with(kTotal) ? "counter" : "unknown";
    family = without(family, kTotal);
  }
  if (m.type == MetricType::kInfo) family = without(family, kInfo), type = "info";
  fmt::format_to(to, "# TYPE {} {}\n", family, type);
  if (!m.unit.empty()) fmt::format_to(to, "# UNIT {} {}\n", family, m.unit);
  fmt::format_to(to, "# HELP {} {}\n", family, m.help);
}

void Exposition::sample(const Labels& labels, double value, std::optional<RealTime> since) {
  if (std::isfinite(value)) add(labels, shortest(value), since);
}

void Exposition::sample(const Labels& labels, Energy energy, std::optional<RealTime> since) {
  const auto n = energy.microjoules();
  const auto size = n < 0 ? 0 - static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
  std::array<char, 40> text;
  const auto end = fmt::format_to(text.data(), "{}{}.{:06}", n < 0 ? "-" : "", size / 1'000'000,
                                  size % 1'000'000);
  add(labels, {text.data(), static_cast<std::size_t>(end - text.data())}, since);
}

void Exposition::add(const Labels& labels, std::string_view value, std::optional<RealTime> since) {
  if (!announced_) announce();
  const auto line = [&](std::string_view name, std::string_view suffix, std::string_view number) {
    out_.append(name).append(suffix);
    if (!labels.text().empty()) out_.append("{").append(labels.text()).append("}");
    out_.append(" ").append(number).append("\n");
  };
  line(metric_->name, "", value);
  if (since && created_ && metric_->type == MetricType::kCounter) {
    const auto ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(since->time_since_epoch());
    line(without(metric_->name, kTotal), "_created",
         fmt::format("{}.{:03}", ms.count() / 1000, ms.count() % 1000));
  }
}

std::string Exposition::finish() && {
  if (dialect_ == Dialect::kOpenMetrics) out_ += "# EOF\n";
  return std::move(out_);
}

}  // namespace jouleprof::report
