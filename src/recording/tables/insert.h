// One prepared INSERT for a table, fed with the project's own types. Private to this folder.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/clock.h"
#include "jouleprof/units.h"
#include "recording/tables/schema.h"

namespace jouleprof::recording {

// Bytes that are no text.
struct Blob {
  std::string bytes;
};

// Throws SQLite::Exception.
class Insert {
 public:
  // A row whose `id` is in the table already is updated, its rowid and references kept.
  Insert(SQLite::Database& db, const std::string& table) : statement_(db, sql(db, table)) {}

  // One value for each column, in the table's order. An absent optional is NULL.
  template <class... Values>
  void operator()(const Values&... values) {
    (add(values), ...);
    store();
  }

  // The same, value by value; then store(), which texts must outlive.
  template <class T>
  void add(const T& value) {
    bind(++column_, value);
  }
  void add_null() { statement_.bind(++column_); }
  void store() {
    column_ = 0;
    statement_.exec();
    statement_.reset();
  }

 private:
  static std::string sql(SQLite::Database& db, const std::string& table);

  template <class T>
    requires std::integral<T> || std::is_enum_v<T>
  void bind(int column, T value) {
    statement_.bind(column, static_cast<std::int64_t>(value));
  }
  void bind(int column, std::uint64_t value) {
    constexpr auto kLargest = static_cast<std::uint64_t>(kLargestInteger);
    statement_.bind(column, static_cast<std::int64_t>(std::min(value, kLargest)));
  }
  void bind(int column, double value) {
    if (std::isfinite(value)) {
      statement_.bind(column, value);
    } else {
      statement_.bind(column);  // what is no number is absent
    }
  }
  template <class T>
  void bind(int column, const std::optional<T>& value) {
    if (value) {
      bind(column, *value);
    } else {
      statement_.bind(column);
    }
  }
  // Without a copy: the value outlives the call that stores it.
  void bind(int column, const std::string& text) { statement_.bindNoCopy(column, text); }
  void bind(int column, std::string_view text) { statement_.bind(column, std::string(text)); }
  void bind(int column, const Blob& blob) {
    // A null pointer would be NULL, not an empty blob.
    statement_.bind(column, blob.bytes.empty() ? "" : blob.bytes.data(),
                    static_cast<int>(blob.bytes.size()));
  }
  void bind(int column, Duration d) { statement_.bind(column, std::int64_t{d.count()}); }
  void bind(int column, HostTime t) { bind(column, t.time_since_epoch()); }
  void bind(int column, RealTime t) { bind(column, t.time_since_epoch()); }
  void bind(int column, Energy e) { statement_.bind(column, e.microjoules()); }
  void bind(int column, Power p) { bind(column, p.watts()); }

  SQLite::Statement statement_;
  int column_ = 0;
};

}  // namespace jouleprof::recording
