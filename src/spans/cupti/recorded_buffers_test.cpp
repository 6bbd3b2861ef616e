// Buffers that CUPTI filled on a real GPU (tests/fixtures/cupti), held against what the vendor's
// headers say of each record there, and against what the program is known to have launched.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "spans/cupti/aggregate/aggregate_fixture.h"
#include "spans/cupti/records.h"

namespace jouleprof::cupti {
namespace {

namespace abi = abi::cupti;
using abi::ActivityKind;

constexpr const char* kFolder = JOULEPROF_SOURCE_DIR "/tests/fixtures/cupti/";
constexpr std::uint32_t kScope = 5;

// A row of records.csv.
struct Row {
  std::map<std::string, std::string> fields;
  std::uint64_t operator[](const char* name) const { return std::stoull(fields.at(name)); }
  std::string text(const char* name) const { return fields.at(name); }
  ActivityKind kind() const { return static_cast<ActivityKind>((*this)["kind"]); }
  bool single() const {
    return kind() != ActivityKind::kDevice && kind() != ActivityKind::kGraphTrace &&
           (*this)["graph"] == 0;
  }
  std::uint64_t duration() const { return (*this)["end"] - (*this)["start"]; }
};

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, ',');) out.push_back(field);
  return out;
}

std::vector<Row> read_rows() {
  std::ifstream in(std::string(kFolder) + "records.csv");
  std::string line;
  std::getline(in, line);
  const auto names = split(line);
  std::vector<Row> rows;
  while (std::getline(in, line)) {
    auto fields = split(line);
    fields.resize(names.size());
    Row& row = rows.emplace_back();
    for (std::size_t i = 0; i < names.size(); ++i) row.fields[names[i]] = fields[i];
  }
  return rows;
}

class RecordedBuffers : public ::testing::Test {
 protected:
  // A launch as it was sent: class, begin and duration in nanoseconds, stream.
  using Sum = MemorySink::Sum;
  using Reported = std::tuple<std::string, std::int64_t, std::uint64_t, std::uint32_t>;

  std::vector<Row> rows = read_rows();
  std::vector<std::uint64_t> bytes;  // all buffers, at an address that records may have
  MemorySink sink;
  CorrelationTable launches;
  GraphNodes nodes;
  KernelClasses classes{sink};
  ActivityAggregator aggregator{sink, {.events = true}};
  std::uint64_t wrong_times = 0;

  static RecordedBuffers*& now() {
    static RecordedBuffers* fixture = nullptr;
    return fixture;
  }
  std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(bytes.data()); }
  std::uint8_t* at(const Row& row) { return data() + row["buffer"] + row["offset"]; }
  std::int64_t origin() const { return static_cast<std::int64_t>(rows.at(1)["start"]); }

  void SetUp() override {
    now() = this;
    std::ifstream in(std::string(kFolder) + "buffers.bin", std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(in), {}};
    ASSERT_GT(all.size(), 20'000U);
    ASSERT_GT(rows.size(), 100U);
    bytes.resize(all.size() / 8);
    std::memcpy(bytes.data(), all.data(), all.size());
    for (const Row& row : rows) {
      // Pointers are those of another process.
      if (row["name_offset"] == 0) continue;
      const char* name = row.fields.at("name").c_str();
      std::memcpy(at(row) + row["name_offset"], &name, sizeof name);
    }
    for (const Row& row : rows) {
      launches.put(static_cast<std::uint32_t>(row["correlation"]), kScope);
    }
  }

  // As CUPTI finds the next record: by the offsets that it gave when they were recorded.
  static abi::Result next_record(std::uint8_t* buffer, std::size_t, abi::Activity** record) {
    auto* from = reinterpret_cast<std::uint8_t*>(*record);
    for (const Row& row : now()->rows) {
      std::uint8_t* place = now()->at(row);
      if (now()->data() + row["buffer"] != buffer || (from != nullptr && place <= from)) continue;
      *record = reinterpret_cast<abi::Activity*>(place);
      return abi::Result::kSuccess;
    }
    return abi::Result::kMaxLimitReached;
  }

  // Host time begins with the first launch.
  void read_all() {
    CuptiApi api;
    api.next_record = &next_record;
    RecordReader reader(api, launches, nodes, classes, aggregator);
    const StampConverter stamps({.host = HostTime{}, .real = RealTime{Duration{origin()}}});
    std::uint64_t last = UINT64_MAX;
    for (const Row& row : rows) {
      if (row["buffer"] == last) continue;
      last = row["buffer"];
      reader.read({data() + last, row["valid"]}, stamps, HostTime{std::chrono::seconds{10}});
    }
    wrong_times = reader.without_times();
    aggregator.settle(true, false);
    aggregator.send();
  }

  std::string name_of(const model::KernelClass& c) const {
    std::string name = c.name;
    for (const std::uint32_t n : c.grid) name += ' ' + std::to_string(n);
    for (const std::uint32_t n : c.block) name += ' ' + std::to_string(n);
    return name + ' ' + std::to_string(c.bytes);
  }
  std::string name_of(const Row& row) const {
    model::KernelClass c;
    c.bytes = std::bit_floor(row["bytes"]);
    if (row.kind() == ActivityKind::kConcurrentKernel) {
      c.name = row.text("name");
      const auto of = [&](const char* n) { return static_cast<std::uint32_t>(row[n]); };
      c.grid = {of("grid_x"), of("grid_y"), of("grid_z")};
      c.block = {of("block_x"), of("block_y"), of("block_z")};
    } else if (row.kind() == ActivityKind::kMemset) {
      c.name = "memset";
    } else {  // CUpti_ActivityMemcpyKind
      c.name = row["copy_kind"] == 1   ? "memcpy HtoD"
               : row["copy_kind"] == 2 ? "memcpy DtoH"
                                       : "memcpy DtoD";
    }
    return name_of(c);
  }

  Sum of(const std::string& part) const {
    Sum all;
    for (std::uint32_t k = 0; k < sink.trace.classes.size(); ++k) {
      if (sink.trace.classes[k].name.find(part) == std::string::npos) continue;
      all.busy += sink.of_class(k).busy;
      all.launches += sink.of_class(k).launches;
    }
    return all;
  }
};

