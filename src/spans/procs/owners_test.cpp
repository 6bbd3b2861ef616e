#include "spans/procs/owners.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/temp_tree.h"

namespace jouleprof::spans {
namespace {

const std::string kA(64, 'a');
const std::string kB = std::string(60, '0') + "beef";
constexpr std::string_view kPod = "8f2b1a90-1c2d-4e3f-9a0b-112233445566";
constexpr std::string_view kPodUnderscores = "8f2b1a90_1c2d_4e3f_9a0b_112233445566";

struct Case {
  std::string path;
  model::Owner owner;
};

model::Owner container(std::string id, std::string runtime, std::string pod = "") {
  model::Owner owner;
  owner.container = std::move(id);
  owner.runtime = std::move(runtime);
  owner.pod = std::move(pod);
  return owner;
}

model::Owner with_unit(model::Owner owner, std::string unit) {
  owner.unit = std::move(unit);
  return owner;
}

model::Owner job(std::string id, std::string step, std::optional<std::uint32_t> user = {}) {
  model::Owner owner;
  owner.job = std::move(id);
  owner.step = std::move(step);
  owner.user = user;
  return owner;
}

model::Owner of_user(std::uint32_t user, model::Owner owner = {}) {
  owner.user = user;
  return owner;
}

std::string text_of(const model::Owner& o) {
  return fmt::format("container '{}' runtime '{}' pod '{}' job '{}' step '{}' unit '{}' user {}",
                     o.container, o.runtime, o.pod, o.job, o.step, o.unit,
                     o.user ? std::to_string(*o.user) : "-");
}

TEST(OwnerRules, KnowTheNamesOfEachRuntime) {
  const std::string pod(kPod);
  const std::vector<Case> cases{
      // Containers under systemd and under the cgroupfs driver.
      {"/system.slice/docker-" + kA + ".scope", container(kA, "docker")},
      {"/docker/" + kA, container(kA, "docker")},
      {"/docker/buildkit/" + kA, container(kA, "docker")},
      {"/ecs/0f1e2d3c4b5a/" + kA, container(kA, "docker")},
      {"/system.slice/nerdctl-" + kA + ".scope", container(kA, "containerd")},
      {"/machine.slice/libpod-" + kA + ".scope/container", container(kA, "podman")},
      {"/libpod_parent/libpod-" + kA, container(kA, "podman")},
      // A user's own groups, with names that this user chose.
      {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kA + ".scope",
       of_user(1000, with_unit({}, "user@1000.service"))},
      {"/user.slice/user-1000.slice/user@1000.service/user.slice:libpod:" + kA,
       of_user(1000, with_unit({}, "user@1000.service"))},
      {"/user.slice/user-1000.slice/user@1000.service/app.slice/slurm/uid_1/job_999/step_0",
       of_user(1000, with_unit({}, "user@1000.service"))},
      {"/user.slice/user-1000.slice/user@1000.service/user@0.service/ssh.service",
       of_user(1000, with_unit({}, "user@1000.service"))},
      {fmt::format("/kubepods/pod{}/{}/user.slice/user-5.slice/user@5.service/job_3", kPod, kA),
       container(kA, "", pod)},
      {"/system.slice:docker:" + kA, container(kA, "docker")},
      {"/lxc.payload.web-1", container("web-1", "lxc")},
      // Kubernetes, in each quality of service.
      {fmt::format("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice/"
                   "cri-containerd-{}.scope",
                   kPodUnderscores, kA),
       container(kA, "containerd", pod)},
      {fmt::format("/kubepods.slice/kubepods-pod{}.slice/crio-{}.scope", kPodUnderscores, kA),
       container(kA, "cri-o", pod)},
      {fmt::format("/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{}.slice/"
                   "docker-{}.scope",
                   kPodUnderscores, kA),
       container(kA, "docker", pod)},
      {fmt::format("/kubepods/burstable/pod{}/{}", kPod, kA), container(kA, "", pod)},
      {fmt::format("/kubepods/pod{}/{}", kPod, kA), container(kA, "", pod)},
      {fmt::format("/kubepods/besteffort/pod{}", kPod), container("", "", pod)},
      // A pod's container does not name another pod.
      {fmt::format("/kubepods/pod{}/{}/kubepods/pod44444444-4444-4444-4444-444444444444/{}", kPod,
                   kA, std::string(64, 'd')),
       container(kA, "", pod)},
      {fmt::format("/kubepods/burstable/pod{}/{}", std::string(32, 'c'), kA),
       container(kA, "", std::string(32, 'c'))},  // a static pod
      {fmt::format("/system.slice/containerd.service/kubepods-besteffort-pod{}.slice:"
                   "cri-containerd:{}",
                   kPodUnderscores, kA),
       with_unit(container(kA, "containerd", pod), "containerd.service")},
      // The pod's own monitor is no container.
      {fmt::format("/kubepods.slice/kubepods-pod{}.slice/crio-conmon-{}.scope", kPodUnderscores,
                   kA),
       with_unit(container("", "", pod), "crio-conmon-" + kA + ".scope")},
      // A cluster within a container: the inner container and its pod.
      {fmt::format("/system.slice/docker-{}.scope/kubelet.slice/kubelet-kubepods.slice/"
                   "kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod{}.slice/"
                   "cri-containerd-{}.scope",
                   kB, kPodUnderscores, kA),
       container(kA, "containerd", pod)},
      {fmt::format("/docker/{}/kubelet/kubepods/burstable/pod{}", kB, kPod),
       container("", "", pod)},
      {fmt::format("/docker/{}/docker/{}", kB, kA), container(kA, "docker")},
      // Slurm.
      {"/slurm/uid_1000/job_4711/step_0/task_0", job("4711", "0", 1000)},
      {"/slurm_node7/uid_1000/job_4711/step_batch", job("4711", "batch", 1000)},
      {"/system.slice/slurmstepd.scope/job_211/step_extern/user/task_special",
       with_unit(job("211", "extern"), "slurmstepd.scope")},
      {"/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0/user/task_0",
       with_unit(job("s5K1KKYAYG5D00", "0"), "slurmstepd.scope")},
      {"/system.slice/slurmstepd.scope/s5K1KKYAYG5D0/step_0",  // one too few
       with_unit(job("", "0"), "slurmstepd.scope")},
      {"/system.slice/s5K1KKYAYG5D00/step_0", {}},  // not Slurm's
      {"/system.slice/node7_slurmstepd.scope/job_211/step_interactive/user/task_0",
       with_unit(job("211", "interactive"), "node7_slurmstepd.scope")},
      {fmt::format("/system.slice/slurmstepd.scope/job_9/step_0/user/task_0/docker/{}", kA),
       with_unit(
           [&] {
             auto o = job("9", "0");
             o.container = kA;
             o.runtime = "docker";
             return o;
           }(),
           "slurmstepd.scope")},
      // PBS: OpenPBS on cgroup v1 and v2, and Torque.
      {"/pbs_jobs.service/jobid/2404743.opbs",
       with_unit(job("2404743.opbs", ""), "pbs_jobs.service")},
      {"/pbs_jobs.service/jobs/12[3].head-1/x",
       with_unit(job("12[3].head-1", ""), "pbs_jobs.service")},
      {"/torque/88.head.example.org", job("88.head.example.org", "")},
      {"/pbs_jobs.service/jobid/opbs", with_unit({}, "pbs_jobs.service")},
      {"/pbs_jobs.service/jobid/7.a b", with_unit({}, "pbs_jobs.service")},
      {"/pbs_jobs.service/7.opbs", with_unit({}, "pbs_jobs.service")},
      {"/jobid/7.opbs", {}},
      // LSF.
      {"/lsf/cluster1/job.1047.16384.1551208473", job("1047", "")},
      {"/lsf/cluster1/job.1047[12].16384.1551208473/x", job("1047[12]", "")},
      {"/lsf/cluster1/job.x.1.2", {}},
      {"/other/job.1047.16384.1551208473", {}},
      // HTCondor names the slot, in which one job follows another.
      {"/htcondor/condor_var_lib_condor_execute_slot1_2@node7", job("slot1_2@node7", "")},
      {"/system.slice/htcondor/condor_var_lib_condor_execute_slot3@node7.example",
       job("slot3@node7.example", "")},
      {"/htcondor/condor_var_lib_condor_execute", {}},
      {"/other/condor_x_slot", {}},
      // Nomad names the allocation.
      {fmt::format("/nomad.slice/share.slice/{}.redis.scope", kPod), job(std::string(kPod), "")},
      {fmt::format("/nomad.slice/reserve.slice/{}.train.scope/x", kPod),
       job(std::string(kPod), "")},
      {"/nomad.slice/share.slice/redis.scope", with_unit({}, "redis.scope")},
      // Flux, of its own account; another user's groups name nothing.
      {"/user.slice/user-990.slice/user@990.service/app.slice/imp-shell-0-f2dmN8s.service/x",
       of_user(990, with_unit(job("f2dmN8s", ""), "user@990.service"))},
      {"/user.slice/user-990.slice/user@990.service/app.slice/shell-12-fA1.service",
       of_user(990, with_unit(job("fA1", ""), "user@990.service"))},
      {"/user.slice/user-990.slice/user@990.service/app.slice/imp-shell-x-fA1.service",
       of_user(990, with_unit({}, "user@990.service"))},
      {"/user.slice/user-1000.slice/user@1000.service/app.slice/imp-shell-0-f2dmN8s.service",
       of_user(1000, with_unit({}, "user@1000.service"))},
      // LXC before its version 4, and with nested names.
      {"/lxc/web-1", container("web-1", "lxc")},
      // What a container's root names below its group is none of the machine's.
      {"/machine.slice/systemd-nspawn@web.service/payload/slurmstepd.scope/job_10/step_0",
       with_unit({}, "systemd-nspawn@web.service")},
      {"/machine.slice/machine-web.scope/payload/user.slice/user-1003.slice/user@1003.service",
       with_unit({}, "machine-web.scope")},
      {"/lxc/101/ns/system.slice/ssh.service", container("101", "lxc")},
      {"/lxc.payload/web-1/init.scope", container("web-1", "lxc")},
      {"/lxc/101/ns/user.slice/user-1000.slice/user@1000.service", container("101", "lxc")},
      {"/lxc/101/ns/user.slice/user-990.slice/user@990.service/app.slice/shell-0-fA1.service",
       container("101", "lxc")},
      {fmt::format("/system.slice/docker-{}.scope/system.slice/slurmstepd.scope/job_9/step_0", kA),
       [&] {
         auto o = container(kA, "docker");
         o.job = "9@aaaaaaaaaaaa";
         o.step = "0";
         return o;
       }()},
      {fmt::format("/docker/{}/slurm/uid_1000/job_9", kA),
       [&] {
         auto o = container(kA, "docker");
         o.job = "9@aaaaaaaaaaaa";
         return o;
       }()},
      {"/lxc.monitor/web-1", {}},
      // systemd.
      {"/system.slice/ssh.service", with_unit({}, "ssh.service")},
      {"/system.slice/system-getty.slice/getty@tty1.service", with_unit({}, "getty@tty1.service")},
      {"/user.slice/user-1000.slice/session-3.scope",
       of_user(1000, with_unit({}, "session-3.scope"))},
      {"/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-x\\x2dterm-77.scope",
       of_user(1000, with_unit({}, "user@1000.service"))},
      {"/init.scope", with_unit({}, "init.scope")},
      // No owner, and names that only look like one.
      {"/", {}},
      {"", {}},
      {"/../..", {}},
      {"/job_12/step_0", {}},            // not Slurm's
      {"/slurm/uid_x/job_1x", {}},       // no numbers
      {"/slurm/uid_99999999999", {}},    // no uid
      {"/pod" + std::string(kPod), {}},  // not kubelet's
      {"/system.slice/docker-" + kA.substr(1) + ".scope",
       with_unit({}, "docker-" + kA.substr(1) + ".scope")},  // 63 digits
      {"/docker/" + std::string(64, 'A'), {}},
      {"/a:b:c:d", {}},
      {":::/::", {}},
      {"/lxc.payload.", {}},
      {"/x/" + std::string(5000, 'y') + ".service", {}},
      {"/x/" + std::string(247, 'y') + ".service",
       with_unit({}, std::string(247, 'y') + ".service")},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(text_of(owner_of_cgroup_path(c.path)), text_of(c.owner)) << c.path;
  }
}

TEST(ProcessGroup, OfCgroupV2) {
  const auto group = parse_process_group("0::/system.slice/docker-" + kA + ".scope\n");
  EXPECT_EQ(group.owner, container(kA, "docker"));
  EXPECT_EQ(group.path, "/system.slice/docker-" + kA + ".scope");
  EXPECT_TRUE(group.unified);
  EXPECT_FALSE(group.hidden);
}

TEST(ProcessGroup, OfCgroupV1TakesTheHierarchyThatCountsCpuTime) {
  const auto group = parse_process_group(
      "12:pids:/user.slice\n"
      "9:freezer:/slurm/uid_1000/job_7/step_0\n"
      "5:cpuacct,cpu:/slurm/uid_1000/job_7/step_0/task_1\n"
      "1:name=systemd:/system.slice/slurmd.service\n"
      "0::/system.slice/slurmd.service\n");
  EXPECT_EQ(text_of(group.owner), text_of(with_unit(job("7", "0", 1000), "slurmd.service")));
  EXPECT_EQ(group.path, "/slurm/uid_1000/job_7/step_0/task_1");
  EXPECT_FALSE(group.unified);
}

TEST(ProcessGroup, APathMayHoldColons) {
  const auto group = parse_process_group("0::/system.slice:docker:" + kA + "\n");
  EXPECT_EQ(group.owner, container(kA, "docker"));
  EXPECT_EQ(group.path, "/system.slice:docker:" + kA);
}

TEST(ProcessGroup, OutsideOfACgroupNamespaceIsNamedAsSuch) {
  EXPECT_TRUE(parse_process_group("0::/../../../system.slice/ssh.service\n").hidden);
  EXPECT_FALSE(parse_process_group("0::/\n").hidden);
}

TEST(ProcessGroup, AChildOfASchedulerThatIsNoJobIsNoticed) {
  const std::string slurm = "0::/system.slice/slurmstepd.scope";
  for (const char* known : {"", "/system", "/job_7/step_0/user", "/s5K1KKYAYG5D00/step_0"}) {
    EXPECT_EQ(parse_process_group(slurm + known + "\n").unknown_job, "") << known;
  }
  for (const char* unknown : {"/j7", "/s5K1/step_0/user/task_0"}) {
    EXPECT_EQ("0::" + parse_process_group("4:cpuacct:/\n" + slurm + unknown + "\n").unknown_job,
              slurm + unknown);
  }
  for (const char* known : {"/slurm/uid_1001/job_9/step_0", "/lsf/cluster/job.17.1.1",
                            "/pbs_jobs.service/jobid/17.host", "/htcondor/condor_var_slot1@host",
                            "/system.slice/slurmstepd.scope/job_1/user/job_2"}) {
    EXPECT_EQ(parse_process_group("0::" + std::string(known) + "\n").unknown_job, "") << known;
  }
  for (const char* unknown :
       {"/slurm/uid_1001/weird_9", "/lsf/cluster/weird", "/torque/weird",
        "/pbs_jobs.service/jobid/weird", "/htcondor/weird", "/nomad.slice/share.slice/weird"}) {
    EXPECT_EQ(parse_process_group("0::" + std::string(unknown) + "\n").unknown_job, unknown);
  }
}

TEST(OwnerRules, AJobCannotNameAnother) {
  EXPECT_EQ(
      owner_of_cgroup_path("/system.slice/slurmstepd.scope/job_1/step_0/slurmstepd.scope/job_2")
          .job,
      "1");
}

TEST(ProcessGroup, GarbageHasNoOwner) {
  for (const char* text : {"", "\n\n", "0:", "0::", "::", "x", "0::\n5:cpuacct:"}) {
    const auto group = parse_process_group(text);
    EXPECT_EQ(group.owner, model::Owner{}) << text;
    EXPECT_EQ(group.path, "") << text;
  }
}

TEST(JobMapping, ReadsOneFileForEachGpu) {
  const TempTree tree{{"0", "4711\n"},
                      {"1.7", "4712\r\n4712\n\n  4713_2 \n"},
                      {"GPU-abc", "job@cluster\n"},
                      {"10", "4711"}};
  JobMapping mapping;
  ASSERT_TRUE(mapping.read(tree.root()));
  EXPECT_EQ(mapping.all(), (std::vector<GpuJobs>{{"0", {}, {"4711"}},
                                                 {"1", 7, {"4712", "4713_2"}},
                                                 {"10", {}, {"4711"}},
                                                 {"GPU-abc", {}, {"job@cluster"}}}));
  EXPECT_EQ(mapping.only_job(0, "GPU-x"), "4711");
  EXPECT_EQ(mapping.only_job(10, ""), "4711");
  EXPECT_EQ(mapping.only_job(3, "GPU-abc"), "job@cluster");  // the UUID decides
  EXPECT_EQ(mapping.only_job(1, ""), std::nullopt);          // two jobs share it
  EXPECT_EQ(mapping.only_job(2, ""), std::nullopt);
  EXPECT_EQ(mapping.only_job(std::nullopt, ""), std::nullopt);
}

TEST(JobMapping, OneJobOnSeveralInstancesOfAGpuIsItsOnlyJob) {
  const TempTree tree{{"0.1", "9\n"}, {"0.2", "9\n"}};
  JobMapping mapping;
  ASSERT_TRUE(mapping.read(tree.root()));
  EXPECT_EQ(mapping.only_job(0, ""), "9");
}

TEST(JobMapping, IgnoresWhatIsNoMapping) {
  const TempTree tree{{"README", "4711\n"}, {".0", "4711\n"},
                      {"0.x", "4711\n"},    {"-1", "4711\n"},
                      {"9999999", "1\n"},   {"1", ""},
                      {"2", "two words\n"}, {"3", "\x01\n"},
                      {"4/inside", "1\n"},  {"5", std::string(129, 'j')},
                      {"0.", "1\n"},        {"6", std::string(70000, '\n')}};
  JobMapping mapping;
  ASSERT_TRUE(mapping.read(tree.root()));
  EXPECT_EQ(mapping.all(), std::vector<GpuJobs>{});
  EXPECT_EQ(mapping.malformed(), "2");
  std::filesystem::remove(tree / "2");
  ASSERT_TRUE(mapping.read(tree.root()));
  EXPECT_EQ(mapping.malformed(), "3");
}

TEST(JobMapping, ForgetsAJobThatEnded) {
  const TempTree tree{{"0", "1\n"}};
  JobMapping mapping;
  ASSERT_TRUE(mapping.read(tree.root()));
  std::filesystem::remove(tree / "0");
  ASSERT_TRUE(mapping.read(tree.root()));
  EXPECT_TRUE(mapping.all().empty());
  EXPECT_EQ(mapping.only_job(0, ""), std::nullopt);
}

TEST(JobMapping, WithoutTheFolderItIsEmptyAndAnError) {
  const TempTree tree{{"0", "1\n"}};
  JobMapping mapping;
  ASSERT_TRUE(mapping.read(tree.root()));
  EXPECT_EQ(mapping.read(tree / "none").error().code, Errc::kNotFound);
  EXPECT_TRUE(mapping.all().empty());
}

const std::string kUid = "0d1d6d4e-4a2c-4d7e-9d3a-2f1b8f6f7c11";

TEST(KubeNames, ReadsTheKubeletsFolders) {
  const TempTree tree{
      {"pods/ml_trainer-0_" + kUid + "/train/0.log", ""},
      {"pods/kube-system_etcd-node1_3a0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d/etcd/0.log", ""},
      {"containers/trainer-0_ml_train-" + kA + ".log", ""},
      {"containers/my-pod.v2_ml_side-car-" + std::string(64, 'b') + ".log", ""}};
  KubeNameFolder folder(tree.root());
  ASSERT_TRUE(folder.read());
  const auto& names = folder.names();
  ASSERT_EQ(names.pods.size(), 2u);
  EXPECT_EQ(names.pods.at(kUid), (model::PodName{"ml", "trainer-0"}));
  EXPECT_EQ(names.pods.at("3a0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d").name_space, "kube-system");
  EXPECT_EQ(names.containers.at(kA), "train");
  EXPECT_EQ(names.containers.at(std::string(64, 'b')), "side-car");
}

TEST(KubeNames, IgnoresOtherNames) {
  const TempTree tree{{"pods/lost+found/x", ""},
                      {"pods/a_b/x", ""},
                      {"pods/a_b_c_d/x", ""},
                      {"pods/a_\"b\"_c/x", ""},
                      {"pods/__/x", ""},
                      {"containers/a_b_c-" + std::string(63, 'a') + ".log", ""},
                      {"containers/a_b_c" + kA + ".log", ""},
                      {"containers/a_b-" + kA + ".log", ""},
                      {"containers/.log", ""},
                      {"containers/A_b_c-" + kA + ".log", ""},
                      {"containers/a_b_c-" + kA + ".log.1", ""}};
  KubeNameFolder folder(tree.root());
  ASSERT_TRUE(folder.read());
  EXPECT_TRUE(folder.names().pods.empty());
  EXPECT_TRUE(folder.names().containers.empty());
}

TEST(KubeNames, FollowsChangesAndAMissingFolderIsAnError) {
  const TempTree tree{{"pods/ml_a_" + kUid + "/c/0.log", ""}};
  KubeNameFolder folder(tree.root());
  ASSERT_TRUE(folder.read());
  ASSERT_TRUE(folder.read());
  EXPECT_EQ(folder.names().pods.size(), 1u);
  tree.write("pods/ml_b_1/c/0.log", "");
  std::filesystem::last_write_time(
      tree.root() / "pods",
      std::filesystem::file_time_type::clock::now() + std::chrono::seconds{5});
  ASSERT_TRUE(folder.read());
  EXPECT_EQ(folder.names().pods.size(), 2u);
  std::filesystem::remove_all(tree.root() / "pods");
  EXPECT_FALSE(folder.read());
  EXPECT_TRUE(folder.names().pods.empty());
}

}  // namespace

}  // namespace jouleprof::spans
