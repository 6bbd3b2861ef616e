// What earlier runs found for kernels, both ways: in recordings and in the store of the user's.
// Private to this folder.
#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/activity/remembered_kernel.h"
#include "recording/tables/insert.h"
#include "recording/tables/rows.h"

namespace jouleprof::recording {

// Of its table, after what a file has before them.
std::string remembered_columns(std::int32_t version);

// Whether a file may hold it.
bool is_storable(const model::RememberedKernel& kernel);

// Binds the columns, in order. The kernel outlives the row's store().
void add_columns(Insert& insert, const model::RememberedKernel& kernel);
model::RememberedKernel take_columns(Rows& row, std::int32_t version);

std::vector<model::RememberedKernel> read_remembered(SQLite::Database& db, Inspection& inspection,
                                                     std::int32_t version);

}  // namespace jouleprof::recording
