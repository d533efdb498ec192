// `needs`: names to instances, cycles, order.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "stage.h"

namespace warpsmith::workflow {

namespace {

using yaml::mistake_at;

constexpr std::size_t kLongestName = 200;

class Graph {
 public:
  Graph(std::vector<Draft> drafts, const std::vector<std::string>& stated, Diagnostics& mistakes)
      : drafts_(std::move(drafts)), stated_(stated.begin(), stated.end()), mistakes_(mistakes) {
    for (std::size_t i = 0; i < drafts_.size(); ++i) {
      const StageSpec& spec = drafts_[i].spec;
      const auto [it, fresh] = by_name_.emplace(spec.name, i);
      if (!fresh)
        mistakes_.push_back(
            mistake_at(drafts_[i].place, fmt::format("two stages come out with the name `{}`", spec.name),
                       fmt::format("the other begins in line {}", drafts_[it->second].spec.line)));
      if (spec.name.size() > kLongestName)
        mistakes_.push_back(
            mistake_at(drafts_[i].place,
                       fmt::format("a stage comes out with a name of {} characters, {} are the most: {}…",
                                   spec.name.size(), kLongestName, spec.name.substr(0, 40)),
                       "it names a folder"));
      by_base_[spec.base_name].push_back(i);
    }
  }

  std::vector<StageSpec> order() {
    for (std::size_t i = 0; i < drafts_.size(); ++i) resolve(i);
    resolve_services();
    if (report_cycles()) return {};
    std::vector<std::size_t> order = topological();
    for (const std::size_t i : order) check_upstream(i);
    std::vector<StageSpec> stages;
    for (const std::size_t i : order) {
      drafts_[i].spec.resolved = resolved_parameters(drafts_[i].spec);
      stages.push_back(std::move(drafts_[i].spec));
    }
    return stages;
  }

 private:
  // Instances that `name` means for instance `user`: of a matrix, those that agree on the axes that both
  // have.
  std::vector<std::size_t> find(const NamedPlace& name, std::size_t user, const char* key) {
    if (const auto it = by_base_.find(name.name); it != by_base_.end()) {
      std::vector<std::size_t> found;
      for (const std::size_t i : it->second)
        if (alike(drafts_[i].spec, drafts_[user].spec)) found.push_back(i);
      if (found.empty()) broken_.insert(user);
      if (found.empty())
        mistakes_.push_back(
            mistake_at(name.place, fmt::format("`{}`: no instance of `{}` has the matrix values of `{}`", key,
                                               name.name, drafts_[user].spec.name)));
      return found;
    }
    if (const auto it = by_name_.find(name.name); it != by_name_.end()) return {it->second};
    broken_.insert(user);
    if (stated_.contains(name.name)) return {};  // it has a mistake of its own
    std::vector<std::string> known(stated_.begin(), stated_.end());
    mistakes_.push_back(mistake_at(name.place, fmt::format("`{}`: there is no stage `{}`", key, name.name),
                                   yaml::suggest(name.name, known)));
    return {};
  }

  static bool alike(const StageSpec& a, const StageSpec& b) {
    return std::all_of(a.point.begin(), a.point.end(), [&](const auto& entry) {
      const auto it = b.point.find(entry.first);
      return it == b.point.end() || it->second == entry.second;
    });
  }

  void resolve(std::size_t user) {
    Draft& draft = drafts_[user];
    std::set<std::size_t>& edges = edges_[user];
    for (const NamedPlace& name : draft.needs)
      for (const std::size_t i : find(name, user, "needs")) edges.insert(i);
    if (auto* measure = std::get_if<MeasureSettings>(&draft.spec.settings))
      resolve_measure(user, *measure, edges);
    for (EndpointSettings* endpoint : endpoints_of(draft.spec)) resolve_service(user, *endpoint, edges);
  }

  void resolve_service(std::size_t user, EndpointSettings& endpoint, std::set<std::size_t>& edges) {
    if (endpoint.service.empty()) return;
    const yaml::Place& place = drafts_[user].place;
    const std::vector<std::size_t> found = find({endpoint.service, place}, user, "service");
    if (found.empty()) return;
    if (found.size() > 1 || drafts_[found[0]].spec.kind != "service") {
      mistakes_.push_back(mistake_at(
          place,
          found.size() > 1 ? fmt::format("`service`: `{}` is {} stages", endpoint.service, found.size())
                           : fmt::format("`service`: stage `{}` is of kind {}", endpoint.service,
                                         drafts_[found[0]].spec.kind),
          "name one stage of kind service"));
      return;
    }
    endpoint.service = drafts_[found[0]].spec.name;
    edges.insert(found[0]);
  }

