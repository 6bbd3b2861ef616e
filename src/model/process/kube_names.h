// What Kubernetes calls the pods and containers of a machine.
#pragma once

#include <map>
#include <string>

namespace jouleprof::model {

struct PodName {
  std::string name_space;
  std::string name;

  bool operator==(const PodName&) const = default;
};

struct KubeNames {
  std::map<std::string, PodName> pods;            // by the uid of the pod, with dashes
  std::map<std::string, std::string> containers;  // their names, by container id
};

}  // namespace jouleprof::model
