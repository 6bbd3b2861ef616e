#include "session/sampling/run_info.h"

#include <unistd.h>

#include <array>
#include <filesystem>

#include "spans/procs/identity.h"

namespace jouleprof::session {

model::RunInfo run_info_here(std::string tool_version) {
  model::RunInfo run;
  run.tool_version = std::move(tool_version);
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0) run.host = name.data();
  run.boot_id = spans::boot_id();
  run.rank = spans::rank_of();
  run.user = spans::user_here();
  run.node_list = spans::node_list_of();
  std::error_code err;
  run.working_directory = std::filesystem::current_path(err).string();
  return run;
}

}  // namespace jouleprof::session
