// Rows of the tables of a file, both ways: each value that is read is checked when it is taken.
// Private to this folder.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>

#include "base/clock.h"
#include "jouleprof/units.h"

namespace jouleprof::recording {

// What a file may hold. The writer stores nothing beyond these, the reader accepts nothing beyond
// them, and within them the sum or difference of two cannot overflow.
inline constexpr std::int64_t kLargestInteger =
    (std::int64_t{1} << 62) - 1;               // nanoseconds, microjoules
inline constexpr double kLargestPower = 1e9;   // watts
inline constexpr int kLongestText = 16 << 20;  // bytes

inline bool storable_power(double watts) { return std::abs(watts) <= kLargestPower; }

using Ids = std::unordered_set<std::uint32_t>;

// How much one read of a file may still take, and the first thing that is wrong.
struct Inspection {
  // All rows together cannot hold more than the file. A damaged tree that leads in a circle can.
  std::int64_t bytes_left = 0;
  std::string problem;  // empty: none yet

  bool good() const { return problem.empty(); }
};

// The rows of a table in their order; the values of a row are taken from left to right. After a
// problem the values are meaningless and next() says false. Throws SQLite::Exception.
class Rows {
 public:
  Rows(SQLite::Database& db, Inspection& inspection, std::string_view table);

  bool next();

  std::int64_t integer(std::int64_t lowest = -kLargestInteger,
                       std::int64_t highest = kLargestInteger);
  double number();  // finite
  std::string text();
  std::string blob();

  bool flag() { return integer(0, 1) != 0; }
  Duration duration() { return Duration{integer()}; }
  HostTime host_time() { return HostTime{duration()}; }
  RealTime real_time() { return RealTime{duration()}; }
  Energy energy() { return Energy::microjoules(integer()); }
  Power power();
  std::uint64_t bytes() { return static_cast<std::uint64_t>(integer(0)); }
  int small_integer() {
    return static_cast<int>(
        integer(std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
  }

  std::uint32_t id() {
    return static_cast<std::uint32_t>(integer(0, std::numeric_limits<std::uint32_t>::max()));
  }
  // An id that was not there before, and is from now on.
  template <class Id>
  Id new_id(Ids& known) {
    const auto taken = id();
    if (!known.insert(taken).second) complain("is there twice");
    return Id{taken};
  }
  // An id of something known.
  template <class Id>
  Id reference(const Ids& known) {
    const auto taken = id();
    if (!known.contains(taken)) complain("refers to nothing");
    return Id{taken};
  }

  // A text that `parse` gives a value for.
  template <class T>
  T named(std::optional<T> (*parse)(std::string_view)) {
    const auto value = parse(text());
    if (!value) complain("has an unknown value");
    return value.value_or(T{});
  }

  // `get` of this object, or absent where the column is NULL.
  template <class T>
  std::optional<T> maybe(T (Rows::*get)()) {
    if (take_null()) return std::nullopt;
    return (this->*get)();
  }

  // Empty where the column is NULL.
  std::string text_or_empty() { return maybe(&Rows::text).value_or(""); }

  // Whether the next column is NULL, which takes it.
  bool take_null();

  // Reports that something is wrong with the column taken last.
  void complain(std::string_view what);

 private:
  std::string table_;
  Inspection& inspection_;
  SQLite::Statement statement_;
  std::int64_t row_ = 0;
  int column_ = 0;
};

// --- One prepared INSERT for a table, fed with the project's own types ---

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
    add_all(values...);
    store();
  }

  // Some of the values; then store(), which texts must outlive.
  template <class... Values>
  void add_all(const Values&... values) {
    (add(values), ...);
  }
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

// --- Bytes compressed with zlib, as the recording keeps long ones ---

// The length of `bytes` in four bytes, the least first, then a zlib stream of them; or 0xFFFFFFFF
// and then the bytes, where that is not longer.
std::string pack(std::string_view bytes);

// What was packed; none if it is damaged. Takes no more memory than zlib could have packed.
std::optional<std::string> unpack(std::string_view packed);
std::optional<std::string> unpack(const SQLite::Column& packed);

}  // namespace jouleprof::recording
