// A server on this machine that answers as a test says: well, late, by half, or not at all.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "warpsmith/base/json.h"

namespace warpsmith::endpoint {

struct Got {
  std::string method, path, head;  // head: all lines before the body
  Json body;                       // null where there is none
};

struct Reply {
  int status = 200;
  std::string body;
  std::vector<std::string> headers = {};
  double wait_s = 0;           // before it is sent
  std::size_t cut_after = -1;  // bytes of the body, behind which the connection ends
  bool hang_up = false;        // no answer at all
};

// {"choices": [...]} with these texts, and how many tokens were counted.
Reply chat_reply(const std::vector<std::string>& texts, int prompt_tokens = 10, int completion_tokens = 5);

class FaultServer {
 public:
  using Answer = std::function<Reply(const Got&)>;  // by many threads at once
  explicit FaultServer(Answer answer);
  ~FaultServer();
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/v1"; }
  std::vector<Got> got() const;
  int most_at_once() const { return most_at_once_; }

 private:
  void listen();
  void serve(int fd);
  Answer answer_;
  int socket_ = -1, port_ = 0;
  std::atomic<bool> ends_ = false;
  std::atomic<int> at_once_ = 0, most_at_once_ = 0;
  mutable std::mutex mutex_;
  std::vector<Got> got_;
  std::vector<std::thread> threads_;
  std::thread listener_;
};

}  // namespace warpsmith::endpoint