  // Who asks a service waits for what the service needs: it starts with the first who runs. Then `needs` is
  // known.
  void resolve_services() {
    std::set<std::size_t> asked;
    check_weights();
    check_trained_servers();
    for (auto& [user, edges] : edges_)
      for (const std::size_t i : std::set<std::size_t>(edges)) {
        if (drafts_[i].spec.kind != "service") continue;
        asked.insert(i);
        if (const StageSpec& spec = drafts_[user].spec; spec.kind == "service")
          mistakes_.push_back(
              mistake_at(drafts_[user].place,
                         fmt::format("service `{}` needs service `{}`", spec.name, drafts_[i].spec.name),
                         "a service may need stages that end"));
        edges.insert(edges_[i].begin(), edges_[i].end());
      }
    for (std::size_t i = 0; i < drafts_.size(); ++i) {
      StageSpec& spec = drafts_[i].spec;
      if (spec.kind == "service" && !asked.contains(i) && broken_.empty())
        mistakes_.push_back(
            mistake_at(drafts_[i].place, fmt::format("nobody asks service `{}`", spec.name),
                       fmt::format("policy: {{endpoint: {{service: {}, model: …}}}}", spec.name)));
      for (const std::size_t needed : edges_[i]) spec.needs.push_back(drafts_[needed].spec.name);
      std::sort(spec.needs.begin(), spec.needs.end());
    }
  }

  // A service has one folder of weights at a time, and those that were there when it started are a stage's.
  void check_weights() {
    for (std::size_t i = 0; i < drafts_.size(); ++i) {
      const auto* service = std::get_if<ServiceSettings>(&drafts_[i].spec.settings);
      if (service == nullptr) continue;
      std::vector<std::string> askers;
      bool trained = false, restarts = false;
      for (const auto& [user, edges] : edges_) {
        if (!edges.contains(i)) continue;
        const StageSpec& spec = drafts_[user].spec;
        askers.push_back(spec.name);
        const bool gives = spec.policy && has_own_model(spec) && spec.policy->service == drafts_[i].spec.name;
        trained = trained || gives;
        restarts = restarts || (gives && spec.policy_weights == "restart");
      }
      if (trained && askers.size() > 1)
        mistakes_.push_back(mistake_at(
            drafts_[i].place,
            fmt::format("service `{}` gets the weights of a stage that trains, and {} stages ask it ({})",
                        drafts_[i].spec.name, askers.size(), fmt::join(askers, ", ")),
            "a service of its own for each"));
      const bool names_model = std::any_of(service->argv.begin(), service->argv.end(), [](const auto& word) {
        return word.find("{model}") != std::string::npos;
      });
      if (restarts && !names_model)
        mistakes_.push_back(mistake_at(
            drafts_[i].place,
            fmt::format("service `{}` gets the weights of a stage, and its `argv` does not say {{model}}",
                        drafts_[i].spec.name),
            "argv: [vllm, serve, \"{model}\", --port, \"{port}\"]"));
      const auto exports = [&](std::size_t need) {
        return trains(drafts_[need].spec) && !export_type(drafts_[need].spec).empty();
      };
      if (names_model && std::none_of(edges_[i].begin(), edges_[i].end(), exports) && !broken_.contains(i))
        mistakes_.push_back(mistake_at(
            drafts_[i].place,
            fmt::format("service `{}`: `argv` says {{model}}, and no stage that it needs exports one",
                        drafts_[i].spec.name),
            "needs: a stage that trains, with model: {export: bfloat16}"));
    }
  }

  // A server has one folder of weights at a time: who trains it is the only one who asks it.
  void check_trained_servers() {
    for (Draft& draft : drafts_) {
      if (!draft.spec.policy || !has_own_model(draft.spec) || draft.spec.policy->url.empty()) continue;
      for (Draft& other : drafts_)
        for (const EndpointSettings* endpoint : endpoints_of(other.spec)) {
          if (endpoint == &*draft.spec.policy || endpoint->url != draft.spec.policy->url) continue;
          mistakes_.push_back(
              mistake_at(draft.place,
                         fmt::format("stage `{}` gives the server at {} its weights, and {} asks it, too",
                                     draft.spec.name, endpoint->url,
                                     &other == &draft ? "its checker" : "stage `" + other.spec.name + "`"),
                         "a server of its own for each"));
          return;
        }
    }
  }

