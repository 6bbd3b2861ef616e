// Reads the tables of readings. Private to this folder.
#pragma once

#include <SQLiteCpp/Database.h>

#include <algorithm>
#include <vector>

#include "model/device/readings.h"
#include "model/process/process.h"
#include "recording/tables/rows.h"

namespace jouleprof::recording {

// Both in the order of time. Invalid if there is a problem afterwards.
model::Readings read_readings(SQLite::Database& db, Inspection& inspection, const Ids& sensors);
model::ProcessReadings read_process_readings(SQLite::Database& db, Inspection& inspection,
                                             const Ids& processes, const Ids& domains);

// Items of one time keep their order.
template <class T, class TimeOf>
void sort_by_time(std::vector<T>& items, TimeOf time_of) {
  const auto earlier = [&](const T& a, const T& b) { return time_of(a) < time_of(b); };
  if (!std::is_sorted(items.begin(), items.end(), earlier)) {
    std::stable_sort(items.begin(), items.end(), earlier);
  }
}

}  // namespace jouleprof::recording
