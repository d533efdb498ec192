#include "site_tables.h"

#include <algorithm>
#include <cctype>

namespace warpsmith::workflow {

namespace {

constexpr unsigned kGpusOnly = kDefaults | kGpu;

// What sbatch takes: node lists, feature expressions, names.
const TextRule& option_rule() {
  static const TextRule rule{R"(^[A-Za-z0-9_.,:&|()*\[\]+/@!-]*$)", "cannot be passed on to Slurm",
                             "letters, digits and _ . , : & | ( ) * [ ] + / @ ! - only"};
  return rule;
}

const TextRule& gres_rule() {
  static const TextRule rule{R"(^[A-Za-z][A-Za-z0-9_.-]*(:(?![0-9]{1,2}$)[A-Za-z0-9_.-]+)?$)", "is no GRES",
                             "its name, or name and type such as gpu:l40; the count is appended"};
  return rule;
}

const TextRule& module_rule() {
  static const TextRule rule{R"(^[A-Za-z0-9_][A-Za-z0-9_.,:+/@=-]*$)", "is no name of a module",
                             "one word, such as cuda/12.4"};
  return rule;
}

// What a shell reads between double quotes, with variables and nothing else replaced.
const std::string kQuotable =
    R"(([^\x00-\x1F\x7F"'`\\$]|\$[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*\})+$)";

const TextRule& word_rule() {
  static const TextRule rule{"^" + kQuotable, "is no word of a command",
                             "variables as $NAME, no quotes, backslashes, backquotes or line breaks"};
  return rule;
}

const TextRule& folder_rule() {
  static const TextRule rule{"^(?=[/$])" + kQuotable, "is no folder on a node",
                             "it begins with / or a variable; no quotes, backslashes or backquotes"};
  return rule;
}

const TextRule& device_name_rule() {
  static const TextRule rule{R"(^(?=.*[A-Za-z0-9])[^\x00-\x1F\x7F]+$)", "is no name of a device",
                             "such as RTX 3090"};
  return rule;
}

const TextRule& target_rule() {
  static const TextRule rule{"^sm_[1-9][0-9]{1,2}[af]?$", "is no target of a compiler",
                             "sm_ and the compute capability, such as sm_90a"};
  return rule;
}

}  // namespace

const TextRule& shell_line_rule() {
  static const TextRule rule{R"(^[^\x00-\x08\x0A-\x1F\x7F]+$)", "is not one line of text",
                             "a list with an element for each line"};
  return rule;
}

const TextRule& variable_name_rule() {
  static const TextRule rule{R"(^[A-Za-z_][A-Za-z0-9_]*$)", "is no name of a variable",
                             "a letter or _, then letters, digits and _"};
  return rule;
}

// std::regex takes stack by the length of the text, so there is a limit.
bool TextRule::allows(const std::string& text) const {
  return text.size() <= 1000 && std::regex_match(text, regex);
}

const std::vector<PlaceKey>& place_keys() {
  using S = SitePlace;
  const TextRule* option = &option_rule();
  static const std::vector<PlaceKey> keys = {
      {{{"partition", Form::kString, "Partition; several by commas. Default: the cluster's."}, &S::partition},
       option},
      {{{"account", Form::kString, "Account that is charged."}, &S::account}, option},
      {{{"qos", Form::kString, "Quality of service."}, &S::qos}, option},
      {{{"reservation", Form::kString, "Reservation."}, &S::reservation}, option},
      {{{"constraint", Form::kString, "Features that nodes must have, as for sbatch --constraint."},
        &S::constraint},
       option},
      {{{"exclude", Form::kString, "Nodes that are not used, such as node[03,07-09]."}, &S::exclude}, option},
      {{{"gres", Form::kString,
         "GRES of the GPUs, without a count. Default: gpu: and the type in lower case."},
        &S::gres},
       &gres_rule(),
       kGpusOnly},
      {{{"names", Form::kStrings, "A device's name must hold one of these, else it is the wrong GPU."},
        &S::names},
       &device_name_rule(),
       kGpu},
      {{{"target", Form::kString, "What candidates are compiled for. Default: it follows from the type."},
        &S::target},
       &target_rule(),
       kGpu},
      {{{"twin", Form::kBoolean, "The nodes have no such GPU: shards run on the CPU twin, device kind cpu."},
        &S::twin},
       nullptr,
       kGpusOnly},
      {{{"modules", Form::kStrings, "Environment modules that are loaded."}, &S::modules}, &module_rule()},
      {{{"setup", Form::kStrings, "Shell lines before the program."}, &S::setup}, &shell_line_rule()},
      {{{"container", Form::kStrings, "Words before the program: [apptainer, exec, --nv, image.sif]."},
        &S::container},
       &word_rule()},
      {{{"scratch", Form::kString, "Folder on the node that becomes TMPDIR; may name $USER, $SLURM_JOB_ID."},
        &S::scratch},
       &folder_rule()},
      {{{"max_time", Form::kSeconds, "The longest that a job may ask for.", 60, 365 * kDay}, &S::max_time_s}},
      {{{"memory_per_cpu", Form::kBytes, "Memory for each CPU where a job asks for none.", 16 * kMiB,
         64 * kTiB},
        &S::memory_per_cpu},
       nullptr,
       kDefaults | kCpu | kGpu},
  };
  return keys;
}

const Table<SlurmKeys>& slurm_keys() {
  using S = SlurmKeys;
  static const Table<S> table = {
      {{"conf", Form::kString,
        "slurm.conf, relative to this file. Default: SLURM_CONF, else where Slurm looks."},
       &S::conf},
      {{"max_queued", Form::kInteger, "Shards in the queue at a time; 0: from the cluster's limits.", 0, 1e7},
       &S::max_queued},
      {{"requests_per_minute", Form::kNumber, "Status requests a minute, sustained.", 0, 6000, true},
       &S::requests_per_minute},
      {{"request_burst", Form::kInteger, "Status requests at once, after a quiet time.", 1, 10000},
       &S::request_burst},
  };
  return table;
}

const Table<SiteSpec>& site_keys() {
  using S = SiteSpec;
  static const Table<S> table = {
      {.rule = {.name = "executor",
                .form = Form::kWord,
                .meaning = "What starts the shards: Slurm, or this machine itself.",
                .words = {"slurm", "local"}},
       .member = &S::executor},
      {{"start_time", Form::kSeconds, "What starting a shard costs: shards are made longer where it is much.",
        0, 3600},
       &S::start_s},
      {{"shard_time", Form::kSeconds, "Expected duration of a shard here; 0s: each stage's own.", 0,
        30 * kDay},
       &S::shard_s},
  };
  return table;
}

const Table<SiteSpec>& controller_keys() {
  using S = SiteSpec;
  static const Table<S> table = {
      {{"time", Form::kSeconds, "Its time limit; it goes on in its next job. Default: the partition's.", 120,
        365 * kDay},
       &S::controller_time_s},
      {{"warning", Form::kSeconds, "How long before its time limit it is told; Slurm may be 60 s early.", 10,
        3600},
       &S::controller_warning_s},
      {{"memory", Form::kBytes, "Its memory.", 64 * kMiB, 64 * kTiB}, &S::controller_memory},
      {{"cpus", Form::kInteger, "Its CPU cores.", 1, 4096}, &S::controller_cpus},
  };
  return table;
}

const Table<Prices>& price_keys() {
  using S = Prices;
  static const Table<S> table = {
      {{"currency", Form::kString, "What all prices are in, such as EUR; it is shown beside sums."},
       &S::currency},
      {{"cpu_hours", Form::kNumber, "Of an hour of a CPU of a shard without a GPU; 0: it has no price.", 0,
        1e6},
       &S::cpu_hours},
  };
  return table;
}

const Table<TokenPrices>& token_price_keys() {
  using S = TokenPrices;
  static const Table<S> table = {
      {{"prompt", Form::kNumber, "Of a million tokens of prompts.", 0, 1e6}, &S::prompt},
      {{"completion", Form::kNumber, "Of a million tokens of answers.", 0, 1e6}, &S::completion},
  };
  return table;
}

std::string default_gres(std::string_view gpu_type) {
  std::string gres = "gpu:";
  for (const char c : gpu_type) gres += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return gres;
}

}  // namespace warpsmith::workflow
