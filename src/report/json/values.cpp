#include "report/json/values.h"

#include <algorithm>
#include <type_traits>

#include "base/json/json.h"
#include "base/text.h"
#include "report/cells.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

void write(const Json& value, int indent, int depth, std::string& out) {
  if (value.is_binary()) {
    out.append(value.get_binary().begin(), value.get_binary().end());
    return;
  }
  if (!value.is_structured() || value.empty()) {
    out += json_text(value);
    return;
  }
  const auto new_line = [&](int level) {
    if (indent > 0) out += '\n' + std::string(static_cast<std::size_t>(indent * level), ' ');
  };
  out += value.is_object() ? '{' : '[';
  bool first = true;
  for (const auto& [key, item] : value.items()) {
    if (!first) out += indent == 0 ? ", " : ",";
    first = false;
    new_line(depth + 1);
    if (value.is_object()) out += json_text(Json(key)) + (indent < 0 ? ":" : ": ");
    write(item, indent, depth + 1, out);
  }
  new_line(depth);
  out += value.is_object() ? '}' : ']';
}

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

template <class T>
constexpr bool is_quartiles =
    std::is_same_v<T, model::Quartiles<Energy>> || std::is_same_v<T, model::Quartiles<Duration>>;

// A scalar as CSV has it.
std::string text_of(std::string_view text, int) { return std::string(text); }
std::string text_of(bool flag, int) { return flag ? "true" : "false"; }
std::string text_of(std::int64_t n, int) { return std::to_string(n); }
std::string text_of(std::uint64_t n, int) { return std::to_string(n); }
std::string text_of(double value, int decimals) { return fixed_decimal(value, decimals); }
std::string text_of(Energy e, int) { return joules_decimal(e); }
std::string text_of(Duration d, int) { return seconds_decimal(d); }
std::string text_of(Power p, int) { return fixed_decimal(p.watts()); }
std::string text_of(RealTime t, int) { return utc_text(t); }

Json json_of(const Value::Held& held, int decimals) {
  return std::visit(
      Overloaded{[](std::string_view text) { return Json(text); },
                 [](bool flag) { return Json(flag); }, [](std::int64_t n) { return Json(n); },
                 [](std::uint64_t n) { return Json(n); },
                 [](RealTime t) { return Json(utc_text(t)); },
                 [](const Bounds& b) {
                   return Json::array({joules_json(b.low), optional_json(b.high, joules_json)});
                 },
                 [](const Value::Nested& nested) { return nested ? nested() : Json(nullptr); },
                 [&](const auto& value) {
                   if constexpr (is_quartiles<std::decay_t<decltype(value)>>) {
                     return Json::array({decimal(text_of(value.lower, 0)),
                                         decimal(text_of(value.median, 0)),
                                         decimal(text_of(value.upper, 0))});
                   } else {
                     return decimal(text_of(value, decimals));
                   }
                 }},
      held);
}

}  // namespace

// The library writes doubles in its own way and has no other kind of number that is not an integer;
// its binary values, which JSON has no form for, carry the digits instead.
Json decimal(std::string_view text) {
  if (text.empty()) return nullptr;
  // Json::binary() crashes where memory runs out in it (nlohmann 3.11).
  Json out(Json::value_t::binary);
  out.get_binary() = Json::binary_t({text.begin(), text.end()});
  return out;
}

Json joules_json(Energy e) { return decimal(joules_decimal(e)); }
Json seconds_json(Duration d) { return decimal(seconds_decimal(d)); }
Json number_json(double value) { return decimal(fixed_decimal(value)); }
Json text_json(std::string_view text) { return text.empty() ? Json(nullptr) : Json(text); }

std::string write_json(const Json& document, int indent) {
  std::string out;
  write(document, indent, 0, out);
  return out;
}

std::optional<Bounds> bounds_of(const std::optional<model::Measurement>& m, bool is_partial) {
  if (!m) return std::nullopt;
  Bounds bounds = bounds_of(*m);
  if (is_partial) bounds.high.reset();
  return bounds;
}

bool Columns::Column::is_absent() const {
  const auto* text = std::get_if<std::string_view>(&value.held());
  return value.is_absent() || (text != nullptr && text->empty() && !null.empty());
}

void JsonColumns::take(const Column& c) {
  if (c.traits.in == In::kCsv) return;
  object_[std::string(c.name)] =
      c.is_absent() ? Json(nullptr) : json_of(c.value.held(), c.traits.decimals);
}

void CsvColumns::take(const Column& c) {
  if (c.traits.in == In::kJson) return;
  const std::string name(c.traits.csv.empty() ? c.name : c.traits.csv);
  const bool absent = c.is_absent();
  const auto add = [&](std::string of, std::string text) {
    cells_.push_back({c.traits.place, std::move(of), absent ? std::string() : std::move(text)});
  };
  std::visit(Overloaded{[](const Value::Nested&) {},
                        [&](const Bounds& b) {
                          // "interval_low_joules", "inclusive_low_joules"
                          constexpr std::string_view kEnd = "interval_joules";
                          const std::string before = name.substr(0, name.size() - kEnd.size());
                          const std::string stem = before.empty() ? "interval_" : before;
                          add(stem + "low_joules", joules_decimal(b.low));
                          add(stem + "high_joules", b.high ? joules_decimal(*b.high) : "");
                        },
                        [&](const auto& value) {
                          if constexpr (is_quartiles<std::decay_t<decltype(value)>>) {
                            const std::string unit = name.substr(name.find('_'));
                            add("quartile_low" + unit, text_of(value.lower, 0));
                            add("median" + unit, text_of(value.median, 0));
                            add("quartile_high" + unit, text_of(value.upper, 0));
                          } else {
                            add(name, text_of(value, c.traits.decimals));
                          }
                        }},
             c.value.held());
}

std::string CsvColumns::joined(std::string Cell::*part) {
  std::ranges::stable_sort(cells_, {}, &Cell::place);
  std::string line;
  for (const Cell& cell : cells_) {
    // A line break within quotes is correct CSV that line-based tools fall over.
    line += (&cell == cells_.data() ? "" : ",") + csv_field(printable(cell.*part));
  }
  return line + '\n';
}

std::string CsvColumns::heading() { return joined(&Cell::name); }
std::string CsvColumns::line() { return joined(&Cell::text); }

void DescribedColumns::take(const Column& c) {
  if (c.traits.in == In::kCsv) return;
  using Type = ColumnDescription::Type;
  const Type type = std::visit(
      Overloaded{
          [](std::string_view) { return Type::kText; }, [](bool) { return Type::kFlag; },
          [](std::int64_t) { return Type::kInteger; }, [](std::uint64_t) { return Type::kInteger; },
          [&](double) { return c.traits.decimals > 0 ? Type::kNumber : Type::kInteger; },
          [](RealTime) { return Type::kTime; }, [](const Bounds&) { return Type::kInterval; },
          [](const Value::Nested&) { return Type::kNested; },
          [](const auto& value) {
            return is_quartiles<std::decay_t<decltype(value)>> ? Type::kQuartiles : Type::kNumber;
          }},
      c.value.held());
  list_.push_back({std::string(c.name), type, std::string(c.meaning), std::string(c.null)});
}

}  // namespace jouleprof::report
