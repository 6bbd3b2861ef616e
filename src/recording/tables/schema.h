// The tables of a *.jprof file. FORMAT.md explains them; a test holds the two together.
#pragma once

#include <SQLiteCpp/Database.h>
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "model/activity/activity.h"
#include "model/record_fields.h"
#include "recording/tables/rows.h"

namespace jouleprof::recording {

// PRAGMA application_id: "JPRF".
inline constexpr std::int32_t kApplicationId = 0x4A505246;

// PRAGMA user_version. Any change of a table is a new version; FORMAT.md has the rule.
inline constexpr std::int32_t kSchemaVersion = 1;

struct Table {
  std::string name;
  std::string columns;  // between the parentheses of CREATE TABLE

  std::string create_statement() const;
};

// All tables, in the order in which they are made.
std::vector<Table> tables();

// --- Records as rows, from their field lists (model/record_fields.h); private to this folder ---

// The table of the records that an id refers to; null for what is no id.
template <class T>
inline constexpr const char* kTableOf = nullptr;
template <>
inline constexpr const char* kTableOf<model::DomainId> = "domain";
template <>
inline constexpr const char* kTableOf<model::SensorId> = "sensor";
template <>
inline constexpr const char* kTableOf<model::ProcessId> = "process";

// Appends the columns of a record's table.
class ColumnList {
 public:
  explicit ColumnList(std::string& columns) : columns_(columns) {}

  template <class T>
  void operator()(std::string_view name, const T& value, model::FieldTraits traits = {}) {
    columns_ += fmt::format("{}{} {}", columns_.empty() ? "" : ", ", name, type(value));
    if constexpr (std::is_same_v<T, bool>) columns_ += fmt::format(" CHECK ({} IN (0, 1))", name);
    if (!traits.check.empty()) columns_ += fmt::format(" CHECK ({})", traits.check);
  }
  template <class T>
  void operator()(std::string_view, const model::Elsewhere<T>&, model::FieldTraits = {}) {}

 private:
  template <class T>
  static std::string type(const T&) {
    if constexpr (kTableOf<T> != nullptr) {
      return fmt::format("INTEGER NOT NULL REFERENCES {}", kTableOf<T>);
    } else {
      return fmt::format("{} NOT NULL", name_of<T>());
    }
  }
  template <class T>
  static std::string type(const model::Own<T>&) {
    return "INTEGER PRIMARY KEY";
  }
  template <class T>
  static std::string type(const model::Later<T>&) {
    using Id = typename std::remove_const_t<T>::value_type;
    return fmt::format("INTEGER REFERENCES {} DEFERRABLE INITIALLY DEFERRED", kTableOf<Id>);
  }
  template <class T>
  static std::string type(const std::optional<T>&) {
    return name_of<T>();
  }
  template <class T>
  static std::string type(const model::Nullable<T>&) {
    return name_of<std::remove_const_t<T>>();
  }
  template <class T>
  static std::string type(const model::Packed<T>&) {
    return "BLOB NOT NULL";
  }
  template <class T>
  static const char* name_of() {
    if constexpr (std::is_same_v<T, std::string> || std::is_enum_v<T>) return "TEXT";
    return std::is_floating_point_v<T> || std::is_same_v<T, Power> ? "REAL" : "INTEGER";
  }

  std::string& columns_;
};

// Gives an Insert the values of a record.
class RowWriter {
 public:
  explicit RowWriter(Insert& insert) : insert_(insert) {}

  template <class T>
  void operator()(std::string_view, const T& value, model::FieldTraits = {}) {
    add(value);
  }
  template <class T>
  void operator()(std::string_view, const model::Elsewhere<T>&, model::FieldTraits = {}) {}

 private:
  template <class T>
  void add(const T& value) {
    if constexpr (requires { model::words_of(value); }) {
      insert_.add(model::words_of(value)[static_cast<std::size_t>(value)]);
    } else if constexpr (std::is_enum_v<T> && kTableOf<T> == nullptr) {
      insert_.add(to_string(value));
    } else {
      insert_.add(value);
    }
  }
  template <class T>
  void add(const model::Own<T>& value) {
    insert_.add(value.value);
  }
  template <class T>
  void add(const model::Later<T>& value) {
    insert_.add(value.value);
  }
  template <class T>
  void add(const model::Nullable<T>& value) {
    value.value == value.absent ? insert_.add_null() : add(value.value);
  }
  template <class T>
  void add(const model::Packed<T>& value) {
    insert_.add(Blob{pack(value.bytes)});
  }

