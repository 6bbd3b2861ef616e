#include "session/sweep/output_tap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

namespace jouleprof::session {
namespace {

TEST(PrintedLoss, IsThatOfTheTraining) {
  for (const auto& [line, loss] : {
           std::pair<std::string, double>{"epoch 3 loss: 0.41", 0.41},
           {"Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.300039", 2.300039},
           {"{'loss': 1.25, 'grad_norm': 0.3}", 1.25},
           {"step 0: train loss 4.2, val loss 4.3", 4.2},
           {"loss=3e-4.", 3e-4},
           {"loss: tensor(0.75, device='cuda:0')", 0.75},
           {"train_loss=7", 7},
       }) {
    ASSERT_TRUE(loss_in(line)) << line;
    EXPECT_DOUBLE_EQ(*loss_in(line), loss) << line;
  }
  EXPECT_TRUE(std::isnan(loss_in("loss: nan").value_or(0)));
}

TEST(PrintedLoss, IsNoneOfOtherDataAndNoOtherNumber) {
  for (const char* line : {"Test set: Average loss: 0.0269", "val_loss: 0.3", "eval loss 0.3",
                           "{'eval_loss': 0.3}", "validation: loss 0.3", "gloss 3",
                           "loss of 3 packets", "loss 12%", "losses: 3", "kl_loss 3", ""}) {
    EXPECT_FALSE(loss_in(line)) << line;
  }
}

}  // namespace
}  // namespace jouleprof::session
