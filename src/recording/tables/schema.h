// The tables of a *.jprof file. FORMAT.md explains them; a test holds the two together.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace jouleprof::recording {

// PRAGMA application_id: "JPRF".
inline constexpr std::int32_t kApplicationId = 0x4A505246;

// PRAGMA user_version. Any change of a table is a new version; FORMAT.md has the rule.
inline constexpr std::int32_t kSchemaVersion = 1;

// What a file may hold. The writer stores nothing beyond these, the reader accepts nothing beyond
// them, and within them the sum or difference of two cannot overflow.
inline constexpr std::int64_t kLargestInteger =
    (std::int64_t{1} << 62) - 1;               // nanoseconds, microjoules
inline constexpr double kLargestPower = 1e9;   // watts
inline constexpr int kLongestText = 16 << 20;  // bytes

inline bool storable_power(double watts) { return std::abs(watts) <= kLargestPower; }

struct Table {
  std::string name;
  std::string columns;  // between the parentheses of CREATE TABLE

  std::string create_statement() const;
};

// All tables, in the order in which they are made.
std::vector<Table> tables();

}  // namespace jouleprof::recording