TEST_F(RecordedBuffers, EachLaunchIsAsTheVendorHasIt) {
  read_all();
  EXPECT_EQ(wrong_times, 0U);
  std::vector<Reported> expected;
  for (const Row& row : rows) {
    if (!row.single()) continue;
    expected.emplace_back(name_of(row), static_cast<std::int64_t>(row["start"]) - origin(),
                          row.duration(), static_cast<std::uint32_t>(row["stream"]));
  }
  ASSERT_EQ(expected.size(), 30U + 20 + 4 * 5 + 2 * 10);
  std::vector<Reported> reported;
  for (const auto& [begin, event] : sink.events()) {
    reported.emplace_back(name_of(sink.trace.classes.at(event.kernel_class)), begin,
                          event.duration_nanoseconds, event.stream);
    EXPECT_EQ(event.scope, kScope);
  }
  std::sort(expected.begin(), expected.end());
  std::sort(reported.begin(), reported.end());
  EXPECT_TRUE(std::includes(reported.begin(), reported.end(), expected.begin(), expected.end()));
}

TEST_F(RecordedBuffers, EachLaunchOfTheProgramIsThere) {
  read_all();
  constexpr std::uint64_t kGraphs = 8 + 6 + 5;  // whole, node by node, whole
  EXPECT_EQ(of("scaleIf").launches, 30 + kGraphs);
  EXPECT_EQ(of("scaleId").launches, 20U);
  EXPECT_EQ(of("spin").launches, 20 + kGraphs);
  EXPECT_EQ(of("memset").launches, 5 + kGraphs);
  EXPECT_EQ(of("memcpy").launches, 15U);
  EXPECT_EQ(of("graph").launches, 0U);
  EXPECT_EQ(aggregator.graph_expanded(), 8U + 5 + 1);
}

// The last of those that were recorded node by node has the stamps of one after it: its memset
// seems to have taken 102 us.
TEST_F(RecordedBuffers, WhatALaterLaunchHasWrittenIsMended) {
  std::uint64_t longest = 0;
  for (const Row& row : rows) {
    if (row["graph"] != 0 && row.kind() == ActivityKind::kMemset) {
      longest = std::max(longest, row.duration());
    }
  }
  ASSERT_GT(longest, 100'000U);
  read_all();
  std::uint64_t sets = 0;
  for (const auto& [begin, event] : sink.events()) {
    if (sink.trace.classes.at(event.kernel_class).name != "memset") continue;
    sets = std::max(sets, event.duration_nanoseconds);
  }
  EXPECT_LT(sets, 2'000U);
}

TEST_F(RecordedBuffers, TheDeviceIsKnown) {
  read_all();
  ASSERT_EQ(sink.trace.devices.size(), 1U);
  EXPECT_EQ(sink.trace.devices[0].name, "NVIDIA H200");
  EXPECT_EQ(sink.trace.devices[0].uuid, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
}

}  // namespace
}  // namespace jouleprof::cupti
