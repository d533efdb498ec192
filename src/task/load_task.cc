#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "cudnn_spec.h"
#include "plan_text.h"
#include "read_values.h"
#include "shape_check.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/base/text.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/task/task.h"
#include "warpsmith/yaml/node.h"

namespace warpsmith::task {

namespace {

using yaml::Entry;
using yaml::MapReader;
using yaml::Node;

constexpr std::string_view kSchema = "warpsmith.task/1";
constexpr std::uint64_t kMostModuleBytes = 1 << 20;
constexpr std::int64_t kMaxSize = 0x7FFFFFFF;  // of a dim: plans pass it as int32

std::filesystem::path task_file(const std::filesystem::path& folder) { return folder / "task.yaml"; }

class TaskLoader {
 public:
  TaskLoader(std::filesystem::path folder, Diagnostics& diagnostics)
      : folder_(std::move(folder)), diagnostics_(diagnostics) {}

  std::optional<Task> load(std::string_view text) {
    const std::size_t before = diagnostics_.size();
    root_ = yaml::load_text(text, task_file(folder_).string(), diagnostics_);
    if (diagnostics_.size() != before || !yaml::is_map_file(root_, "task", kSchema, diagnostics_))
      return std::nullopt;
    task_.folder = folder_;
    task_.id = folder_name();
    task_.digest = task_.gpu_digest = sha256_hex(text);
    if (!is_name(task_.id))
      mistake(root_, "the folder's name `" + task_.id + "` is the task's id: letters, digits and _");
    read_root();
    if (!task_.module.empty())
      for (std::string* digest : {&task_.digest, &task_.gpu_digest})
        *digest = sha256_hex(*digest + task_.module);
    if (diagnostics_.size() == before) check_shapes();
    if (diagnostics_.size() != before) return std::nullopt;
    return std::move(task_);
  }

 private:
  std::string folder_name() const {
    const std::filesystem::path normal = std::filesystem::absolute(folder_).lexically_normal();
    return (normal.has_filename() ? normal : normal.parent_path()).filename().string();
  }

  void mistake(const Node& node, std::string message, std::string hint = {}) {
    diagnostics_.push_back(yaml::mistake_at(node.place(), std::move(message), std::move(hint)));
  }

  void read_root() {
    MapReader map(root_, "task", diagnostics_);
    static const std::vector<std::string> kSchemas = {std::string(kSchema)};
    map.word("schema", kSchemas, {.required = true});
    task_.title = map.string("title", {.required = true}).value_or("");
    task_.level = static_cast<int>(map.integer("level", {.required = true, .low = 1, .high = 3}).value_or(1));
    static const std::vector<std::string> kSplits = {
        "train", "sft_only", "heldout_combination", "heldout_operation", "heldout_length", "extra"};
    const auto split = map.word("split", kSplits, {.required = true});
    if (split) {
      task_.split = static_cast<Split>(std::find(kSplits.begin(), kSplits.end(), *split) - kSplits.begin());
    }
    task_.ops = map.strings("ops", {.required = true});
    if (task_.ops.empty() && map.has("ops")) map.mistake("ops", "`ops` must name at least one part");
    read_dims(map);
    for (const Entry& entry : map.map("inputs", {.required = true})) read_input(entry);
    for (const Entry& entry : map.map("scalars")) read_scalar(entry);
    read_outputs(map);
    read_reference(map);
    read_prepare(map);
    read_module(map);
    read_timing(map);
    task_.hidden = read_shapes(map, "hidden", "hidden");
    task_.small = map.string("small").value_or("");
    if (task_.small.empty() && map.has("small")) map.mistake("small", "`small` must say why");
    for (const Node& node : map.sequence("distributions")) read_distribution(node);
    task_.flops = read_cost(map, "flops");
    task_.bytes = read_cost(map, "bytes");
    task_.tolerance = map.number("tolerance");
    if (task_.tolerance && *task_.tolerance < 0) map.mistake("tolerance", "`tolerance` is negative");
    static const std::vector<std::string> kMath = {"strict", "torch_default"};
    task_.math = map.word("math", kMath).value_or("strict");
    task_.memory_bytes = map.bytes("memory").value_or(task_.memory_bytes);
    task_.degenerate = map.string("degenerate").value_or("");
    if (task_.degenerate.empty() && map.has("degenerate"))
      map.mistake("degenerate", "`degenerate` must say why");
    task_.imported = map.string("imported").value_or("");
    if (const auto cudnn = map.value("cudnn")) task_.cudnn = read_cudnn(*cudnn, task_, diagnostics_);
    map.finish();
  }

