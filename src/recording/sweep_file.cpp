#include "recording/sweep_file.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>

#include <optional>
#include <type_traits>
#include <utility>

#include "base/file.h"
#include "base/json/json.h"
#include "recording/sqlite_file.h"
#include "recording/tables/rows.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = R"(
CREATE TABLE sweep (plan TEXT NOT NULL);
CREATE TABLE run (number INTEGER PRIMARY KEY, summary TEXT NOT NULL, recording BLOB);
)";

using Base = std::unique_ptr<SQLite::Database>;

}  // namespace

struct SweepFile::Database {
  // An old file is replaced once a run is in the new one.
  Result<void> take_place() {
    if (!fresh) return {};
    db.reset();  // its journal has its name
    remove_side_files(fresh->target());
    if (auto placed = fresh->take_place(); !placed) return placed;
    fresh.reset();
    auto opened = open_file_of(kSweep, path, SQLite::OPEN_READWRITE);
    if (!opened) return forward_error(opened);
    db = std::move(*opened);
    return {};
  }

  fs::path path;
  std::optional<NewFile> fresh;
  Base db;
};

SweepFile::SweepFile(std::unique_ptr<Database> database) : database_(std::move(database)) {}
SweepFile::SweepFile(SweepFile&&) noexcept = default;
SweepFile::~SweepFile() = default;

bool is_sweep_file(const fs::path& path) {
  return open_file_of(kSweep, path, SQLite::OPEN_READONLY).has_value();
}

Result<SweepRecord> read_sweep(const fs::path& path) {
  const auto db = open_file_of(kSweep, path, SQLite::OPEN_READONLY);
  if (!db) return forward_error(db);
  try {
    auto plan =
        plan_from_json((*db)->execAndGet("SELECT plan FROM sweep").getString(), path.string());
    if (!plan) return forward_error(plan);
    SweepRecord record{std::move(*plan), {}};
    SQLite::Statement rows(**db, "SELECT summary FROM run ORDER BY number");
    while (rows.executeStep()) {
      auto run = run_from_json(rows.getColumn(0).getString(), path.string());
      if (!run) return forward_error(run);
      record.runs.push_back(std::move(*run));
    }
    return record;
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(read_error(path, e, (*db)->getHandle()));
  }
}

Result<void> extract_run(const fs::path& path, unsigned number, const fs::path& to) {
  const auto db = open_file_of(kSweep, path, SQLite::OPEN_READONLY);
  if (!db) return forward_error(db);
  try {
    SQLite::Statement row(**db, "SELECT recording FROM run WHERE number = ?");
    row.bind(1, number);
    if (!row.executeStep() || row.getColumn(0).isNull()) {
      return fail(Errc::kNotFound,
                  fmt::format("{} has no recording of a run {}", path.string(), number));
    }
    if (const auto bytes = unpack(row.getColumn(0))) return write_bytes(to, *bytes);
    return fail(Errc::kCorrupt,
                fmt::format("{}: the recording of run {} is damaged", path.string(), number));
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(read_error(path, e, (*db)->getHandle()));
  }
}

Result<SweepFile> SweepFile::create(const fs::path& path, const model::SweepPlan& plan,
                                    bool overwrite) {
  std::error_code error;
  std::optional<NewFile> fresh;
  if (fs::exists(path, error)) {
    if (!overwrite || !fs::is_regular_file(path, error)) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("{} exists; continue it with --resume, choose another name or use "
                              "--force",
                              path.string()));
    }
    auto made = NewFile::next_to(path);
    if (!made) return forward_error(made);
    fresh.emplace(std::move(*made));
  }
  const fs::path file = fresh ? fresh->path() : path;
  try {
    auto db = std::make_unique<SQLite::Database>(
        file.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, 5000);
    SQLite::Transaction transaction(*db);
    mark_as(kSweep, *db);
    db->exec(kSchema);
    SQLite::Statement insert(*db, "INSERT INTO sweep (plan) VALUES (?)");
    insert.bind(1, plan_to_json(plan));
    insert.exec();
    transaction.commit();
    return SweepFile(std::make_unique<Database>(Database{path, std::move(fresh), std::move(db)}));
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(sqlite_error("write " + path.string(), e, nullptr));
  }
}

Result<SweepFile> SweepFile::open(const fs::path& path) {
  auto db = open_file_of(kSweep, path, SQLite::OPEN_READWRITE);
  if (!db) return forward_error(db);
  return SweepFile(std::make_unique<Database>(Database{path, std::nullopt, std::move(*db)}));
}

Result<void> SweepFile::append(const model::SweepRun& run, const fs::path& recording) {
  std::string bytes;
  if (!recording.empty()) {
    auto content = read_file(recording);
    if (!content) return forward_error(content);
    bytes = pack(*content);
  }
  try {
    SQLite::Statement insert(*database_->db,
                             "INSERT INTO run (number, summary, recording) VALUES (?, ?, ?)");
    insert.bind(1, run.number);
    insert.bind(2, run_to_json(run));
    if (!recording.empty()) insert.bind(3, bytes.data(), static_cast<int>(bytes.size()));
    insert.exec();
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(
        sqlite_error("write " + database_->path.string(), e, database_->db->getHandle()));
  }
  return database_->take_place();
}

