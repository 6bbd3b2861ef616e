// The records of a trace as rows of tables, made from their field lists
// (model/activity/activity_fields.h). Private to this folder.
#pragma once

#include <SQLiteCpp/Database.h>
#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "model/activity/activity.h"
#include "model/activity/activity_fields.h"
#include "recording/tables/rows.h"

namespace jouleprof::recording {

// Appends the columns of a record's table.
class ColumnList {
 public:
  explicit ColumnList(std::string& columns) : columns_(columns) {}

  template <class T>
  void operator()(std::string_view name, const T& value, model::FieldTraits traits = {}) {
    columns_ += fmt::format(", {} {}", name, type(value));
    if constexpr (std::is_same_v<T, bool>) columns_ += fmt::format(" CHECK ({} IN (0, 1))", name);
    if (!traits.check.empty()) columns_ += fmt::format(" CHECK ({})", traits.check);
  }

 private:
  template <class T>
  static std::string type(const T&) {
    return fmt::format("{} NOT NULL", name_of<T>());
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
    return std::is_floating_point_v<T> ? "REAL" : "INTEGER";
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

 private:
  template <class T>
  void add(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      insert_.add(model::words_of(value)[static_cast<std::size_t>(value)]);
    } else {
      insert_.add(value);
    }
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

// Takes the values of a record from a row.
class RowReader {
 public:
  explicit RowReader(Rows& row) : row_(row) {}

  template <class T>
  void operator()(std::string_view, T&& value, model::FieldTraits = {}) {
    take(value);
  }

 private:
  void take(bool& value) { value = row_.flag(); }
  void take(pid_t& value) { value = row_.small_integer(); }
  void take(std::uint32_t& value) { value = row_.id(); }
  void take(std::uint64_t& value) { value = row_.bytes(); }
  void take(double& value) { value = row_.number(); }
  void take(std::string& value) { value = row_.text(); }
  void take(Duration& value) { value = Duration{row_.integer(0)}; }
  void take(HostTime& value) { value = row_.host_time(); }
  template <class Enum>
    requires std::is_enum_v<Enum>
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
};

// What earlier runs found for kernels, both ways: in recordings and in the store of the user's.
// Private to this folder.

// The columns of its table.
std::string remembered_columns();

// Whether a file may hold it.
bool is_storable(const model::RememberedKernel& kernel);

// Binds the columns, in order. The kernel outlives the row's store().
void add_columns(Insert& insert, const model::RememberedKernel& kernel);
model::RememberedKernel take_columns(Rows& row);

std::vector<model::RememberedKernel> read_remembered(SQLite::Database& db, Inspection& inspection);

}  // namespace jouleprof::recording