  // Every name of a task is one of a kind: plans and expressions use them side by side.
  void claim(const yaml::Place& place, const std::string& name) {
    if (!is_name(name)) {
      diagnostics_.push_back(yaml::mistake_at(place, "`" + name + "` is no name", "letters, digits and _"));
    } else if (is_reserved(name)) {
      diagnostics_.push_back(
          yaml::mistake_at(place, "`" + name + "` has a meaning in launch plans", "take another name"));
    } else if (!claimed_.insert(name).second) {
      diagnostics_.push_back(yaml::mistake_at(place, "`" + name + "` is defined twice"));
    }
  }

  void read_dims(MapReader& map) {
    for (const Node& node : map.sequence("dims", {.required = true})) {
      const auto name = yaml::read_text(node, "a dim", diagnostics_);
      if (!name) continue;
      claim(node.place(), *name);
      task_.dims.push_back(*name);
    }
  }

  // An expression over the dims, told at its place in the file.
  std::optional<Expression> read_expression(const Node& node, const std::string& what, bool real = false) {
    const auto text = yaml::read_text(node, what, diagnostics_);
    if (!text) return std::nullopt;
    return parse_expression(node, *text, 0, real);
  }

  std::optional<Expression> parse_expression(const Node& node, std::string_view text, int offset, bool real) {
    yaml::Place place = node.place();
    if (node.quoted()) ++offset;
    try {
      Expression expression = Expression::parse(text);
      for (const NameUse& use : expression.uses()) {
        if (real && (use.name == "inf" || use.name == "nan")) continue;
        if (use.function.empty() &&
            std::find(task_.dims.begin(), task_.dims.end(), use.name) != task_.dims.end())
          continue;
        place.column += offset + use.column - 1;
        diagnostics_.push_back(
            yaml::mistake_at(place, "unknown dim `" + use.name + "`", yaml::suggest(use.name, task_.dims)));
        return std::nullopt;
      }
      if (!real && expression.has_reals()) {
        mistake(node, "`" + std::string(text) + "`: an integer is expected");
        return std::nullopt;
      }
      return expression;
    } catch (const ExpressionError& error) {
      place.column += offset + error.column - 1;
      diagnostics_.push_back(yaml::mistake_at(place, "`" + std::string(text) + "`: " + error.message));
      return std::nullopt;
    }
  }

  void read_dtype_and_shape(MapReader& map, TensorSpec& tensor) {
    static const std::vector<std::string> kNames = [] {
      std::vector<std::string> names;
      for (int i = 0; i <= static_cast<int>(Dtype::kBool); ++i)
        names.emplace_back(to_string(static_cast<Dtype>(i)));
      return names;
    }();
    if (const auto dtype = map.word("dtype", kNames)) tensor.dtype = *parse_dtype(*dtype);
    for (const Node& node : map.sequence("shape", {.required = true})) {
      if (auto size = read_expression(node, "a size")) tensor.shape.push_back(std::move(*size));
    }
  }

  void read_input(const Entry& entry) {
    TensorSpec tensor;
    tensor.name = entry.key;
    claim(entry.place, entry.key);
    if (entry.key.starts_with("out")) {
      const std::string rest = entry.key.substr(3);
      if (std::all_of(rest.begin(), rest.end(), [](char c) { return c >= '0' && c <= '9'; }))
        mistake(entry.value, "`" + entry.key + "` is the name of an output");
    }
    MapReader map(entry.value, "input `" + entry.key + "`", diagnostics_);
    if (!map.usable()) return;
    static const std::vector<std::string> kRoles = {"data", "parameter", "buffer", "init"};
    if (const auto role = map.word("role", kRoles))
      tensor.role = static_cast<Role>(std::find(kRoles.begin(), kRoles.end(), *role) - kRoles.begin());
    tensor.state_dict = map.string("state_dict").value_or("");
    if (!tensor.state_dict.empty() && (tensor.role == Role::kData || tensor.role == Role::kInit))
      map.mistake("state_dict", "`state_dict` names a parameter or a buffer: give it that role");
    read_dtype_and_shape(map, tensor);
    read_layout(map, tensor);
    const auto values = map.value("values");
    if (values) {
      if (auto spec = read_values(*values, tensor, false)) tensor.values = std::move(*spec);
    } else if (is_floating(tensor.dtype)) {
      tensor.values.arguments = {Expression::constant(0), Expression::constant(1)};
    } else {
      map.mistake("values", "`values` is missing: integers have no default", "values: integers(0, N)");
    }
    map.finish();
    task_.inputs.push_back(std::move(tensor));
  }

