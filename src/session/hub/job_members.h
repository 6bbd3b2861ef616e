// Other `jouleprof run` of a job that take part in the recording of a hub.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "meters/shared/hub_protocol.h"

namespace jouleprof::session {

// Another `jouleprof run` of the job: it and its descendants are measured.
struct JobMember {
  pid_t pid = 0;
  std::vector<model::DomainId> visible;  // to its command
};

// Thread safety: the first group may be called from any thread, the second from the one of the hub.
class JobMembers {
 public:
  using ClientId = std::uint64_t;

  // Lets members in from now on, those that wait as well.
  void admit(meters::Joined answer);
  // The members that were let in since the last time.
  std::vector<JobMember> take();
  // Whether members want to leave that were not seen before. They wait until they are released.
  bool see_leaving();
  void release_leaving();  // those that were seen
  // Lets no more programs in, unless there are members: then false, and nothing changes.
  bool end_admission();

  // False: the message is invalid.
  bool ask(ClientId client, pid_t pid, meters::Join&& join);
  bool leave(ClientId client);
  // Whether the client was one that asked or a member.
  bool remove(ClientId client);
  // What clients are to be answered now; `end`: their connections end then.
  struct Answer {
    ClientId client = 0;
    std::optional<meters::HubMessage> message;
    bool end = false;
  };
  std::vector<Answer> take_answers();

 private:
  struct Client {
    JobMember member;
    enum { kAsking, kMember, kLeaving, kSeen, kReleased } state = kAsking;
  };

  mutable std::mutex mutex_;  // guards what follows
  std::map<ClientId, Client> clients_;
  std::optional<meters::Joined> admitted_;
  std::vector<JobMember> admitted_members_;  // not yet taken
  bool closed_ = false;
};

}  // namespace jouleprof::session
