// A client of servers that speak OpenAI's protocol (vLLM, SGLang, llama.cpp, transformers serve, cloud
// services): many requests at once, by one thread.
//
//   Ledger ledger({.tokens = 1'000'000}, {});
//   Client client({.url = "http://localhost:8000/v1", .model = "coder"}, {.in_flight = 32}, ledger);
//   client.run(requests, {.taken = [&](const Answer& answer) { … }, .refused = [&](const Refused& refused) {
//   … }});
//
// What is tried again, later and later: no connection, a connection that ends early, no answer in time, an
// answer that is no JSON or has no choices, and the statuses 408, 409, 425, 429, 500, 502, 503 and 504.
// `Retry-After` is waited for, by all requests. A server that gives fewer choices than were asked for is
// asked for the rest.
//
// The key is read from the environment variable that `key_variable` names. It is in no message, no record and
// no file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "warpsmith/endpoint/ledger.h"
#include "warpsmith/endpoint/messages.h"

namespace warpsmith::endpoint {

struct Server {
  std::string url;           // of its API: "http://localhost:8000/v1"
  std::string model;         // as the server calls it
  std::string key_variable;  // environment variable that holds the key; empty: it wants none
  std::string ca_file;       // PEM file of the certificates that are trusted; empty: the system's
  std::string proxy;         // empty: as http_proxy, https_proxy and no_proxy say
  double connect_s = 30, answer_s = 600;         // the longest to wait for a connection, and for an answer
  int tries = 8;                                 // of a request
  double first_wait_s = 1, longest_wait_s = 60;  // between two tries: each time twice as long
};

struct Limits {
  int in_flight = 16;
  double requests_a_minute = 0, tokens_a_minute = 0;  // 0: no limit
};

// It is not asked again.
struct Refused {
  std::string id;
  int status = 0;      // 0: the server never answered
  std::string reason;  // the server's own words, or what went wrong in the last try
  int tries = 1;
  bool may_pass = false;  // the server is down or too busy: another time it may answer
};

enum class Ended {
  kDone,        // every request has its answer or was refused
  kStopped,     // asked to stop; what was in flight is dropped
  kOverBudget,  // the next request might pass the budget; what was in flight was waited for
};

// One try of a request, or of what is left of it.
struct Try {
  const Request& request;
  int first = 0, samples = 1;  // which of its samples
  Tokens most;                 // that it may cost
};

// What run() tells of. `taken` and `refused` are wanted.
struct Hears {
  std::function<void(const Answer&)>
      taken;  // as soon as it is there; a request with several samples may get several
  std::function<void(const Refused&)> refused;
  std::function<bool()> stop = {};            // asked some times a second
  std::function<void(const Try&)> sent = {};  // before it is sent
  // It ended without an answer that can be read, and `cost` so much at most.
  std::function<void(const Try&, const Tokens& cost)> failed = {};
};

class Client {
 public:
  // Throws Error (kExitUsage) where the URL is none of http or https, and where the key's variable is not
  // set.
  Client(Server server, Limits limits, Ledger& ledger);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Throws Error where the server would refuse every request: the key (401, 403; kExitUsage), the address or
  // the model (404, 405; kExitUsage).
  Ended run(std::span<const Request> requests, const Hears& hears);

  // GET of `path` below the server's URL, or below its root where `path` begins with two slashes
  // ("//health"). The body of status 200; nothing where the server has no such thing (404, 405, 501). Throws
  // Error for all else.
  std::optional<std::string> get(const std::string& path);
  // The same by POST.
  std::optional<std::string> post(const std::string& path, const Json& body);

 private:
  std::optional<std::string> ask(const std::string& path, std::string body);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace warpsmith::endpoint
