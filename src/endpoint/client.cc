#include "warpsmith/endpoint/client.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "transfer.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/random.h"

namespace warpsmith::endpoint {

namespace {

constexpr double kLook_s = 0.1;             // how often `stop` is asked
constexpr double kLongestRetryAfter = 600;  // seconds: what a server asks for beyond that is not believed
constexpr double kBytesAToken = 3;          // a guess, for the pace alone

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool is_passing(int status) {
  static const std::set<int> kPassing = {408, 409, 425, 429, 500, 502, 503, 504};
  return kPassing.contains(status);
}

// A request, or what is left of it.
struct Part {
  const Request* request = nullptr;
  int first = 0, samples = 1;
  int tries = 0;
};

struct Open {
  Part part;
  Tokens held;
  double paced = 0;  // tokens
  std::unique_ptr<Transfer> transfer;
};

struct CloseMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};

}  // namespace

struct Client::State {
  State(Server server, Limits given, Ledger& book)
      : way(server),
        limits(given),
        ledger(book),
        multi(curl_multi_init()),
        requests(limits.requests_a_minute),
        tokens(limits.tokens_a_minute) {
    if (!multi) throw Error("libcurl: no memory");
    curl_multi_setopt(multi.get(), CURLMOPT_MAX_TOTAL_CONNECTIONS,
                      static_cast<long>(std::max(1, limits.in_flight)));
  }

  Way way;
  Limits limits;
  Ledger& ledger;
  std::unique_ptr<CURLM, CloseMulti> multi;
  Pace requests, tokens;
  double pause_until_s = 0;           // the server asked for it
  std::deque<Part> waiting;           // not tried yet
  std::multimap<double, Part> later;  // to be tried again, by when
  std::map<CURL*, Open> open;
  bool over_budget = false;

  const Hears* hears = nullptr;

  ~State() { drop_open(); }

  // Their answers may have to be paid for all the same.
  void drop_open() {
    for (auto& [handle, one] : open) {
      curl_multi_remove_handle(multi.get(), handle);
      ledger.settle(one.held, one.held);
    }
    open.clear();
  }

  bool is_idle() const { return waiting.empty() && later.empty() && open.empty(); }

  // Sends what may be sent now. Returns when to look again, at the latest.
  double send(double now) {
    double until = now + kLook_s;
    while (open.size() < static_cast<std::size_t>(std::max(1, limits.in_flight))) {
      const bool is_due = !later.empty() && later.begin()->first <= now;
      if (!is_due && waiting.empty()) return later.empty() ? until : std::min(until, later.begin()->first);
      const Part part = is_due ? later.begin()->second : waiting.front();
      const Tokens most = most_of(*part.request, part.samples);
      const double paced =
          static_cast<double>(most.prompt) / kBytesAToken + static_cast<double>(most.completion);
      const double wait =
          std::max({pause_until_s - now, requests.wait_s(now, 1), tokens.wait_s(now, paced), 0.0});
      if (wait > 0) return std::min(until, now + wait);
      if (!ledger.hold(most)) {
        over_budget = open.empty();  // else answers may yet take less than is held back for them
        return until;
      }
      is_due ? (void)later.erase(later.begin()) : waiting.pop_front();
      start({part, most, paced, nullptr}, now);
    }
    return until;
  }

  void start(Open one, double now) {
    if (hears->sent) hears->sent(try_of(one));
    requests.take(now, 1);
    tokens.take(now, one.paced);
    const Json body = body_of(*one.part.request, way.server.model, one.part.first, one.part.samples);
    one.transfer = std::make_unique<Transfer>(way, way.base + std::string(path_of(*one.part.request)),
                                              body.dump(-1, ' ', false, Json::error_handler_t::replace));
    ++one.part.tries;
    CURL* handle = one.transfer->handle();
    if (const CURLMcode result = curl_multi_add_handle(multi.get(), handle); result != CURLM_OK) {
      ledger.release(one.held);
      throw Error(std::string("libcurl: ") + curl_multi_strerror(result));
    }
    open.emplace(handle, std::move(one));
  }

  static Try try_of(const Open& one) {
    return {*one.part.request, one.part.first, one.part.samples, one.held};
  }

