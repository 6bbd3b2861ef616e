#include "session/run/trace_watch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "base/file.h"
#include "recording/spool/random_trace_fixture.h"
#include "recording/spool/spool_writer.h"
#include "session/sampling/recording_sink.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::session {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class TraceWatchTest : public testing::Test {
 protected:
  TraceWatchTest() {
    options_.kernels = true;
    options_.inject_library = "/opt/lib/libjouleprof_inject.so";
    options_.python_hook = "/opt/hook";
    options_.recording = tree_ / "x.jprof";
  }

  std::unique_ptr<TraceWatch> watch() {
    auto made = TraceWatch::create(options_);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  std::vector<std::string> variables() {
    return watch()->variables(
        [this](const std::string& name) -> std::optional<std::string> {
          const auto found = environment_.find(name);
          return found == environment_.end() ? std::nullopt : std::optional(found->second);
        },
        warnings_);
  }
  // Takes everything into the recording.
  void take(TraceWatch& watch, bool rest = false) {
    Batch batch;
    if (rest) {
      watch.take_rest(batch.traces, warnings_, std::chrono::milliseconds{100});
    } else {
      watch.take(batch.traces, warnings_);
    }
    EXPECT_TRUE(sink_.append(batch));
  }
  // Without how far each was read.
  std::vector<model::Trace> taken() const {
    std::vector<model::Trace> traces = sink_.recording.traces;
    for (auto& trace : traces) trace.position.reset();
    return traces;
  }
  std::unique_ptr<spool::SpoolWriter> writer(const TraceWatch& watch, const model::Trace& trace) {
    return spool::SpoolWriter::open(watch.folder(), trace).value();
  }

  TempTree tree_;
  TraceOptions options_;
  std::map<std::string, std::string> environment_;
  std::vector<std::string> warnings_;
  MemorySink sink_;
};

TEST_F(TraceWatchTest, ThePrivateFolderIsNextToTheRecordingAndIsRemoved) {
  {
    const auto traces = watch();
    EXPECT_EQ(traces->folder(), tree_ / "x.jprof.spool");
    EXPECT_EQ(fs::status(traces->folder()).permissions(), fs::perms::owner_all);
    const auto another = watch();  // as next to a killed run's
    EXPECT_THAT(another->folder().string(), StartsWith((tree_ / "x.jprof.spool-").string()));
  }
  EXPECT_THAT(*list_folder(tree_.root()), IsEmpty());
  options_.recording = tree_ / "no folder/x.jprof";
  EXPECT_TRUE(fs::is_directory(watch()->folder()));
}

TEST_F(TraceWatchTest, TheCommandIsReported) {
  options_.events = true;
  const std::string folder = (tree_ / "x.jprof.spool").string();
  EXPECT_THAT(
      variables(),
      ElementsAre("JOULEPROF_TRACE=" + folder, "JOULEPROF_TRACE_WHAT=kernels,events",
                  "CUDA_INJECTION64_PATH=/opt/lib/libjouleprof_inject.so",
                  "NVTX_INJECTION64_PATH=/opt/lib/libjouleprof_inject.so",
                  "JOULEPROF_INJECT=/opt/lib/libjouleprof_inject.so", "PYTHONPATH=/opt/hook"));
  options_.kernels = options_.events = false;
  options_.layers = true;
  environment_["PYTHONPATH"] = "/a:/b";
  EXPECT_THAT(variables(), ElementsAre("JOULEPROF_TRACE=" + folder, "JOULEPROF_TRACE_WHAT=layers",
                                       "JOULEPROF_INJECT=/opt/lib/libjouleprof_inject.so",
                                       "PYTHONPATH=/opt/hook:/a:/b"));
  options_.replay_seconds = 0.4;
  EXPECT_THAT(variables(), Contains("JOULEPROF_REPLAY=0.4"));
  environment_["PYTHONPATH"] = "";
  EXPECT_THAT(variables(), Contains("PYTHONPATH=/opt/hook"));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(TraceWatchTest, WhatIsNotTracedIsSaid) {
  options_.kernels = false;
  options_.layers = true;
  options_.remark = "there is no GPU";
  EXPECT_THAT(variables(), Contains("JOULEPROF_TRACE_WHAT=layers"));
  EXPECT_THAT(warnings_, ElementsAre("there is no GPU"));
}

TEST_F(TraceWatchTest, AnotherToolsLibraryIsLeftAlone) {
  environment_["CUDA_INJECTION64_PATH"] = "/nsight/libToolsInjection64.so";
  EXPECT_THAT(variables(), Not(Contains(StartsWith("CUDA_INJECTION64_PATH"))));
  EXPECT_THAT(warnings_,
              ElementsAre(AllOf(HasSubstr("/nsight/libToolsInjection64.so"), HasSubstr("unset"))));
  warnings_.clear();
  // That of an outer run of ours is no other tool's.
  environment_["CUDA_INJECTION64_PATH"] = "/other/libjouleprof_inject.so";
  environment_["NVTX_INJECTION64_PATH"] = "/nsight/libnvtx.so";
  EXPECT_THAT(variables(), Contains("CUDA_INJECTION64_PATH=/opt/lib/libjouleprof_inject.so"));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("NVTX ranges")));
}

