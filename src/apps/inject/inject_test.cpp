// The library as drivers and Python load it, on a machine with or without a GPU.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/inject/trace.h"
#include "recording/spool/spool_reader.h"
#include "spans/scopes/range_stack.h"
#include "spans/scopes/scopes.h"
#include "tests/support/sanitizers.h"

namespace jouleprof::inject {
namespace {

namespace fs = std::filesystem;

struct Read : spool::SpoolConsumer {
  std::vector<std::unique_ptr<spool::TraceSink>> processes;
  std::vector<pid_t> pids;
  std::vector<std::string> warnings;
  model::ActivitySink& process(const spool::SpoolProcess& process) override {
    pids.push_back(process.pid);
    processes.push_back(std::make_unique<spool::TraceSink>());
    static_cast<model::TracedProcess&>(processes.back()->trace) = process;
    return *processes.back();
  }
  void warn(std::string text) override { warnings.push_back(std::move(text)); }
};

Read read(const fs::path& folder) {
  Read all;
  spool::SpoolReader reader(folder);
  EXPECT_TRUE(reader.poll(all));
  EXPECT_THAT(all.warnings, ::testing::IsEmpty());
  return all;
}

fs::path new_folder(const std::string& name) {
  const fs::path folder = fs::path(::testing::TempDir()) / ("inject_" + name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

// Runs `work` in a process of its own, which ends as programs do.
template <typename Work>
int in_process(Work&& work) {
  const pid_t child = fork();
  if (child == 0) std::exit(work());
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

struct Library {
  void* handle = dlopen(JOULEPROF_INJECT, RTLD_NOW | RTLD_LOCAL);
  template <typename F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(dlsym(handle, name));
  }
};

TEST(Inject, ShowsItsEntryPointsOnly) {
  const Library library;
  ASSERT_NE(library.handle, nullptr) << dlerror();
  for (const char* name :
       {"InitializeInjection", "InitializeInjectionNvtx2", "rocprofiler_configure",
        "jouleprof_trace_begin", "jouleprof_trace_flush", "jouleprof_trace_end"}) {
    EXPECT_NE(dlsym(library.handle, name), nullptr) << name;
  }
  EXPECT_EQ(dlsym(library.handle, "_ZN9jouleprof6scopes7currentEv"), nullptr);
}

TEST(Inject, WithoutAFolderItDoesNothing) {
  EXPECT_EQ(in_process([] {
              unsetenv("JOULEPROF_TRACE");
              const Library library;
              library.function<void()>("jouleprof_trace_flush")();
              library.function<void()>("jouleprof_trace_end")();
              return library.function<int()>("InitializeInjection")() == 1 ? 0 : 1;
            }),
            0);
}

TEST(Inject, AFolderThatCannotBeWrittenIsNoHarm) {
  EXPECT_EQ(in_process([] {
              setenv("JOULEPROF_TRACE", "/proc/nowhere", 1);
              const Library library;
              const auto begin =
                  library.function<int(const char*, const char*)>("jouleprof_trace_begin");
              return library.function<int()>("InitializeInjection")() == 1 &&
                             begin("/proc/nowhere", "kernels") != 0 && begin(nullptr, nullptr) != 0
                         ? 0
                         : 1;
            }),
            0);
}

TEST(Inject, AProcessThatLaunchesNothingLeavesItsStatus) {
#ifdef JOULEPROF_ADDRESS_SANITIZER
  GTEST_SKIP() << "CUPTI leaks memory of its own, and the process's status says so";
#endif
  const auto folder = new_folder("status");
  EXPECT_EQ(in_process([&] {
              setenv("JOULEPROF_TRACE", folder.c_str(), 1);
              setenv("JOULEPROF_TRACE_WHAT", "kernels", 1);
              const Library library;
              return library.function<int()>("InitializeInjection")() == 1 ? 0 : 1;
            }),
            0);
  const Read all = read(folder);
  ASSERT_EQ(all.processes.size(), 1U);
  EXPECT_TRUE(all.processes[0]->trace.status.ended);
  EXPECT_TRUE(all.processes[0]->trace.chunks.empty());
}

// Another tool may have loaded rocprofiler-sdk, which calls every tool that it finds.
TEST(Inject, RocprofilerIsUsedWhereKernelsAreWantedOnly) {
  const auto folder = new_folder("rocprofiler");
  const auto configured = [&](const char* trace, const char* what, std::uint32_t version) {
    return in_process([&] {
      trace != nullptr ? setenv("JOULEPROF_TRACE", trace, 1) : unsetenv("JOULEPROF_TRACE");
      setenv("JOULEPROF_TRACE_WHAT", what, 1);
      const Library library;
      return library.function<abi::rocprofiler::fn::Configure>("rocprofiler_configure")(
                 version, "", 0, nullptr) == nullptr
                 ? 0
                 : 1;
    });
  };
  EXPECT_EQ(configured(nullptr, "kernels", 10100), 0);
  EXPECT_EQ(configured("/proc/nowhere", "kernels", 10100), 0);
  EXPECT_EQ(configured(folder.c_str(), "layers", 10100), 0);
  EXPECT_EQ(configured(folder.c_str(), "kernels", 500), 0);    // of another layout
  EXPECT_EQ(configured(folder.c_str(), "kernels", 10100), 0);  // its functions are not there
  std::vector<std::string> problems;
  for (const auto& process : read(folder).processes) {
    EXPECT_TRUE(process->trace.status.ended);
    problems.push_back(process->trace.status.problem);
  }
  EXPECT_THAT(problems, ::testing::UnorderedElementsAre(
                            "", ::testing::HasSubstr("0.5.0 has other records"),
                            ::testing::HasSubstr("1.1.0 has no rocprofiler_create_context")));
}

TEST(Inject, TheRankIsThatOfTheProcess) {
  const auto folder = new_folder("rank");
  EXPECT_EQ(in_process([&] {
              setenv("RANK", "3", 1);
              setenv("WORLD_SIZE", "4", 1);
              return begin(folder.c_str(), "layers") ? 0 : 1;
            }),
            0);
  const Read all = read(folder);
  ASSERT_EQ(all.processes.size(), 1U);
  const model::Rank& rank = all.processes[0]->trace.rank;
  EXPECT_EQ(rank.global, 3U);
  EXPECT_EQ(rank.world_size, 4U);
  EXPECT_EQ(rank.launcher, "torchrun");
}

TEST(Inject, LayersAndSourcesAreReportedWithoutCuda) {
  const auto folder = new_folder("layers");
  EXPECT_EQ(in_process([&] {
              add_source([](model::ActivitySink& sink) {
                sink.add({model::ChunkKind::kLayers, model::kNone, {}, {}, {}});
              });
              if (!begin(folder.c_str(), "layers") || !begin("/nowhere", "kernels")) return 1;
              model::Layer layer;
              layer.name = "fc";
              scopes::add(layer);
              flush();
              return read(folder).processes.at(0)->trace.layers.at(0).name == "fc" ? 0 : 2;
            }),
            0);
  EXPECT_FALSE(read(folder).processes.at(0)->trace.chunks.empty());
}

TEST(Inject, AForkedChildBeginsItsOwn) {
#ifdef JOULEPROF_THREAD_SANITIZER
  GTEST_SKIP() << "the thread sanitizer starts no threads after a fork";
#endif
  const auto folder = new_folder("fork");
  EXPECT_EQ(in_process([&] {
              begin(folder.c_str(), "layers");
              scopes::add(model::Range{"shared", model::kNone});
              flush();
              const int silent = in_process([] {
                flush();
                return 0;
              });
              const int own = in_process([&] {
                begin(folder.c_str(), "layers");
                flush();
                return 0;
              });
              return silent == 0 && own == 0 ? 0 : 1;
            }),
            0);
  const Read all = read(folder);
  ASSERT_EQ(all.processes.size(), 2U);
  for (const auto& process : all.processes) {
    EXPECT_TRUE(process->trace.status.ended);
    ASSERT_EQ(process->trace.ranges.size(), 1U);
    EXPECT_EQ(process->trace.ranges[0].name, "shared");
  }
}

TEST(Inject, BeginsAgainAfterTheEnd) {
  const auto folder = new_folder("again");
  EXPECT_EQ(in_process([&] {
              begin(folder.c_str(), "layers");
              scopes::add(model::Range{"shared", model::kNone});
              end(false);
              begin(folder.c_str(), "layers");
              return 0;
            }),
            0);
  const Read all = read(folder);
  ASSERT_EQ(all.processes.size(), 2U);
  for (const auto& process : all.processes) EXPECT_EQ(process->trace.ranges.size(), 1U);
}

}  // namespace
}  // namespace jouleprof::inject
