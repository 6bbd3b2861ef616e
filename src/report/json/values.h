// Values as JSON and CSV write them: JSON with numbers that keep the digits they were given, and
// records described column by column.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "jouleprof/units.h"
#include "model/activity/activity_profile.h"
#include "model/profile.h"

namespace jouleprof::report {

// An object begins as Json::object(): where memory is short, a null that becomes one by its first
// member is left half made, and crashes.
using Json = nlohmann::ordered_json;

// A number written exactly as `text`, which must be a JSON number; null when it is empty.
Json decimal(std::string_view text);

Json joules_json(Energy e);             // six decimals
Json seconds_json(Duration d);          // nine decimals
Json number_json(double value);         // six decimals; null unless finite
Json text_json(std::string_view text);  // null when empty

// `to_json(*value)`, or null when it is absent.
template <typename T, typename Convert>
Json optional_json(const std::optional<T>& value, Convert convert) {
  return value ? Json(convert(*value)) : Json(nullptr);
}
template <typename T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// A list of what `to_json` makes of each item.
template <class Items, class Convert>
Json list_json(const Items& items, Convert to_json) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(to_json(item));
  return list;
}

// The document; `indent` 0 puts it on one line, -1 also leaves out blanks. What is not UTF-8
// becomes U+FFFD.
std::string write_json(const Json& document, int indent = 2);

// --- Records described column by column ---

// One list for each kind of record gives the name of each column, its value, its meaning and when
// it is absent. JSON, CSV, the tables of docs/json.md, the tables of the Python package and the
// types of the page are made of these lists.
//
//   column("launches", row.launches, "launches on the device, by this row itself");

// The ends of an interval: a list of two in JSON, two columns elsewhere.
struct Bounds {
  Energy low;
  std::optional<Energy> high;  // absent: `low` is a lower bound, and nothing bounds it above
};
inline Bounds bounds_of(const model::Measurement& m) { return {m.low(), m.high()}; }
// `is_partial`: without the upper bound.
std::optional<Bounds> bounds_of(const std::optional<model::Measurement>& m,
                                bool is_partial = false);

// What a column holds. The type also says how it is written, where it is absent, too. Text outlives
// the value.
class Value {
 public:
  using Nested = std::function<Json()>;  // in JSON only; made where it is written
  using Held = std::variant<std::string_view, bool, std::int64_t, std::uint64_t, double, Energy,
                            Duration, Power, Bounds, model::Quartiles<Energy>,
                            model::Quartiles<Duration>, RealTime, Nested>;

  template <class T>
    requires std::constructible_from<std::string_view, const T&>
  Value(const T& text) : held_(std::string_view(text)) {}
  template <std::integral T>
  Value(T number) {
    if constexpr (std::same_as<T, bool>) {
      held_ = number;
    } else if constexpr (std::unsigned_integral<T>) {
      held_ = std::uint64_t{number};
    } else {
      held_ = std::int64_t{number};
    }
  }
  Value(model::Provenance p) : Value(model::to_string(p)) {}
  template <class T>
    requires std::same_as<T, double> || std::same_as<T, Energy> || std::same_as<T, Duration> ||
             std::same_as<T, Power> || std::same_as<T, Bounds> || std::same_as<T, RealTime> ||
             std::same_as<T, model::Quartiles<Energy>> ||
             std::same_as<T, model::Quartiles<Duration>>
  Value(const T& value) : held_(value) {}
  template <class T>
    requires std::is_invocable_r_v<Json, const T&>
  Value(const T& nested) : held_(Nested(nested)) {}
  template <class T>
  Value(const std::optional<T>& value) : Value(value ? *value : T{}) {
    absent_ = !value;
  }

  const Held& held() const { return held_; }
  bool is_absent() const { return absent_; }

 private:
  Held held_;
  bool absent_ = false;
};

enum class In { kBoth, kJson, kCsv };

struct ColumnTraits {
  In in = In::kBoth;
  // Columns of CSV stand by their place, and within it as in the list: programs may count them.
  int place = 0;
  int decimals = 6;           // of a double
  std::string_view csv = {};  // the name in CSV where that is another one
};

// Takes the columns of a record, in the order of their keys in JSON.
class Columns {
 public:
  virtual ~Columns() = default;
  // `null`: when the value is absent; empty: never. An empty text is absent where it may be.
  void operator()(std::string_view name, const Value& value, std::string_view meaning,
                  std::string_view null = {}, const ColumnTraits& traits = {}) {
    take({name, value, meaning, null, traits});
  }

 protected:
  struct Column {
    std::string_view name;
    const Value& value;
    std::string_view meaning;
    std::string_view null;
    const ColumnTraits& traits;

    bool is_absent() const;
  };
  virtual void take(const Column& column) = 0;
};

class JsonColumns : public Columns {
 public:
  explicit JsonColumns(Json& object) : object_(object) {}

 private:
  void take(const Column& column) override;

  Json& object_;
};

// A row of CSV. Names are made harmless for line-based tools.
class CsvColumns : public Columns {
 public:
  std::string heading();
  std::string line();

 private:
  struct Cell {
    int place = 0;
    std::string name;
    std::string text;
  };
  void take(const Column& column) override;
  std::string joined(std::string Cell::*part);

  std::vector<Cell> cells_;
};

// What is known of a column without a record.
struct ColumnDescription {
  enum class Type { kText, kFlag, kInteger, kNumber, kTime, kInterval, kQuartiles, kNested };
  std::string name;
  Type type{};
  std::string meaning;
  std::string null;  // empty: never
};
// Lists the columns that JSON has.
class DescribedColumns : public Columns {
 public:
  const std::vector<ColumnDescription>& list() const { return list_; }

 private:
  void take(const Column& column) override;

  std::vector<ColumnDescription> list_;
};

}  // namespace jouleprof::report
