// A folder of spools for a test, and the records that a reader takes from it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "recording/spool/random_trace_fixture.h"
#include "recording/spool/spool_reader.h"
#include "recording/spool/spool_writer.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::spool {

namespace fs = std::filesystem;

struct Collector : SpoolConsumer {
  std::vector<std::unique_ptr<TraceSink>> sinks;
  std::vector<std::string> warnings;

  model::ActivitySink& process(const SpoolProcess& p) override {
    auto sink = std::make_unique<TraceSink>();
    static_cast<model::TracedProcess&>(sink->trace) = p;
    sinks.push_back(std::move(sink));
    return *sinks.back();
  }
  void warn(std::string text) override { warnings.push_back(std::move(text)); }

  // The only process's.
  const model::Trace& trace() const { return sinks.at(0)->trace; }
};

class Spool : public testing::Test {
 protected:
  std::unique_ptr<SpoolWriter> writer(const model::Trace& trace,
                                      std::size_t segment = SpoolWriter::kSegmentBytes) {
    auto made = SpoolWriter::open(tree_.root(), trace, segment);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  std::vector<std::string> names() const { return *list_folder(tree_.root()); }
  fs::path only_file() const { return tree_.root() / names().at(0); }
  std::string content() const { return *read_file(only_file()); }
  // Removed first: some file systems wait for the disk when a file is emptied and written again.
  void replace(const std::string& bytes) {
    const fs::path file = only_file();
    fs::remove(file);
    std::ofstream(file, std::ios::binary) << bytes;
  }
  // What a reader that begins now takes.
  Collector read() {
    Collector all;
    SpoolReader reader(tree_.root());
    EXPECT_TRUE(reader.poll(all));
    return all;
  }

  TempTree tree_;
};

}  // namespace jouleprof::spool