  // How an input lies in memory.
  void read_layout(MapReader& map, TensorSpec& tensor) {
    for (const Node& node : map.sequence("strides"))
      if (auto stride = read_expression(node, "a stride")) tensor.strides.push_back(std::move(*stride));
    if (map.has("strides") && (tensor.strides.size() != tensor.shape.size() || tensor.strides.empty()))
      map.mistake("strides", "`strides` must be one for each dimension of `shape`");
    if (const auto node = map.value("offset")) tensor.offset = read_expression(*node, "`offset`");
  }

  // normal(0, 1)
  std::optional<ValueSpec> read_values(const Node& node, const TensorSpec& tensor, bool in_distribution) {
    const auto text = yaml::read_text(node, "`values`", diagnostics_);
    if (!text) return std::nullopt;
    const auto argument = [&](std::string_view number, int offset) {
      return parse_expression(node, number, offset, true);
    };
    return ValueReader(node, tensor, in_distribution, argument, diagnostics_).read(*text);
  }

  // A number with a point or an exponent is a float, another an int.
  void read_scalar(const Entry& entry) {
    claim(entry.place, entry.key);
    const auto value = yaml::read_number(entry.value, "scalar `" + entry.key + "`", diagnostics_);
    if (!value) return;
    ScalarSpec scalar{entry.key, entry.value.text().find_first_of(".eE") != std::string::npos, *value};
    if (!scalar.is_float && std::abs(*value) > 0x1p53)
      mistake(entry.value, "scalar `" + entry.key + "` is over 2^53");
    task_.scalars.push_back(std::move(scalar));
  }

  void read_outputs(MapReader& root) {
    const std::vector<Entry> entries = root.map("outputs", {.required = true});
    if (entries.empty() && root.has("outputs")) root.mistake("outputs", "a task needs an output");
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const Entry& entry = entries[i];
      const std::string expected = entries.size() == 1 ? "out" : "out" + std::to_string(i);
      if (entry.key != expected) {
        diagnostics_.push_back(yaml::mistake_at(entry.place, "output " + std::to_string(i + 1) + " of " +
                                                                 std::to_string(entries.size()) +
                                                                 " must be named `" + expected + "`"));
      }
      TensorSpec tensor;
      tensor.name = entry.key;
      claim(entry.place, entry.key);
      MapReader map(entry.value, "output `" + entry.key + "`", diagnostics_);
      if (!map.usable()) continue;
      read_dtype_and_shape(map, tensor);
      tensor.signed_zeros = map.boolean("signed_zeros").value_or(false);
      if (tensor.signed_zeros && !is_floating(tensor.dtype))
        map.mistake("signed_zeros", "`signed_zeros`: a zero of type " + std::string(to_string(tensor.dtype)) +
                                        " has no sign");
      map.finish();
      task_.outputs.push_back(std::move(tensor));
    }
  }

  // What a program of TorchScript says of a function of it.
  struct Signature {
    std::vector<std::string> parameters;  // "x: Tensor"
    std::string result;                   // "Tuple[Tensor, Tensor]"; empty: it does not say
  };
  static std::optional<Signature> signature_of(std::string_view text, const std::string& function) {
    const std::string begin = "def " + function + "(";
    const std::size_t at = text.find(begin);
    const std::size_t close = at == std::string::npos ? at : text.find(')', at);
    if (close == std::string::npos) return std::nullopt;
    Signature signature;
    const std::size_t first = at + begin.size();
    for (const std::string& parameter : split(trim(text.substr(first, close - first)), ',')) {
      const std::vector<std::string> parts = split(parameter, ':');
      if (!trim(parameter).empty())
        signature.parameters.push_back(trim(parts[0]) +
                                       (parts.size() > 1 ? ": " + trim(parts[1]) : ": Tensor"));
    }
    const std::string behind = trim(text.substr(close + 1, text.find(':', close) - close - 1));
    if (behind.starts_with("->"))
      for (const std::string& part : split(behind.substr(2), ','))
        signature.result += (signature.result.empty() ? "" : ", ") + trim(part);
    return signature;
  }