TEST_F(TraceWatchTest, RocmsRuntimesLoadTheLibraryWhereRocprofilerIs) {
  const auto of_rocm = [&] {
    std::vector<std::string> found;
    for (const auto& variable : variables()) {
      if (variable.starts_with("ROC")) found.push_back(variable);
    }
    return found;
  };
  environment_["JOULEPROF_ROOT"] = tree_.root().string();
  EXPECT_THAT(of_rocm(), IsEmpty());  // no board of AMD's
  EXPECT_THAT(warnings_, IsEmpty());
  tree_.write("dev/kfd", "");
  // A runtime would abort its program where it has a tool and no rocprofiler-sdk.
  EXPECT_THAT(of_rocm(), IsEmpty());
  EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("librocprofiler-sdk.so was not found"),
                                           HasSubstr("ROCm 6.4"))));
  warnings_.clear();
  tree_.write("dev/nvidiactl", "");
  EXPECT_THAT(of_rocm(), IsEmpty());
  EXPECT_THAT(warnings_, IsEmpty());
  tree_.write("opt/rocm-7.1.0/lib/librocprofiler-sdk.so", "no library");
  EXPECT_THAT(of_rocm(), IsEmpty());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("cannot be loaded here")));
  warnings_.clear();
  fs::remove_all(tree_ / "opt/rocm-7.1.0");
  for (const char* file :
       {"opt/rocm-6.4.1/lib/librocprofiler-sdk.so.0", "opt/rocm-7.0.0/lib/librocprofiler-sdk.so"}) {
    fs::create_directories((tree_ / file).parent_path());
    fs::create_symlink(fs::read_symlink("/proc/self/exe"), tree_ / file);
  }
  const std::string newest = (tree_ / "opt/rocm-7.0.0/lib/librocprofiler-sdk.so").string();
  EXPECT_THAT(of_rocm(), ElementsAre("ROCP_TOOL_LIBRARIES=/opt/lib/libjouleprof_inject.so",
                                     "ROCPROFILER_REGISTER_LIBRARY=" + newest));
  environment_["ROCP_TOOL_LIBRARIES"] = "/other/tool.so";
  environment_["ROCM_PATH"] = (tree_ / "opt/rocm-6.4.1").string();
  EXPECT_THAT(of_rocm(),
              ElementsAre("ROCP_TOOL_LIBRARIES=/opt/lib/libjouleprof_inject.so:/other/tool.so",
                          "ROCPROFILER_REGISTER_LIBRARY=" + environment_["ROCM_PATH"] +
                              "/lib/librocprofiler-sdk.so.0"));
  environment_["ROCPROFILER_REGISTER_LIBRARY"] = newest;
  environment_["ROCP_TOOL_LIBRARIES"] = "/opt/lib/libjouleprof_inject.so";  // an outer run's
  EXPECT_THAT(of_rocm(), ElementsAre("ROCP_TOOL_LIBRARIES=/opt/lib/libjouleprof_inject.so",
                                     "ROCPROFILER_REGISTER_LIBRARY=" + newest));
  environment_["JOULEPROF_ROCPROFILER_LIBRARY"] = "";
  EXPECT_THAT(of_rocm(), IsEmpty());
  environment_.erase("ROCPROFILER_REGISTER_LIBRARY");
  environment_["JOULEPROF_ROCPROFILER_LIBRARY"] = "/nowhere/lib.so";
  EXPECT_THAT(of_rocm(), IsEmpty());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("/nowhere/lib.so was not found")));
}

