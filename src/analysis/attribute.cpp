#include "analysis/attribute.h"

namespace jouleprof::analysis {

Result<std::vector<model::ActivityProfile>> attribute(const model::Recording&, const Options&) {
  return std::vector<model::ActivityProfile>{};
}

}  // namespace jouleprof::analysis
