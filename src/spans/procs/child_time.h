// How much of a parent's "children's CPU time" belongs to children that were never listed.
//
// When a process waits for a child, the kernel adds the child's own time and the child's children's
// time to the parent's (cutime, cstime). For a child that was listed while it lived, most of that
// has been counted already; for one that began and ended between two scans, none of it has.
#pragma once

#include "jouleprof/units.h"

namespace jouleprof::spans {

class ChildTime {
 public:
  // One scan. `children_total`: the parent's cutime + cstime, read *before* its children were.
  // `listed_gone`: the time already counted for those of its listed children (and what passed
  // through them) that have ended by this scan.
  //
  // A child may be reaped between the two reads, so its time may arrive one scan later; what has
  // not arrived by then never will (a parent that ignores SIGCHLD is not charged for its children).
  void update(Duration children_total, Duration listed_gone);

  // The time of children never listed, and what listed ones used after they were last read. Never
  // falls.
  Duration unseen() const { return unseen_; }

  // All that has been counted of this parent's children, here or under their own names: what the
  // parent passes on in addition to its own time when it is waited for in turn.
  Duration counted() const { return unseen_ + paid_ + owed_; }

 private:
  Duration unseen_{};
  Duration paid_{};  // counted under the children's own names, and arrived
  Duration owed_{};  // the same, not arrived yet
};

}  // namespace jouleprof::spans