  // The parameters of prepare(…) are inputs of role data, and its results as many tensors.
  void read_prepare(MapReader& map) {
    const auto text = map.string("prepare");
    if (!text) return;
    task_.prepare = *text;
    const auto signature = signature_of(*text, "prepare");
    if (!signature) return map.mistake("prepare", "there is no function `prepare(…)`");
    std::vector<std::string> names;
    for (const TensorSpec& input : task_.inputs)
      if (input.role == Role::kData) names.push_back(input.name);
    std::string result;
    for (const std::string& parameter : signature->parameters) {
      const std::string name = parameter.substr(0, parameter.find(':'));
      const auto input = std::find_if(task_.inputs.begin(), task_.inputs.end(), [&](const TensorSpec& one) {
        return one.name == name && one.role == Role::kData;
      });
      const auto number = static_cast<std::size_t>(input - task_.inputs.begin());
      if (input == task_.inputs.end())
        return map.mistake("prepare", "`" + name + "` of prepare(…) is no input of role data",
                           yaml::suggest(name, names));
      if (std::count(task_.prepared.begin(), task_.prepared.end(), number) > 0)
        return map.mistake("prepare", "prepare(…) takes `" + name + "` twice");
      if (parameter != name + ": Tensor")
        return map.mistake("prepare", "`" + parameter + "` of prepare(…) is no Tensor");
      if (!input->strides.empty())
        return map.mistake("prepare", "input `" + name + "` of prepare(…) has `strides`");
      task_.prepared.push_back(number);
      result += (result.empty() ? "Tensor" : ", Tensor");
    }
    if (task_.prepared.empty()) return map.mistake("prepare", "prepare(…) takes no input");
    if (task_.prepared.size() > 1) result = "Tuple[" + result + "]";
    if (signature->result != result)
      map.mistake("prepare", "prepare(…) must give a tensor for each input that it takes", "-> " + result);
  }

  // The parameters of forward(…) are the inputs and then the scalars, by name and in order.
  void read_reference(MapReader& map) {
    const auto text = map.string("reference", {.required = true});
    if (!text) return;
    task_.reference = *text;
    const auto signature = signature_of(*text, "forward");
    if (!signature) return map.mistake("reference", "the reference has no function `forward(…)`");
    std::vector<std::string> expected;
    for (const TensorSpec& tensor : task_.inputs) expected.push_back(tensor.name + ": Tensor");
    for (const ScalarSpec& scalar : task_.scalars)
      expected.push_back(scalar.name + (scalar.is_float ? ": float" : ": int"));
    if (signature->parameters == expected) return;
    std::string wanted;
    for (const std::string& parameter : expected) wanted += (wanted.empty() ? "" : ", ") + parameter;
    map.mistake("reference", "the parameters of forward(…) must be the inputs and the scalars, in order",
                "forward(" + wanted + ")");
  }

  // A file beside task.yaml. What the reference takes behind the module's own inputs is found in the module.
  void read_module(MapReader& map) {
    const auto name = map.string("module");
    if (!name) return;
    if (name->empty() || std::filesystem::path(*name).filename() != *name || name->starts_with("."))
      return map.mistake("module", "`module` names a file beside task.yaml", "module: reference.py");
    try {
      task_.module = read_file_within(folder_ / *name, kMostModuleBytes);
    } catch (const Error& error) {
      return map.mistake("module", std::string("`module`: ") + error.what());
    }
    if (task_.module.empty()) map.mistake("module", "`module`: " + *name + " is empty");
    if (first_not_utf8(task_.module) != task_.module.size())
      map.mistake("module", "`module`: " + *name + " is not UTF-8");
    bool behind = false;
    for (const TensorSpec& input : task_.inputs) {
      if (input.role == Role::kData && behind)
        map.mistake("module", "input `" + input.name + "` of role data stands behind parameters or buffers");
      behind = behind || input.role != Role::kData;
      if (input.role != Role::kData && input.state_dict.empty())
        map.mistake("module", "input `" + input.name + "` lacks its name in the module",
                    "state_dict: \"conv.weight\"");
      if (input.role != Role::kData && (!input.strides.empty() || input.offset))
        map.mistake("module",
                    "input `" + input.name + "`: parameters and buffers of a module are contiguous");
    }
  }

  // A list of shapes for all devices, or a map with a list for CPUs and one for GPUs.
  void read_timing(MapReader& root) {
    const Node* node = root_.find("timing");
    if (node == nullptr || !node->is_map()) {
      task_.timing = read_shapes(root, "timing", "timing");
      return;
    }
    root.expect("timing");
    MapReader map(*node, "`timing`", diagnostics_);
    task_.timing = read_shapes(map, "cpu", "timing.cpu");
    task_.gpu_timing = read_shapes(map, "gpu", "timing.gpu");
    map.finish();
    if (task_.gpu_timing == task_.timing && !task_.timing.empty())
      mistake(*node, "`cpu` and `gpu` list the same shapes", "timing: [...]");
    // A CPU's stages do not depend on the shapes of GPUs.
    Json without = yaml::to_json(root_);
    without["timing"].erase("gpu");
    task_.digest = sha256_hex(without.dump());
  }