namespace {

using nlohmann::json;

// Calls `field(key, member, required)` for each member.
template <typename Plan, typename Field>
void visit_plan(Plan& plan, const Field& field) {
  field("command", plan.command, true);
  field("knob", plan.knob, true);
  field("observe", plan.observe, false);
  field("settings", plan.settings, true);
  field("reference", plan.reference, true);
  field("found", plan.found, false);
  field("devices", plan.devices, true);
  field("window", plan.window, false);
  field("throughput", plan.throughput, false);
  field("bench", plan.bench, false);
  field("whole_machine", plan.whole_machine, false);
  field("objective", plan.objective, true);
  field("eta", plan.eta, true);
  field("max_slowdown_ratio", plan.max_slowdown, false);
  field("max_watts", plan.max_watts, false);
  field("seed", plan.seed, true);
  field("fewest_blocks", plan.fewest_blocks, true);
  field("most_blocks", plan.most_blocks, true);
  field("tolerance_ratio", plan.tolerance, true);
  field("max_seconds", plan.max_seconds, false);
  field("most_celsius", plan.most_celsius, false);
}

template <typename Run, typename Field>
void visit_run(Run& run, const Field& field) {
  field("number", run.number, true);
  field("block", run.block, true);
  field("setting", run.setting, true);
  field("started_unix_ns", run.started_unix_ns, true);
  field("wall_seconds", run.wall_seconds, true);
  field("exit_status", run.exit_status, false);
  field("seconds", run.seconds, false);
  field("joules", run.joules, false);
  field("total_joules", run.total_joules, false);
  field("units", run.units, false);
  field("requested", run.requested, false);
  field("requested_after", run.requested_after, false);
  field("enforced_watts", run.enforced_watts, false);
  field("start_celsius", run.start_celsius, false);
  field("end_celsius", run.end_celsius, false);
  field("mean_watts", run.mean_watts, false);
  field("peak_watts", run.peak_watts, false);
  field("sm_megahertz", run.sm_megahertz, false);
  field("memory_megahertz", run.memory_megahertz, false);
  field("sm_utilisation_ratio", run.sm_utilisation, false);
  field("memory_utilisation_ratio", run.memory_utilisation, false);
  field("limited_by_power_ratio", run.limited_by_power, false);
  field("limited_by_heat_ratio", run.limited_by_heat, false);
  field("loss", run.loss, false);
  field("simulated", run.simulated, false);
  field("unranked", run.unranked, false);
  field("remark", run.remark, false);
}

template <typename T>
constexpr bool is_list = false;
template <typename T>
constexpr bool is_list<std::vector<T>> = true;
template <typename T>
constexpr bool is_optional = false;
template <typename T>
constexpr bool is_optional<std::optional<T>> = true;

// An absent member is left out.
constexpr auto writer(json& object) {
  return [&object](const char* key, const auto& member, bool) {
    using Member = std::decay_t<decltype(member)>;
    if constexpr (is_optional<Member>) {
      if (member) object[key] = *member;
    } else {
      object[key] = member;
    }
  };
}

template <typename T>
void read_list(JsonReader& reader, const char* key, std::vector<T>& out) {
  const json* list = reader.raw(key);
  if (list == nullptr || !list->is_array()) return reader.error(key, "must be a list");
  for (const auto& item : *list) {
    if (std::is_same_v<T, std::string> ? !item.is_string() : !item.is_number()) {
      return reader.error(key, "has an item of a wrong type");
    }
    out.push_back(item.get<T>());
  }
}

constexpr auto member_reader(JsonReader& reader) {
  return [&reader](const char* key, auto& member, bool required) {
    using Member = std::decay_t<decltype(member)>;
    constexpr JsonRange kAny{-1e19, 1e19};
    if constexpr (is_list<Member>) {
      read_list(reader, key, member);
    } else if (required) {
      reader.require(key, member, kAny);
    } else {
      reader.read(key, member, kAny);
    }
  };
}

template <typename T, typename Visit>
Result<T> from_json(const std::string& text, const std::string& file, const Visit& visit) {
  const auto document = parse_json(text, file, Errc::kCorrupt);
  if (!document) return forward_error(document);
  JsonErrors errors{file, {}, Errc::kCorrupt};
  JsonReader reader(*document, "", errors);
  T value;
  visit(value, member_reader(reader));
  if (errors.first) return tl::unexpected(*errors.first);
  return value;
}

}  // namespace

std::string plan_to_json(const model::SweepPlan& plan) {
  json object = json::object();
  visit_plan(plan, writer(object));
  return json_text(object);
}

std::string run_to_json(const model::SweepRun& run) {
  json object = json::object();
  visit_run(run, writer(object));
  return json_text(object);
}

Result<model::SweepPlan> plan_from_json(const std::string& text, const std::string& file) {
  return from_json<model::SweepPlan>(
      text, file, [](auto& plan, const auto& field) { visit_plan(plan, field); });
}

Result<model::SweepRun> run_from_json(const std::string& text, const std::string& file) {
  return from_json<model::SweepRun>(text, file,
                                    [](auto& run, const auto& field) { visit_run(run, field); });
}

}  // namespace jouleprof::recording