  void resolve_measure(std::size_t user, MeasureSettings& measure, std::set<std::size_t>& edges) {
    Draft& draft = drafts_[user];
    if (measure.takes() || draft.spec.policy) return;  // they are no stage's
    if (!draft.candidates_of.empty()) {
      measure.candidates_of.clear();
      for (const NamedPlace& name : draft.candidates_of) {
        for (const std::size_t i : find(name, user, "candidates_of")) {
          measure.candidates_of.push_back(drafts_[i].spec.name);
          edges.insert(i);
        }
      }
      return;
    }
    std::vector<std::size_t> sources;
    if (!draft.checkpoint_of.empty()) {
      const std::size_t mistakes_before = mistakes_.size();
      sources = find(draft.checkpoint_of[0], user, "checkpoint_of");
      if (mistakes_.size() > mistakes_before || sources.empty()) return;
    } else {
      for (const std::size_t i : edges)
        if (leaves_checkpoint(i)) sources.push_back(i);
      if (sources.empty() && broken_.contains(user)) return;
    }
    const yaml::Place place = draft.checkpoint_of.empty() ? draft.place : draft.checkpoint_of[0].place;
    if (sources.size() != 1) {
      mistakes_.push_back(mistake_at(
          place,
          sources.empty()
              ? fmt::format("stage `{}` has nothing to measure", draft.spec.name)
              : fmt::format("stage `{}` could sample from {} stages", draft.spec.name, sources.size()),
          "say `checkpoint_of: STAGE` or `candidates_of: [STAGE, …]`"));
      return;
    }
    if (!leaves_checkpoint(sources[0]))
      mistakes_.push_back(mistake_at(
          place, fmt::format("`checkpoint_of`: stage `{}` trains no model", drafts_[sources[0]].spec.name)));
    measure.checkpoint_of = drafts_[sources[0]].spec.name;
    edges.insert(sources[0]);
  }

  // A command may leave anything.
  bool leaves_checkpoint(std::size_t i) const {
    const std::string& kind = drafts_[i].spec.kind;
    return kind == "command" || trains(drafts_[i].spec);
  }

  using Step = std::pair<std::size_t,
                         std::vector<std::size_t>>;  // a stage, and those it needs that are not visited yet

  // Reports cycles; of those that share a stage, one.
  bool report_cycles() {
    std::set<std::size_t> told;
    std::vector<int> state(drafts_.size(), 0);  // 0 new, 1 on the path, 2 done
    for (std::size_t start = 0; start < drafts_.size(); ++start) {
      if (state[start] != 0) continue;
      // Depth-first without recursion: a chain may be 10,000 stages long.
      std::vector<Step> path;
      const auto enter = [&](std::size_t i) {
        state[i] = 1;
        path.emplace_back(i, std::vector<std::size_t>(edges_[i].rbegin(), edges_[i].rend()));
      };
      enter(start);
      while (!path.empty()) {
        if (path.back().second.empty()) {
          state[path.back().first] = 2;
          path.pop_back();
          continue;
        }
        const std::size_t next = path.back().second.back();
        path.back().second.pop_back();
        if (state[next] == 0) {
          enter(next);
        } else if (state[next] == 1) {
          const auto first =
              std::find_if(path.begin(), path.end(), [&](const auto& step) { return step.first == next; });
          const bool is_new =
              std::none_of(first, path.end(), [&](const auto& step) { return told.contains(step.first); });
          for (auto step = first; step != path.end(); ++step) told.insert(step->first);
          if (is_new) report_circle({first, path.end()});
        }
      }
    }
    return !told.empty();
  }

  void report_circle(const std::vector<Step>& circle) {
    std::string text;
    for (const Step& step : circle) text += drafts_[step.first].spec.name + " -> ";
    const Draft& at = drafts_[circle.front().first];
    mistakes_.push_back(mistake_at(at.needs.empty() ? at.place : at.needs[0].place,
                                   "`needs` goes round in a circle: " + text + at.spec.name));
  }