  // `name`: the key as messages call it.
  std::vector<Dims> read_shapes(MapReader& parent, const char* key, const std::string& name) {
    std::vector<Dims> shapes;
    const std::vector<Node> nodes = parent.sequence(key, {.required = true});
    for (const Node& node : nodes) {
      MapReader map(node, "shape in `" + name + "`", diagnostics_);
      if (!map.usable()) continue;
      const std::size_t before = diagnostics_.size();
      Dims dims;
      for (const std::string& dim : task_.dims)
        dims[dim] =
            map.integer(dim, {.required = true, .low = 1, .high = static_cast<double>(kMaxSize)}).value_or(1);
      map.finish();
      if (diagnostics_.size() != before) continue;
      const auto listed = [&dims](const std::vector<Dims>& in) {
        return std::find(in.begin(), in.end(), dims) != in.end();
      };
      if (listed(shapes)) mistake(node, "this shape is listed twice");
      if (name == "hidden" && (listed(task_.timing) || listed(task_.gpu_timing)))
        mistake(node, "this shape is in `timing` already");
      shape_nodes_.emplace_back(dims, node);
      shapes.push_back(std::move(dims));
    }
    if (nodes.empty() && parent.has(key)) parent.mistake(key, "`" + name + "` needs at least one shape");
    return shapes;
  }

  void read_distribution(const Node& node) {
    MapReader map(node, "distribution", diagnostics_);
    if (!map.usable()) return;
    std::map<std::string, ValueSpec> distribution;
    bool named = false;
    for (const TensorSpec& tensor : task_.inputs) {
      const auto values = map.value(tensor.name);
      if (!values) continue;
      named = true;
      if (auto spec = read_values(*values, tensor, true)) distribution[tensor.name] = std::move(*spec);
    }
    map.finish();
    if (!named) mistake(node, "a distribution names at least one input");
    task_.distributions.push_back(std::move(distribution));
  }

  std::optional<Expression> read_cost(MapReader& map, const char* key) {
    const auto node = map.value(key);
    return node ? read_expression(*node, std::string("`") + key + "`") : std::nullopt;
  }

  // Everything that can be evaluated is, at every shape.
  void check_shapes() {
    for (const auto& [dims, node] : shape_nodes_) check_shape(task_, dims, node, diagnostics_);
  }

  std::filesystem::path folder_;
  Diagnostics& diagnostics_;
  Node root_;
  Task task_;
  std::set<std::string> claimed_;
  std::vector<std::pair<Dims, Node>> shape_nodes_;  // each shape of the file, and its place
};

}  // namespace

std::optional<Task> load_task(const std::filesystem::path& folder, Diagnostics& diagnostics) {
  std::string text;
  try {
    text = read_file(task_file(folder));
  } catch (const Error& error) {
    diagnostics.push_back({task_file(folder).string(), 0, 0, error.what(), ""});
    return std::nullopt;
  }
  return load_task_text(text, folder, diagnostics);
}

std::optional<Task> load_task_text(std::string_view text, const std::filesystem::path& folder,
                                   Diagnostics& diagnostics) {
  return TaskLoader(folder, diagnostics).load(text);
}

namespace {

// Folders with a task.yaml, sorted by name.
std::vector<std::filesystem::path> task_folders(const std::filesystem::path& folder,
                                                Diagnostics& diagnostics) {
  std::vector<std::filesystem::path> folders;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (std::filesystem::exists(it->path() / "task.yaml", ignored)) folders.push_back(it->path());
  }
  if (error) diagnostics.push_back({folder.string(), 0, 0, "cannot list the folder: " + error.message(), ""});
  std::sort(folders.begin(), folders.end(),
            [](const auto& a, const auto& b) { return a.filename() < b.filename(); });
  return folders;
}

}  // namespace

std::vector<Task> load_tasks(const std::filesystem::path& folder, Diagnostics& diagnostics) {
  return load_tasks(folder, {}, diagnostics, diagnostics);
}

std::vector<Task> load_tasks(const std::filesystem::path& folder, const std::set<std::string>& ids,
                             Diagnostics& diagnostics, Diagnostics& elsewhere) {
  std::vector<Task> tasks;
  for (const std::filesystem::path& path : task_folders(folder, diagnostics))
    if (auto task = load_task(path, ids.contains(path.filename().string()) ? diagnostics : elsewhere))
      tasks.push_back(std::move(*task));
  return tasks;
}

}  // namespace warpsmith::task
