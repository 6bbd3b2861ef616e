#include "session/hub/job_members.h"

#include <algorithm>

namespace jouleprof::session {

void JobMembers::admit(meters::Joined answer) {
  const std::lock_guard lock(mutex_);
  admitted_ = std::move(answer);
}

std::vector<JobMember> JobMembers::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(admitted_members_, {});
}

bool JobMembers::see_leaving() {
  const std::lock_guard lock(mutex_);
  bool any = false;
  for (auto& [id, client] : clients_) {
    if (client.state != Client::kLeaving) continue;
    client.state = Client::kSeen;
    any = true;
  }
  return any;
}

void JobMembers::release_leaving() {
  const std::lock_guard lock(mutex_);
  for (auto& [id, client] : clients_) {
    if (client.state == Client::kSeen) client.state = Client::kReleased;
  }
}

bool JobMembers::end_admission() {
  const std::lock_guard lock(mutex_);
  const bool has_members = std::ranges::any_of(
      clients_, [](const auto& c) { return c.second.state != Client::kAsking; });
  if (!has_members) closed_ = true;
  return !has_members;
}

bool JobMembers::ask(ClientId client, pid_t pid, meters::Join&& join) {
  const std::lock_guard lock(mutex_);
  return clients_.try_emplace(client, Client{{pid, std::move(join.visible)}}).second;
}

bool JobMembers::leave(ClientId client) {
  const std::lock_guard lock(mutex_);
  const auto at = clients_.find(client);
  if (at == clients_.end() || at->second.state != Client::kMember) return false;
  at->second.state = Client::kLeaving;
  return true;
}

bool JobMembers::remove(ClientId client) {
  const std::lock_guard lock(mutex_);
  return clients_.erase(client) > 0;
}

std::vector<JobMembers::Answer> JobMembers::take_answers() {
  const std::lock_guard lock(mutex_);
  std::vector<Answer> answers;
  for (auto& [id, client] : clients_) {
    if (client.state == Client::kReleased) answers.push_back({id, {}, true});
    if (client.state != Client::kAsking) continue;
    if (closed_) {
      answers.push_back(
          {id,
           meters::Refused{meters::kHubProtocol, "the recorder of the job takes no more processes"},
           true});
    } else if (admitted_) {
      client.state = Client::kMember;
      admitted_members_.push_back(client.member);
      answers.push_back({id, *admitted_, false});
    }
  }
  return answers;
}

}  // namespace jouleprof::session