  // Stages in the file's order, but each behind those that it needs.
  std::vector<std::size_t> topological() {
    std::vector<std::size_t> open(drafts_.size());
    std::vector<std::vector<std::size_t>> users(drafts_.size());
    std::set<std::size_t> ready;
    for (std::size_t i = 0; i < drafts_.size(); ++i) {
      open[i] = edges_[i].size();
      for (const std::size_t needed : edges_[i]) users[needed].push_back(i);
      if (open[i] == 0) ready.insert(i);
    }
    std::vector<std::size_t> order;
    while (!ready.empty()) {
      const std::size_t next = *ready.begin();
      ready.erase(ready.begin());
      order.push_back(next);
      for (const std::size_t user : users[next])
        if (--open[user] == 0) ready.insert(user);
    }
    return order;
  }

  // That what a stage starts from is made by a stage before it. Called in topological order.
  void check_upstream(std::size_t i) {
    offers_.resize(drafts_.size());
    Offers above;
    for (const std::size_t needed : edges_[i]) {
      above.checkpoint |= offers_[needed].checkpoint;
      above.candidates |= offers_[needed].candidates;
      if (trains(drafts_[needed].spec))
        above.models.insert(needed);
      else
        above.models.insert(offers_[needed].models.begin(), offers_[needed].models.end());
    }
    const Draft& draft = drafts_[i];
    const KindRule& kind = *find_kind(draft.spec.kind);
    if (trains(draft.spec) && above.models.size() > 1) check_models(draft, above.models);
    if (!broken_.contains(i)) {
      if (kind.needs_checkpoint && has_own_model(draft.spec) && !above.checkpoint)
        mistakes_.push_back(
            mistake_at(draft.place,
                       fmt::format("stage `{}` starts from a model, and no stage that it needs trains one",
                                   draft.spec.name),
                       "needs: a stage of kind sft, self_supervised, contrastive or command"));
      if (kind.needs_candidates && !above.candidates)
        mistakes_.push_back(
            mistake_at(draft.place,
                       fmt::format("stage `{}` trains on candidates, and no stage that it needs collects any",
                                   draft.spec.name),
                       "needs: a stage of kind collect or command"));
    } else {
      above = {true, true};
    }
    const bool command = draft.spec.kind == "command";
    offers_[i] = {above.checkpoint || trains(draft.spec) || command,
                  above.candidates || draft.spec.kind == "collect" || command, std::move(above.models)};
  }

  // A stage trains on from the last model before it: of those above it, each but one must have led to
  // another.
  void check_models(const Draft& draft, const std::set<std::size_t>& models) {
    std::set<std::size_t> last = models;
    for (const std::size_t model : models) {
      std::vector<std::size_t> open(edges_[model].begin(), edges_[model].end());
      std::set<std::size_t> seen(open.begin(), open.end());
      while (!open.empty()) {
        const std::size_t at = open.back();
        open.pop_back();
        last.erase(at);
        for (const std::size_t next : edges_[at])
          if (seen.insert(next).second) open.push_back(next);
      }
    }
    if (last.size() < 2) return;
    std::string names;
    for (const std::size_t model : last)
      names += (names.empty() ? "`" : ", `") + drafts_[model].spec.name + "`";
    mistakes_.push_back(mistake_at(draft.place,
                                   fmt::format("stage `{}` could go on from the models of {} stages: {}",
                                               draft.spec.name, last.size(), names),
                                   "need one of them, or give it the same `matrix`"));
  }

  std::vector<Draft> drafts_;
  std::set<std::string> stated_;
  Diagnostics& mistakes_;
  std::map<std::string, std::size_t> by_name_;
  std::map<std::string, std::vector<std::size_t>> by_base_;
  std::map<std::size_t, std::set<std::size_t>> edges_;
  struct Offers {
    bool checkpoint = false, candidates = false;  // of the stage or of one above it
    std::set<std::size_t> models;                 // the stages above it that trained the last one on each way
  };
  std::vector<Offers> offers_;
  std::set<std::size_t> broken_;  // those whose `needs` have a mistake: no further ones because of it
};

}  // namespace

std::vector<StageSpec> order_stages(std::vector<Draft> drafts, const std::vector<std::string>& stated,
                                    Diagnostics& mistakes) {
  return Graph(std::move(drafts), stated, mistakes).order();
}

}  // namespace warpsmith::workflow
