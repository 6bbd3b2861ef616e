// The file in which a benchmark's workload says what it did.
#pragma once

#include <string_view>

#include "base/result.h"
#include "model/bench.h"

namespace jouleprof::cli {

// Reads what python/jouleprof/bench/__main__.py wrote. Errors: corrupt; unsupported, another
// version of the Python package wrote it.
Result<model::BenchDocument> parse_bench_document(std::string_view text);

}  // namespace jouleprof::cli
