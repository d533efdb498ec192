#include "server_samples.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/random.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/endpoint/client.h"
#include "warpsmith/endpoint/weights.h"
#include "warpsmith/tokenizer/pretrained.h"

namespace warpsmith {

namespace {

using endpoint::Answer;
using endpoint::Choice;
using endpoint::Request;
using endpoint::Tokens;

Json to_json(const Tokens& tokens) { return {tokens.prompt, tokens.completion}; }

Tokens tokens_from(const Json& json) {
  return {json.at(0).get<std::uint64_t>(), json.at(1).get<std::uint64_t>()};
}

Json to_json(const Choice& choice) {
  Json json = {{"text", choice.text}, {"finish", choice.finish}};
  if (!choice.log_probabilities.empty()) json["log_probabilities"] = choice.log_probabilities;
  return json;
}

Choice choice_from(const Json& json) {
  return {json.at("text").get<std::string>(), json.value("finish", ""),
          json.value("log_probabilities", std::vector<double>())};
}

// An item and what came of it so far.
struct Asked {
  const Item* item = nullptr;
  Request request;
  std::vector<std::optional<Choice>> choices;  // by number of the sample
  std::vector<std::uint64_t> tokens;           // of those that the server counted for one; 0: it did not
  std::vector<std::string> shorter;            // prompts with one exemplar less each
  std::size_t left_out = 0;                    // exemplars
  Tokens spent, lost;                          // lost: part of it, without an answer
  std::uint64_t prompt_tokens = 0;
  double seconds = 0;
  std::string model;
  bool is_whole() const {
    return std::all_of(choices.begin(), choices.end(), [](const auto& one) { return one.has_value(); });
  }
};

// A server that the run has started writes where it is as soon as it answers, and it may be started again:
// its file, as soon as it has these weights (empty: any). `wish`: called again and again until then.
Json look_at_service(const fs::path& file, const std::string& weights, double wait_s,
                     const std::function<void()>& wish) {
  ::setenv("no_proxy", "*", 1);  // a proxy leads out of the cluster
  for (int waited = 0; waited < 10 * wait_s; ++waited) {
    try {
      wish();
      if (path_exists(file))
        if (Json json = read_json_file(file); weights.empty() || json.value("weights", "") == weights)
          return json;
    } catch (const Error&) {  // it went between the two
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  throw Error(file.string() + (weights.empty() ? " is not there" : " does not name the weights " + weights) +
                  ": the service does not answer",
              kExitFailed);
}

class ServerSamples {
 public:
  explicit ServerSamples(ShardSession& shard)
      : shard_(shard),
        settings_(json_at<Json>(shard.job().params, "endpoint", "params")),
        ledger_(budget(), prices()) {
    for (const Item& item : shard.items())
      if (!shard.earlier_records().contains(item.id)) asked_.emplace(item.id, ask(item));
    read_earlier();
  }

  // Where the answers are advice, nothing that goes wrong with them is a failure: an item says why it has
  // none.
  void run() {
    if (!shard_.job().params.value("advice", false)) return ask_open();
    try {
      ask_open();
    } catch (const Error& e) {
      if (stopped_) throw;  // its service is started again, and the questions are asked then
      log_warning(e.what());
      for (const auto& [id, one] : asked_)
        if (!written_.contains(id)) write(one, e.what());
    }
  }

 private:
  void ask_open() {
    std::vector<Request> open;
    for (auto& [id, one] : asked_) {
      if (one.is_whole()) {
        write(one);
        continue;
      }
      add_open_parts(one, open);
    }
    if (open.empty()) return;
    client_.emplace(server_with_weights(), limits(), ledger_);
    endpoint::Ended ended = endpoint::Ended::kDone;
    for (; !open.empty() && ended == endpoint::Ended::kDone; open = std::exchange(again_, {}))
      ended = ask_all(*client_, open);
    const std::uint64_t before = settings_.value("spent_before", std::uint64_t{0});  // in earlier rounds
    const std::string spent = std::to_string(before + ledger_.spent().all()) + " tokens of the server";
    log_info(spent + (before > 0 ? ", " + std::to_string(before) + " of them in earlier rounds" : "") + ", " +
             std::to_string(ledger_.lost().all()) + " of them lost" +
             (ledger_.money() > 0 ? ", " + std::to_string(ledger_.money()) + " in money" : ""));
    if (ended == endpoint::Ended::kOverBudget)
      throw Error(
          "the budget of the server would be passed: " + spent + " are spent; with a larger one it goes on",
          kExitUsage);
    stopped_ = ended == endpoint::Ended::kStopped;
    if (stopped_)
      throw Error("the service that is asked has ended; it goes on with the next one", kExitFailed);
    if (unanswered_ > 0)
      throw Error(std::to_string(unanswered_) + " requests have no answer, and none is counted as refused: " +
                      why_ + "; it goes on when the server does",
                  kExitFailed);
  }

  endpoint::Ended ask_all(endpoint::Client& client, const std::vector<Request>& open) {
    return client.run(open, {.taken = [this](const Answer& answer) { take(answer); },
                             .refused = [this](const endpoint::Refused& refused) { refuse(refused); },
                             .stop = [this] { return service_is_gone(); },
                             .sent =
                                 [this](const endpoint::Try& one) {
                                   note("asked", one, {{"most", to_json(one.most)}});
                                 },
                             .failed =
                                 [this](const endpoint::Try& one, const Tokens& cost) {
                                   Asked& asked = asked_of(one.request.id);
                                   asked.spent += cost;
                                   asked.lost += cost;
                                   note("failed", one, {{"cost", to_json(cost)}});
                                 }});
  }

  // Its file goes with it. Then there is no use in trying its address again.
  bool service_is_gone() const { return settings_.contains("service_file") && !path_exists(service_file()); }
  fs::path service_file() const {
    return shard_.run_folder() / settings_.at("service_file").get<std::string>();
  }

  // The client's requests are of parts: "item/first", so that an answer finds its place.
  static std::string part_id(const std::string& item, int first) {
    return item + "/" + std::to_string(first);
  }
  static std::string item_of(const std::string& part) { return part.substr(0, part.rfind('/')); }
  Asked& asked_of(const std::string& part) { return asked_.at(item_of(part)); }
  // Of an extra record; null where its item has its record.
  Asked* open_item(const Json& extra) {
    const auto found = asked_.find(extra.at("item").get<std::string>());
    return found == asked_.end() ? nullptr : &found->second;
  }
  static int first_of(const std::string& part) { return std::stoi(part.substr(part.rfind('/') + 1)); }

  Json part(const char* key) const { return settings_.value(key, Json::object()); }
  endpoint::Budget budget() const {
    return {part("budget").value("tokens", std::uint64_t{0}), part("budget").value("money", 0.0)};
  }
  endpoint::Prices prices() const {
    return {part("prices").value("prompt", 0.0), part("prices").value("completion", 0.0)};
  }
  endpoint::Limits limits() const {
    return {settings_.value("in_flight", 16), settings_.value("requests_a_minute", 0.0),
            settings_.value("tokens_a_minute", 0.0)};
  }
  endpoint::Server server() const {
    constexpr double kWaitS = 300;
    endpoint::Server server;
    server.model = json_at<std::string>(settings_, "model", "endpoint");
    if (settings_.contains("service_file")) {
      const double ready_s = settings_.value("ready_s", 0.0);  // it may have to start once more
      const Json service =
          look_at_service(service_file(), is_restarted() ? weights_->version : "",
                          kWaitS + (is_restarted() ? ready_s : 0), [this] { wish_for_weights(); });
      server.url = json_at<std::string>(service, "url", service_file().string());
      if (server.model == "{model}") server.model = service.value("model", server.model);
    } else {
      server.url = json_at<std::string>(settings_, "url", "endpoint");
    }
    server.key_variable = settings_.value("key_variable", "");
    server.ca_file = settings_.value("ca_file", "");
    server.proxy = settings_.value("proxy", "");
    server.answer_s = settings_.value("answer_s", server.answer_s);
    server.tries = settings_.value("tries", server.tries);
    server.first_wait_s = settings_.value("first_wait_s", server.first_wait_s);
    return server;
  }

  // What the service looks for; where it begins anew, the file is removed.
  void wish_for_weights() const {
    if (!is_restarted()) return;
    const fs::path file = service_file().parent_path() / "weights.json";
    const Json wish = {
        {"folder",
         weights_->folder.lexically_relative(fs::absolute(shard_.run_folder()).lexically_normal()).string()},
        {"version", weights_->version}};
    if (!path_exists(file) || read_json_file(file) != wish) write_file_atomic(file, wish.dump());
  }

  void confirm_service() const {
    if (service_is_gone()) return;  // it answered, and ended then
    const std::string has = read_json_file(service_file()).value("weights", "");
    if (has != weights_->version)
      throw Error("the service has the weights `" + has + "`, not `" + weights_->version + "`", kExitFailed);
  }

  // The model that is trained has the context of its own, whatever the server's is: exemplars that do not fit
  // are left out before anybody is asked. What stands around a prompt in a chat takes some tokens, too.
  void fit_prompts() {
    constexpr std::int64_t kFrame = 64;
    const std::int64_t context = settings_.at("weights").value("context", std::int64_t{0});
    if (context <= 0) return;
    const auto tokens = tokenizer::Pretrained::load(weights_->folder / "tokenizer.json");
    for (auto& [id, one] : asked_) {
      const auto fits = [&, &asked = one] {
        const std::string& text =
            asked.request.messages.empty() ? asked.request.prompt : asked.request.messages.front().text;
        return static_cast<std::int64_t>(tokens.encode(text).size()) + kFrame + asked.request.max_tokens <=
               context;
      };
      while (one.left_out < one.shorter.size() && !fits()) set_prompt(one, one.left_out + 1);
    }
  }

  bool is_restarted() const { return weights_ && weights_->way == "restart"; }

  // The server, once it has the weights that it is to have.
  endpoint::Server server_with_weights() {
    if (!settings_.contains("weights")) return server();
    const Json& wanted = settings_.at("weights");
    const auto stage = json_at<std::string>(shard_.job().params, "stage_folder", "params");
    weights_ = {
        json_at<std::string>(wanted, "way", "weights"),
        fs::absolute(shard_.run_folder() / stage / "model").lexically_normal(),
        json_at<std::string>(wanted, "version", "weights"),
        sha256_hex(fs::absolute(shard_.run_folder() / stage).lexically_normal().string()).substr(0, 6)};
    fit_prompts();
    endpoint::Server where = server();
    if (is_restarted()) return where;
    endpoint::Ledger free({}, {});
    endpoint::Client client(where, {}, free);
    where.model = endpoint::give_weights(client, *weights_, where.model);
    log_info("the server has the weights " + weights_->version);
    return where;
  }

  Asked ask(const Item& item) const {
    const Json& params = shard_.job().params;
    Asked one{.item = &item};
    one.choices.resize(json_at<std::size_t>(item.value, "n", "item " + item.id));
    one.tokens.resize(one.choices.size());
    one.shorter = item.value.value("shorter", one.shorter);
    if (!item.value.contains("messages")) set_prompt(one, 0);
    for (const Json& message : item.value.value("messages", Json::array()))
      one.request.messages.push_back(
          {json_at<std::string>(message, "role", "message of item " + item.id),
           json_at<std::string>(message, "content", "message of item " + item.id)});
    one.request.max_tokens = params.value("max_tokens", one.request.max_tokens);
    one.request.temperature = params.value("temperature", one.request.temperature);
    one.request.top_p = params.value("top_p", one.request.top_p);
    one.request.log_probabilities = params.value("log_probabilities", false);
    const JobFile& job = shard_.job();
    one.request.seed = random_key({job.seed, name_key(job.stage), static_cast<std::uint64_t>(job.round),
                                   name_key(item.id)}) %
                       (1ull << 31);
    return one;
  }

  // With so many exemplars less, and as the server takes it: a chat, or a text to be continued.
  void set_prompt(Asked& one, std::size_t left_out) const {
    one.left_out = left_out;
    std::string prompt = left_out == 0 ? one.item->value.value("prompt", "") : one.shorter.at(left_out - 1);
    if (settings_.value("chat", false))
      one.request.messages = {{"user", std::move(prompt)}};
    else
      one.request.prompt = std::move(prompt);
  }

  // Answers, and what was asked for without one.
  void read_earlier() {
    std::map<std::string, std::vector<Tokens>> open;  // by part: tries without an end
    const auto close = [&](const std::string& part) {
      auto& tries = open[part];
      if (!tries.empty()) tries.pop_back();
    };
    for (const Json& extra : shard_.earlier_extras()) {
      if (const auto it = extra.find("asked"); it != extra.end()) {
        open[part_of(*it)].push_back(tokens_from(it->at("most")));
      } else if (const auto failed = extra.find("failed"); failed != extra.end()) {
        close(part_of(*failed));
        ledger_.settle({}, tokens_from(failed->at("cost")));
        if (Asked* one = open_item(*failed)) {
          one->spent += tokens_from(failed->at("cost"));
          one->lost += tokens_from(failed->at("cost"));
        }
      } else if (const auto answer = extra.find("answer"); answer != extra.end()) {
        close(part_of(*answer));
        ledger_.settle({}, tokens_from(answer->at("used")));
        place(*answer);
      } else if (const auto shortened = extra.find("shortened"); shortened != extra.end()) {
        if (Asked* one = open_item(*shortened))
          set_prompt(*one, shortened->at("left_out").get<std::size_t>());
      }
    }
    for (const auto& [part, tries] : open)
      for (const Tokens& most : tries) {
        ledger_.lose(most);
        const auto one = asked_.find(item_of(part));
        if (one == asked_.end()) continue;
        one->second.spent += most;
        one->second.lost += most;
      }
  }

  static std::string part_of(const Json& json) {
    return part_id(json.at("item").get<std::string>(), json.at("first").get<int>());
  }

  // An answer, as its record has it, into its item.
  void place(const Json& answer) {
    Asked* const found = open_item(answer);
    if (found == nullptr) return;
    Asked& one = *found;
    one.spent += tokens_from(answer.at("used"));
    const Json& choices = answer.at("choices");
    std::size_t at = answer.at("first").get<std::size_t>();
    const bool counts_one = choices.size() == 1 && answer.value("counted", false);
    for (const Json& choice : choices) {
      if (at >= one.choices.size()) break;
      one.choices[at] = choice_from(choice);
      one.tokens[at++] = counts_one ? tokens_from(answer.at("used")).completion : 0;
    }
    one.prompt_tokens =
        answer.value("counted", false) ? tokens_from(answer.at("used")).prompt : one.prompt_tokens;
    one.seconds += answer.value("seconds", 0.0);
    one.model = answer.value("model", "");
  }

  // What is missing of an item, each gap a request.
  static void add_open_parts(const Asked& one, std::vector<Request>& open) {
    for (std::size_t at = 0; at < one.choices.size();) {
      if (one.choices[at]) {
        ++at;
        continue;
      }
      const std::size_t first = at;
      while (at < one.choices.size() && !one.choices[at]) ++at;
      Request request = one.request;
      request.id = part_id(one.item->id, static_cast<int>(first));
      request.samples = static_cast<int>(at - first);
      if (request.seed) *request.seed += first;
      open.push_back(std::move(request));
    }
  }

  void note(const char* what, const endpoint::Try& one, Json more) {
    const std::string& part = one.request.id;
    more["item"] = asked_of(part).item->id;
    more["first"] = first_of(part) + one.first;
    shard_.write_extra({{what, std::move(more)}});
  }

  void take(const Answer& answer) {
    // An answer of other weights is none: it is not kept.
    if (weights_ && !is_restarted()) endpoint::confirm_weights(*client_, *weights_);
    if (is_restarted()) confirm_service();
    Asked& one = asked_of(answer.id);
    Json json = {{"item", one.item->id},         {"first", first_of(answer.id) + answer.first},
                 {"used", to_json(answer.used)}, {"counted", answer.counted},
                 {"model", answer.model},        {"tries", answer.tries},
                 {"seconds", answer.seconds}};
    for (const Choice& choice : answer.choices) json["choices"].push_back(to_json(choice));
    shard_.write_extra({{"answer", json}});
    place(json);
    if (one.is_whole()) write(one);
  }

  // Servers say in many ways that a prompt leaves no room in the model's context.
  static bool may_be_too_long(int status) { return status == 400 || status == 413 || status == 422; }

  void refuse(const endpoint::Refused& refused) {
    if (refused.may_pass) {
      ++unanswered_;
      why_ = refused.reason;
      return;
    }
    Asked& one = asked_of(refused.id);
    const auto is_of_it = [&](const Request& request) { return item_of(request.id) == one.item->id; };
    if (std::any_of(again_.begin(), again_.end(), is_of_it)) return;  // another part of it was refused before
    if (one.left_out < one.shorter.size() && may_be_too_long(refused.status)) {
      set_prompt(one, one.left_out + 1);
      shard_.write_extra({{"shortened", {{"item", one.item->id}, {"left_out", one.left_out}}}});
      add_open_parts(one, again_);
      return;
    }
    const std::string status = refused.status > 0 ? "status " + std::to_string(refused.status) + ": " : "";
    log_warning("item " + one.item->id + ": the server refused it: " + status + refused.reason);
    write(one, status + refused.reason);
  }

  void write(const Asked& one, const std::string& error = "") {
    Json samples = Json::array();
    for (std::size_t i = 0; i < one.choices.size(); ++i) {
      if (!one.choices[i]) continue;
      const Choice& choice = *one.choices[i];
      Json sample = {{"text", choice.text}, {"finished", choice.finish != "length"}};
      if (one.tokens[i] > 0) sample["tokens"] = one.tokens[i];
      if (!choice.log_probabilities.empty()) {
        const std::vector<float> numbers(choice.log_probabilities.begin(), choice.log_probabilities.end());
        sample["logprobs_blob"] = warpsmith::to_json(shard_.write_blob(std::as_bytes(std::span(numbers))));
      }
      samples.push_back(std::move(sample));
    }
    Json record = {
        {"prompt_tokens", one.prompt_tokens},
        {"samples", std::move(samples)},
        {"seconds", one.seconds},
        {"model", one.model},
        {"spent",
         {{"prompt", one.spent.prompt}, {"completion", one.spent.completion}, {"lost", one.lost.all()}}}};
    if (one.left_out > 0) record["exemplars_left_out"] = one.left_out;
    if (!error.empty()) record["error"] = error;
    written_.insert(one.item->id);
    shard_.write(*one.item, std::move(record));
  }

  ShardSession& shard_;
  const Json settings_;
  std::optional<endpoint::Client> client_;
  std::optional<endpoint::Weights> weights_;  // that it is to have; nothing: those that it has
  endpoint::Ledger ledger_;
  std::map<std::string, Asked> asked_;  // by item
  std::vector<Request> again_;          // with shorter prompts
  int unanswered_ = 0;                  // requests, at the end of all their tries
  std::string why_;                     // of one of them
  bool stopped_ = false;                // the service has ended
  std::set<std::string> written_;       // items that have their record by now
};

}  // namespace

void sample_from_server(ShardSession& shard) { ServerSamples(shard).run(); }

}  // namespace warpsmith