  Insert& insert_;
};

// Stores a row: `first`, then the fields of a record.
template <class Record, class... First>
void store(Insert& insert, const Record& record, const First&... first) {
  insert.add_all(first...);
  fields(record, RowWriter(insert));
  insert.store();
}

std::optional<Errc> parse_errc(std::string_view text);

// What no column alone shows to be wrong with a record; empty: nothing.
inline std::string_view problem_of(const model::CounterReading& r) {
  return r.after < r.before ? "is of a read that ends before it begins" : "";
}
inline std::string_view problem_of(const model::IdleSpan& s) {
  return s.end < s.begin ? "is before it began" : "";
}
inline std::string_view problem_of(const model::Sensor& sensor) {
  const auto& [gain_low, gain_high, offset_low, offset_high, source] = sensor.traits.scale;
  if (gain_low < -1000 || gain_high < gain_low || gain_high > 1000 || offset_high < offset_low) {
    return "follows bounds out of order";
  }
  const bool fits = sensor.traits.correction >= 0.1 && sensor.traits.correction <= 10;
  return fits ? "" : "is not between 0.1 and 10";
}
inline std::string_view problem_of(const model::KnownLevel& level) {
  if (level.power <= Power{}) return "is not above 0";
  return level.spread < Power{} ? "is negative" : "";
}
inline std::string_view problem_of(const auto&) { return ""; }

// The ids that a file's rows have had so far.
struct KnownIds {
  Ids domains, sensors, processes;

  Ids& of(model::DomainId) { return domains; }
  Ids& of(model::SensorId) { return sensors; }
  Ids& of(model::ProcessId) { return processes; }
};

// Takes the values of a record from a row. `known`: for records with ids.
class RowReader {
 public:
  explicit RowReader(Rows& row, KnownIds* known = nullptr) : row_(row), known_(known) {}

  template <class T>
  void operator()(std::string_view, T&& value, model::FieldTraits = {}) {
    take(value);
  }
  template <class T>
  void operator()(std::string_view, model::Elsewhere<T>&&, model::FieldTraits = {}) {}

 private:
  void take(bool& value) { value = row_.flag(); }
  void take(pid_t& value) { value = row_.small_integer(); }
  void take(std::uint32_t& value) { value = row_.id(); }
  void take(std::uint64_t& value) { value = row_.bytes(); }
  void take(double& value) { value = row_.number(); }
  void take(std::string& value) { value = row_.text(); }
  void take(Duration& value) { value = row_.duration(); }
  void take(HostTime& value) { value = row_.host_time(); }
  void take(RealTime& value) { value = row_.real_time(); }
  void take(Energy& value) { value = row_.energy(); }
  void take(Power& value) { value = row_.power(); }
  void take(model::DomainKind& value) { value = row_.named(&model::parse_domain_kind); }
  void take(model::SensorKind& value) { value = row_.named(&model::parse_sensor_kind); }
  void take(model::Provenance& value) { value = row_.named(&model::parse_provenance); }
  void take(Errc& value) { value = row_.named(&parse_errc); }
  template <class Id>
    requires(kTableOf<Id> != nullptr)
  void take(Id& value) {
    value = row_.reference<Id>(known_->of(value));
  }
  template <class T>
  void take(model::Own<T>& value) {
    value.value = row_.new_id<T>(known_->of(value.value));
  }
  template <class T>
  void take(model::Later<T>& value) {
    value.value.reset();
    if (const auto id = row_.maybe(&Rows::id)) value.value = typename T::value_type{*id};
  }
  template <class Enum>
    requires requires(Enum e) { model::words_of(e); }
  void take(Enum& value) {
    const auto parsed = model::parse_word<Enum>(row_.text());
    if (!parsed) row_.complain("has an unknown value");
    value = parsed.value_or(Enum{});
  }
  template <class T>
  void take(std::optional<T>& value) {
    value.reset();
    if (!row_.take_null()) take(value.emplace());
  }
  template <class T>
  void take(model::Nullable<T>& value) {
    if (row_.take_null()) {
      value.value = value.absent;
    } else {
      take(value.value);
    }
  }
  template <class T>
  void take(model::Packed<T>& value) {
    auto bytes = unpack(row_.blob());
    if (!bytes) row_.complain("cannot be unpacked");
    value.bytes = std::move(bytes).value_or("");
  }

  Rows& row_;
  KnownIds* known_;
};

// All rows of a table of records.
template <class Record>
std::vector<Record> read_all(SQLite::Database& db, Inspection& inspection, std::string_view table,
                             KnownIds& known) {
  std::vector<Record> out;
  for (Rows row(db, inspection, table); row.next();) {
    fields(out.emplace_back(), RowReader(row, &known));
    if (const auto problem = problem_of(out.back()); !problem.empty()) row.complain(problem);
  }
  return out;
}

// --- What earlier runs found for kernels, in recordings and the store; private to this folder ---

// The columns of its table.
std::string remembered_columns();

// Whether a file may hold it.
bool is_storable(const model::RememberedKernel& kernel);

// Binds the columns, in order. The kernel outlives the row's store().
void add_columns(Insert& insert, const model::RememberedKernel& kernel);
model::RememberedKernel take_columns(Rows& row);

std::vector<model::RememberedKernel> read_remembered(SQLite::Database& db, Inspection& inspection);

}  // namespace jouleprof::recording
