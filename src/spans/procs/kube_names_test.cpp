#include <gtest/gtest.h>

#include "spans/procs/scheduler_names.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::spans {
namespace {

const std::string kId(64, 'a');
const std::string kUid = "0d1d6d4e-4a2c-4d7e-9d3a-2f1b8f6f7c11";

TEST(KubeNames, ReadsTheKubeletsFolders) {
  const TempTree tree{
      {"pods/ml_trainer-0_" + kUid + "/train/0.log", ""},
      {"pods/kube-system_etcd-node1_3a0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d/etcd/0.log", ""},
      {"containers/trainer-0_ml_train-" + kId + ".log", ""},
      {"containers/my-pod.v2_ml_side-car-" + std::string(64, 'b') + ".log", ""}};
  KubeNameFolder folder(tree.root());
  ASSERT_TRUE(folder.read());
  const auto& names = folder.names();
  ASSERT_EQ(names.pods.size(), 2u);
  EXPECT_EQ(names.pods.at(kUid), (model::PodName{"ml", "trainer-0"}));
  EXPECT_EQ(names.pods.at("3a0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d").name_space, "kube-system");
  EXPECT_EQ(names.containers.at(kId), "train");
  EXPECT_EQ(names.containers.at(std::string(64, 'b')), "side-car");
}

TEST(KubeNames, IgnoresOtherNames) {
  const TempTree tree{{"pods/lost+found/x", ""},
                      {"pods/a_b/x", ""},
                      {"pods/a_b_c_d/x", ""},
                      {"pods/a_\"b\"_c/x", ""},
                      {"pods/__/x", ""},
                      {"containers/a_b_c-" + std::string(63, 'a') + ".log", ""},
                      {"containers/a_b_c" + kId + ".log", ""},
                      {"containers/a_b-" + kId + ".log", ""},
                      {"containers/.log", ""},
                      {"containers/A_b_c-" + kId + ".log", ""},
                      {"containers/a_b_c-" + kId + ".log.1", ""}};
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
