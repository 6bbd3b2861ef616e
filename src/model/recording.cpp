#include "model/recording.h"

namespace jouleprof::model {

bool is_at_rest_around_traces(const RunInfo& run) {
  return run.source == "attach" || run.source.starts_with("import:");
}

}  // namespace jouleprof::model
