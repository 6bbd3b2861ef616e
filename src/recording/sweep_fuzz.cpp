// The file of a sweep. With an even first byte the rest is the file; with an odd one it is a plan
// and, after each byte 0x01, the summary of a run, in a file that is whole otherwise.
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "recording/sweep_file.h"
#include "tests/support/fuzz_files.h"

namespace {

using namespace jouleprof;

const std::filesystem::path& file() {
  static const auto path = fuzz_folder() / "sweep.jprof";
  return path;
}

model::SweepPlan plan() {
  model::SweepPlan plan;
  plan.command = {"python", "train.py"};
  plan.settings = {400, 500, 700};
  plan.devices = {"gpu0"};
  return plan;
}

model::SweepRun run(unsigned number) {
  model::SweepRun run;
  run.number = number;
  run.setting = 400;
  run.wall_seconds = 20.5;
  run.seconds = 20;
  run.joules = 8000;
  return run;
}

std::string bytes_of_file() {
  std::ifstream in(file(), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void write_cells(std::string text) {
  std::filesystem::remove(file());
  if (!recording::SweepFile::create(file(), plan(), false)) std::abort();
  SQLite::Database db(file().string(), SQLite::OPEN_READWRITE);
  db.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
  SQLite::Statement set_plan(db, "UPDATE sweep SET plan = ?");
  SQLite::Statement add_run(db, "INSERT INTO run (summary) VALUES (?)");
  for (bool is_plan = true; !text.empty(); is_plan = false) {
    const auto end = text.find('\x01');
    auto& statement = is_plan ? set_plan : add_run;
    statement.bind(1, text.substr(0, end));
    statement.exec();
    statement.reset();
    text = end == std::string::npos ? "" : text.substr(end + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  write_seed("cells", "\x01" + recording::plan_to_json(plan()) + "\x01" +
                          recording::run_to_json(run(0)) + "\x01" + recording::run_to_json(run(1)));
  if (!recording::SweepFile::create(file(), plan(), false)) std::abort();
  SQLite::Database(file().string(), SQLite::OPEN_READWRITE).exec("PRAGMA page_size = 512; VACUUM");
  write_seed("file", std::string(1, '\0') + bytes_of_file());
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    write_bytes(file(), rest);
  } else {
    write_cells(rest);
  }
  const auto read = recording::read_sweep(file());
  if (read) return 0;
  const auto& error = read.error();
  const bool is_known = error.code == Errc::kCorrupt || error.code == Errc::kUnsupported;
  if (is_known && !error.message.empty() && error.message.find('\n') == std::string::npos) return 0;
  std::fprintf(stderr, "%s\n", error.message.c_str());
  std::abort();
}