TEST_F(TraceWatchTest, TakesWhatComesAndRemovesItWhenItIsRecorded) {
  const auto traces = watch();
  const model::Trace first = spool::RandomTrace(1).make();
  model::Trace second = spool::RandomTrace(2).make();
  second.status.problem = "CUPTI is held by torch.profiler";
  auto one = writer(*traces, first);
  take(*traces);
  spool::send(first, *one);
  take(*traces);
  auto two = writer(*traces, second);
  spool::send(second, *two);
  one->add(first.chunks[0]);
  one->close();
  two->close();
  take(*traces, true);
  model::Trace expected = first;
  expected.chunks.push_back(first.chunks[0]);
  EXPECT_THAT(taken(), ElementsAre(expected, second));
  EXPECT_THAT(warnings_, Contains(AllOf(HasSubstr(fmt::format("(pid {})", second.pid)),
                                        HasSubstr("torch.profiler"))));
  EXPECT_FALSE(traces->close(true));
  EXPECT_FALSE(fs::exists(traces->folder()));
}

TEST_F(TraceWatchTest, NothingIsRemovedBeforeItIsRecorded) {
  const auto traces = watch();
  const model::Trace trace = spool::RandomTrace(1).make();
  auto out = writer(*traces, trace);
  spool::send(trace, *out);
  out->close();
  take(*traces);
  const std::uint64_t size = fs::file_size(traces->folder() / list_folder(traces->folder())->at(0));
  const auto& position = sink_.recording.traces.at(0).position;
  ASSERT_TRUE(position);
  EXPECT_EQ(position->file, 0U);
  EXPECT_EQ(position->bytes, size);
  traces->remove_taken();
  EXPECT_THAT(*list_folder(traces->folder()), IsEmpty());
}

TEST_F(TraceWatchTest, NothingIsLostByWhatCannotBeRecorded) {
  const auto traces = watch();
  spool::send(spool::RandomTrace(1).make(), *writer(*traces, {}));
  EXPECT_THAT(traces->close(false).value(), HasSubstr(traces->folder().string()));
  EXPECT_TRUE(fs::exists(traces->folder()));
}

TEST_F(TraceWatchTest, DamageIsKept) {
  const auto traces = watch();
  std::ofstream(traces->folder() / "1-2-0000.spool") << "this is no spool";
  take(*traces, true);
  EXPECT_THAT(warnings_, Contains(HasSubstr("is kept in " + traces->folder().string())));
  EXPECT_TRUE(traces->close(true));
  EXPECT_TRUE(fs::exists(traces->folder()));
}

TEST_F(TraceWatchTest, NothingTracedIsExplained) {
  auto traces = watch();
  take(*traces, true);
  EXPECT_THAT(warnings_,
              ElementsAre(AllOf(HasSubstr("no program that uses CUDA"), HasSubstr("statically"))));
  warnings_.clear();
  auto out = writer(*traces, {});
  out->close();
  take(*traces, true);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("launched none")));
}

TEST_F(TraceWatchTest, AProcessThatStillWritesIsWaitedFor) {
  const auto traces = watch();
  const model::Trace trace = spool::RandomTrace(3).make();
  const pid_t child = fork();
  if (child == 0) {
    model::Trace header;
    header.pid = getpid();
    auto out = spool::SpoolWriter::open(traces->folder(), header).value();
    usleep(50'000);
    spool::send(trace, *out);
    out->close();
    usleep(10'000'000);
    _exit(0);
  }
  while (list_folder(traces->folder())->empty()) usleep(1000);
  std::vector<Batch::TracePart> parts;
  const HostTime begin = HostClock::now();
  traces->take_rest(parts, warnings_, std::chrono::seconds{5});
  EXPECT_LT(HostClock::now() - begin, std::chrono::seconds{4});
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  std::size_t chunks = 0;
  for (const auto& part : parts) chunks += part.more.chunks.size();
  EXPECT_EQ(chunks, trace.chunks.size());
}

TEST_F(TraceWatchTest, AFolderOfOthersIsReadAndLeftAsItWas) {
  fs::create_directory(tree_ / "theirs");
  options_ = {};
  options_.folder = tree_ / "theirs";
  const model::Trace trace = spool::RandomTrace(4).make();
  {
    const auto traces = watch();
    auto out = writer(*traces, trace);
    spool::send(trace, *out);
    out->close();
    take(*traces, true);
    EXPECT_FALSE(traces->close(true));
  }
  EXPECT_THAT(taken(), ElementsAre(trace));
  EXPECT_EQ(list_folder(tree_ / "theirs")->size(), 1U);
  options_.folder = tree_ / "none";
  EXPECT_EQ(TraceWatch::create(options_).error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace jouleprof::session