  void step(double until) {
    int running = 0, left = 0;
    curl_multi_perform(multi.get(), &running);
    while (const CURLMsg* message = curl_multi_info_read(multi.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      CURL* const handle = message->easy_handle;
      const CURLcode result = message->data.result;
      auto node = open.extract(handle);
      curl_multi_remove_handle(multi.get(), handle);
      if (!node.empty()) finish(std::move(node.mapped()), result);
    }
    const double wait = until - now_s();
    if (wait > 0 && !is_idle())
      curl_multi_poll(multi.get(), nullptr, 0, static_cast<int>(std::ceil(wait * 1000)), nullptr);
  }

  void finish(Open one, CURLcode result) {
    const int status = one.transfer->status(result);
    if (status == 200) {
      std::optional<Answer> answer;
      std::string unreadable;
      try {
        answer = answer_from(one.transfer->answer(), one.held);
      } catch (const Error& e) {
        unreadable = way.without_key(e.what());
      }
      if (answer) return take(one, std::move(*answer));  // what its taker throws is no fault of the answer
      lose(one, one.held);  // it came and may have to be paid for, though nobody can read it
      return again(one.part, 200, unreadable, 0);
    }
    // What a server works on when its answer is cut short, or takes too long, may have to be paid for.
    const bool is_lost = status == 0 && one.transfer->was_sent();
    lose(one, is_lost ? one.held : Tokens());
    const std::string why =
        status == 0 ? one.transfer->problem(result) : way.without_key(error_text(one.transfer->answer()));
    if (status == 0 || is_passing(status)) {
      const double wished = std::min(one.transfer->retry_after_s(), kLongestRetryAfter);
      const bool is_much = status == 429 || status == 503;
      if (wished > 0 || is_much)
        pause_until_s = std::max(pause_until_s, now_s() + (wished > 0 ? wished : way.server.first_wait_s));
      return again(one.part, status, why, wished);
    }
    const std::string said =
        way.base + " answers with status " + std::to_string(status) + (why.empty() ? "" : ": " + why);
    const bool is_moved = status >= 300 && status < 400;  // the key is not sent to where somebody else says
    if (is_moved || status == 401 || status == 403 || status == 404 || status == 405)
      throw Error(said, kExitUsage);
    hears->refused({one.part.request->id, status, why, one.part.tries});
  }

  void lose(const Open& one, const Tokens& cost) {
    ledger.settle(one.held, cost);
    if (hears->failed) hears->failed(try_of(one), cost);
  }

  void take(const Open& one, Answer answer) {
    answer.id = one.part.request->id;
    answer.first = one.part.first;
    answer.tries = one.part.tries;
    answer.seconds = one.transfer->seconds();
    if (answer.choices.size() > static_cast<std::size_t>(one.part.samples))
      answer.choices.resize(static_cast<std::size_t>(one.part.samples));
    ledger.settle(one.held, answer.used);
    tokens.correct(static_cast<double>(answer.used.all()) - one.paced);
    const int got = static_cast<int>(answer.choices.size());
    if (got < one.part.samples)
      waiting.push_front({one.part.request, one.part.first + got, one.part.samples - got, 0});
    hears->taken(answer);
  }

  // Twice as long each time, by chance a little more or less: many clients do not come back at one time.
  void again(const Part& part, int status, const std::string& why, double wished_s) {
    if (part.tries >= std::max(1, way.server.tries)) {
      hears->refused({part.request->id, status == 200 ? 0 : status, why, part.tries, true});
      return;
    }
    const double doubled = way.server.first_wait_s * std::pow(2.0, part.tries - 1);
    Random random(random_key({name_key(part.request->id), static_cast<std::uint64_t>(part.tries)}));
    const double wait = std::min(doubled, way.server.longest_wait_s) * (0.75 + 0.5 * random.uniform());
    later.emplace(now_s() + std::max(wait, wished_s), part);
  }
};

Client::Client(Server server, Limits limits, Ledger& ledger)
    : state_(std::make_unique<State>(std::move(server), limits, ledger)) {}
Client::~Client() = default;

Ended Client::run(std::span<const Request> requests, const Hears& hears) {
  State& s = *state_;
  s.drop_open();  // where an earlier call threw
  s.hears = &hears;
  s.over_budget = false;
  s.waiting.clear();
  s.later.clear();
  for (const Request& request : requests)
    if (request.samples > 0) s.waiting.push_back({&request, 0, request.samples, 0});
  while (!s.is_idle()) {
    if (hears.stop && hears.stop()) {
      s.drop_open();
      return Ended::kStopped;
    }
    const double until = s.send(now_s());
    if (s.over_budget) return Ended::kOverBudget;
    s.step(until);
  }
  return Ended::kDone;
}

std::optional<std::string> Client::get(const std::string& path) { return ask(path, ""); }
std::optional<std::string> Client::post(const std::string& path, const Json& body) {
  return ask(path, body.dump());
}

std::optional<std::string> Client::ask(const std::string& path, std::string body) {
  const Way& way = state_->way;
  const std::string url = path.starts_with("//") ? way.root + path.substr(1) : way.base + path;
  const Transfer transfer(way, url, std::move(body));
  const CURLcode result = curl_easy_perform(transfer.handle());
  const int status = transfer.status(result);
  if (status == 200) return transfer.answer();
  if (status == 404 || status == 405 || status == 501) return std::nullopt;
  if (status == 0) throw Error(url + ": " + transfer.problem(result));
  const std::string why = way.without_key(error_text(transfer.answer()));
  throw Error(url + " answers with status " + std::to_string(status) + (why.empty() ? "" : ": " + why),
              status == 401 || status == 403 ? kExitUsage : kExitEnvironment);
}

}  // namespace warpsmith::endpoint
