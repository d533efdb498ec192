// What Slurm's error codes mean for us. By number: newer versions rename and drop some, but keep the numbers
// of slurm/slurm_errno.h; those that we act on differently are compared with it in libslurm.cc.
#include <algorithm>
#include <array>
#include <cerrno>

#include "warpsmith/executor/cluster.h"

namespace warpsmith::executor {

namespace {

struct Row {
  int code;
  SlurmTrouble trouble;
};

constexpr std::array kTroubles = std::to_array<Row>({
    // ---- the request arrived, and was refused for now ----
    {EAGAIN, SlurmTrouble::kLimit},  // MaxJobCount
    {2007, SlurmTrouble::kLimit},    // cannot create a job record, try again; MaxJobCount from 23.11
    {2050, SlurmTrouble::kPolicy},   // a limit of the account or QOS, for one job or for how many
    {2074, SlurmTrouble::kPolicy},   // usage threshold of the QOS
    {2081, SlurmTrouble::kArray},    // over max_array_tasks or MaxArraySize
    {2013, SlurmTrouble::kClosed},   // not top priority
    {2015, SlurmTrouble::kClosed},   // partition configuration not available now
    {2016, SlurmTrouble::kClosed},   // nodes busy
    {2019, SlurmTrouble::kClosed},   // slurmctld cannot write the script: its disk is full
    {2020, SlurmTrouble::kClosed},   // try again later
    {2022, SlurmTrouble::kClosed},   // interconnect
    {2024, SlurmTrouble::kClosed},   // pending
    {2035, SlurmTrouble::kClosed},   // too fragmented now
    {2040, SlurmTrouble::kClosed},   // licenses not available now (newer versions)
    {2055, SlurmTrouble::kClosed},   // reservation in use
    {2056, SlurmTrouble::kClosed},   // reservation not usable now
    {2059, SlurmTrouble::kClosed},   // ports in use
    {2061, SlurmTrouble::kClosed},   // prolog running
    {2068, SlurmTrouble::kClosed},   // node down, drained or reserved
    {2070, SlurmTrouble::kClosed},   // partition INACTIVE or DRAIN
    {2078, SlurmTrouble::kClosed},   // cannot start immediately
    {2079, SlurmTrouble::kClosed},   // switch resources not available now
    {2093, SlurmTrouble::kClosed},   // burst buffer limit
    {2100, SlurmTrouble::kClosed},   // waits for a burst buffer
    {2101, SlurmTrouble::kClosed},   // partition DOWN
    {2103, SlurmTrouble::kClosed},   // database index is being set
    {2105, SlurmTrouble::kClosed},   // all submissions are disabled
    {2118, SlurmTrouble::kClosed},   // maintenance reservation
    {2120, SlurmTrouble::kClosed},   // reboot in progress
    {2125, SlurmTrouble::kClosed},   // scheduling deferred
    {7105, SlurmTrouble::kClosed},   // federation lock
    // ---- nobody took the request ----
    {1001, SlurmTrouble::kAway},  // connection
    {1007, SlurmTrouble::kAway},  // munge is down
    {1013, SlurmTrouble::kAway},  // socket is missing
    {1019, SlurmTrouble::kAway},  // rejected
    {1021, SlurmTrouble::kAway},  // connection timed out
    {1800, SlurmTrouble::kAway},  // connection to slurmctld
    {1804, SlurmTrouble::kAway},  // too many requests, back off
    {1805, SlurmTrouble::kAway},  // too many requests, dropped
    {2027, SlurmTrouble::kAway},  // backup slurmctld in standby
    {2131, SlurmTrouble::kAway},  // likewise
    {6000, SlurmTrouble::kAway},  // credential invalid: clocks apart, munge restarted
    {6001, SlurmTrouble::kAway},  // … expired
    {6002, SlurmTrouble::kAway},  // … network
    {6003, SlurmTrouble::kAway},  // … cannot be signed
    {7000, SlurmTrouble::kAway},  // slurmdbd
    {7008, SlurmTrouble::kAway},  // slurmdbd, connection no longer valid
    {ECONNREFUSED, SlurmTrouble::kAway},
    {EHOSTUNREACH, SlurmTrouble::kAway},
    {ENETUNREACH, SlurmTrouble::kAway},
    {ENETDOWN, SlurmTrouble::kAway},
    // ---- no answer, but the request may have been carried out ----
    {0, SlurmTrouble::kUnsure},
    {1000, SlurmTrouble::kUnsure},  // unexpected message
    {1002, SlurmTrouble::kUnsure},  // send, receive, shutdown
    {1003, SlurmTrouble::kUnsure},
    {1004, SlurmTrouble::kUnsure},
    {1022, SlurmTrouble::kUnsure},  // write and read timed out
    {1023, SlurmTrouble::kUnsure},
    {1801, SlurmTrouble::kUnsure},  // the same with slurmctld
    {1802, SlurmTrouble::kUnsure},
    {1803, SlurmTrouble::kUnsure},
    {5000, SlurmTrouble::kUnsure},  // half a message
    {5001, SlurmTrouble::kUnsure},
    {5002, SlurmTrouble::kUnsure},
    {5003, SlurmTrouble::kUnsure},
    {5004, SlurmTrouble::kUnsure},  // timed out
    {5005, SlurmTrouble::kUnsure},
    {ETIMEDOUT, SlurmTrouble::kUnsure},
    {ECONNRESET, SlurmTrouble::kUnsure},
    {ECONNABORTED, SlurmTrouble::kUnsure},
    {ENOTCONN, SlurmTrouble::kUnsure},
    {EPIPE, SlurmTrouble::kUnsure},
    // ---- about a job that is not there ----
    {2017, SlurmTrouble::kGone},  // unknown
    {2021, SlurmTrouble::kGone},  // already done
    {2084, SlurmTrouble::kGone},  // has finished
});

}  // namespace

SlurmTrouble trouble_of(int code) {
  const auto row =
      std::find_if(kTroubles.begin(), kTroubles.end(), [&](const Row& r) { return r.code == code; });
  return row == kTroubles.end() ? SlurmTrouble::kRefused : row->trouble;
}

bool limit_may_clear(Cluster& cluster, const SlurmJob& job) {
  SlurmJob least = job;
  least.array.clear();
  least.gpus.clear();
  least.cpus = least.minutes = 1;
  least.memory_mib = 1;
  const auto is_refused = [&] {
    try {
      (void)cluster.expected_start(least);
      return false;
    } catch (const SlurmError&) {
      return true;
    }
  };
  try {
    if (!is_refused()) return false;
    // The last rival may have ended after the first trial: then the second is taken.
    return cluster.rivals(job) > 0 || !is_refused();
  } catch (const SlurmError&) {
    return true;
  }
}

}  // namespace warpsmith::executor
