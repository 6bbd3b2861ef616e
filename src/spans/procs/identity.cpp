#include "spans/procs/identity.h"

#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::spans {
namespace {

struct Launcher {
  const char* name;
  const char* rank;
  const char* local_rank;
  const char* world_size;
};

// https://pytorch.org/docs/stable/elastic/run.html, https://docs.open-mpi.org (ompi environment
// variables), https://slurm.schedmd.com/srun.html. PMI's local variables are those of Intel MPI.
constexpr Launcher kLaunchers[] = {
    {"torchrun", "RANK", "LOCAL_RANK", "WORLD_SIZE"},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"pmi", "PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"},
    {"slurm", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"},
};

std::string text_of(const Variable& variable, const char* name) {
  const char* value = variable(name);
  return value != nullptr ? value : "";
}

std::optional<std::uint32_t> number_of(const Variable& variable, const char* name) {
  const std::string text = text_of(variable, name);
  std::uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, err] = std::from_chars(text.data(), end, number);
  if (err != std::errc{} || stop != end) return std::nullopt;
  return number;
}

}  // namespace

model::Rank rank_of(const Variable& variable) {
  model::Rank rank;
  for (const Launcher& launcher : kLaunchers) {
    rank.global = number_of(variable, launcher.rank);
    if (!rank.global) continue;
    rank.local = number_of(variable, launcher.local_rank);
    rank.world_size = number_of(variable, launcher.world_size);
    rank.launcher = launcher.name;
    break;
  }
  rank.job = text_of(variable, "SLURM_JOB_ID");
  rank.step = text_of(variable, "SLURM_STEP_ID");
  return rank;
}

model::Rank rank_in(std::string_view environment) {
  const std::string ended = std::string(1, '\0').append(environment).append(1, '\0');
  return rank_of([&](const char* name) -> const char* {
    const std::string entry = std::string(1, '\0').append(name).append(1, '=');
    const auto at = ended.find(entry);
    return at == ended.npos ? nullptr : ended.c_str() + at + entry.size();
  });
}

// Not by getpwuid, which a static program cannot use everywhere: users of a directory service have
// their name in the environment.
std::string user_here(const std::filesystem::path& passwd) {
  const std::string number = std::to_string(::geteuid());
  const std::string text = read_file(passwd).value_or(std::string());
  for (const auto line : split(text, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() > 2 && fields[2] == number) return std::string(fields[0]);
  }
  const std::string named = text_of(::getenv, "USER");
  return named.empty() ? number : named;
}

std::string node_list_of(const Variable& variable) {
  std::string nodes = text_of(variable, "SLURM_JOB_NODELIST");
  return nodes.empty() ? text_of(variable, "SLURM_NODELIST") : nodes;
}

std::string boot_id(const std::filesystem::path& proc) {
  const auto text = read_file(proc / "sys/kernel/random/boot_id");
  return text ? text->substr(0, text->find('\n')) : std::string();
}

}  // namespace jouleprof::spans
