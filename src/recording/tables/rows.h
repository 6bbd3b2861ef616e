// Reads one table of an untrusted file: every value is checked when it is taken.
// Private to this folder.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/clock.h"
#include "jouleprof/units.h"
#include "recording/tables/schema.h"

namespace jouleprof::recording {

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

}  // namespace jouleprof::recording
