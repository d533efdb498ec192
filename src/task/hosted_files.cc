#include "warpsmith/task/hosted_files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>
#include <string_view>

#include "candidate_folders.h"
#include "plan_text.h"

namespace warpsmith::task {

namespace fs = std::filesystem;

namespace {

constexpr int kDeepest = 4;                  // folders in a candidate's folder
constexpr std::size_t kLongestNaming = 200;  // of a line that names the encoding, what is looked at

// What tells the tiers apart.
struct Form {
  HostedTier tier;
  const char* folder;  // of a task
  const char*
      main;  // what the file of a candidate of one file is called in it; a folder of tier `python` has it
  const char* ending;  // of a candidate of one file
  const char* wrong_ending;
};

const Form& form_of(HostedTier tier) {
  static const Form kExtension = {HostedTier::kExtension, "extension", "kernel.cu", ".cu",
                                  "a file of C++ or CUDA ends in .cu, .cpp, .cuh, .h or the like"};
  static const Form kPython = {HostedTier::kPython, "python", "model.py", ".py",
                               "a file of a Python candidate ends in .py, or as C++ and CUDA do"};
  return tier == HostedTier::kPython ? kPython : kExtension;
}

bool is_source(const fs::path& path, const Form& form) {
  const std::string ending = path.extension().string();
  return ending == form.ending || is_native_source(ending);
}

bool is_made_by_python(const fs::path& path) { return path.filename() == "__pycache__"; }

void load_below(const fs::path& folder, const std::string& inside, int depth, const Form& form,
                HostedSource& to, Diagnostics& diagnostics) {
  for (const fs::path& path : sorted_names(folder, diagnostics)) {
    const std::string name = inside + path.filename().string();
    if (fs::is_directory(path)) {
      if (is_made_by_python(path)) continue;
      if (depth == kDeepest)
        diagnostics.push_back({path.string(), 0, 0, "folders in folders, too deep", ""});
      else
        load_below(path, name + "/", depth + 1, form, to, diagnostics);
      continue;
    }
    if (!is_source(path, form)) {
      diagnostics.push_back({path.string(), 0, 0, form.wrong_ending, ""});
      continue;
    }
    if (std::optional<std::string> content = read_source(path, diagnostics))
      to.files.push_back({name, std::move(*content)});
  }
}

void load_folder(const Form& form, HostedSource& to, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.size();
  load_below(to.path, "", 1, form, to, diagnostics);
  if (diagnostics.size() != before) return;
  if (to.files.empty()) {
    diagnostics.push_back({to.path.string(), 0, 0, "the folder holds no file", ""});
  } else if (form.tier == HostedTier::kPython) {
    const auto main = std::find_if(to.files.begin(), to.files.end(),
                                   [&](const HostedFile& file) { return file.path == form.main; });
    if (main == to.files.end())
      diagnostics.push_back({to.path.string(), 0, 0, "the folder holds no model.py",
                             "model.py defines `ModelNew` or `forward`, and imports the others"});
    else
      std::rotate(to.files.begin(), main, main + 1);
  }
}

void load_file(const Form& form, HostedSource& to, Diagnostics& diagnostics) {
  if (to.path.extension() != form.ending)
    diagnostics.push_back(
        {to.path.string(), 0, 0,
         "a candidate of one file ends in " + std::string(form.ending) + "; several lie in a folder", ""});
  else if (std::optional<std::string> content = read_source(to.path, diagnostics))
    to.files.push_back({form.main, std::move(*content)});
}

// A comment in one of the first two lines that names another encoding than UTF-8: then Python reads that.
bool names_an_encoding(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) return false;  // a mark of UTF-8
  static const std::regex kBlank("[ \\t\\f]*(#.*)?\r?"),
      kNamed("[ \\t\\f]*#.*?coding[:=][ \\t]*([-_.a-zA-Z0-9]+).*\r?");
  for (int number = 0; number < 2; ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string line(text.substr(0, std::min<std::size_t>(end, kLongestNaming)));
    std::smatch found;
    if (std::regex_match(line, found, kNamed)) {
      std::string name = found[1];
      for (char& c : name)
        c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      return name != "utf-8" && name != "utf8" && !name.starts_with("utf-8-");
    }
    if (end == text.size() || !std::regex_match(line, kBlank)) return false;
    text.remove_prefix(end + 1);
  }
  return false;
}

// The range of a character's second byte: neither too many bytes for it, nor half a pair (U+D800 to U+DFFF),
// nor over U+10FFFF.
bool may_follow(unsigned char first, unsigned char second) {
  const int low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const int high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  return second >= low && second <= high;
}

// Where the first byte that Python would not read stands; it takes UTF-8 without NUL, or what the file says
// that it is, which is left to Python but for the NUL.
std::size_t first_odd_byte(std::string_view text) {
  if (names_an_encoding(text)) return text.find('\0');
  std::size_t i = 0;
  while (i < text.size()) {
    const auto byte = [&](std::size_t k) {
      return k < text.size() ? static_cast<unsigned char>(text[k]) : static_cast<unsigned char>(0);
    };
    const unsigned char first = byte(i);
    const std::size_t length = first < 0x80                    ? 1
                               : first >= 0xc2 && first < 0xe0 ? 2
                               : first >= 0xe0 && first < 0xf0 ? 3
                               : first >= 0xf0 && first < 0xf5 ? 4
                                                               : 0;
    if (first == 0 || length == 0) return i;
    if (length > 1 && !may_follow(first, byte(i + 1))) return i;
    for (std::size_t k = 2; k < length; ++k)
      if ((byte(i + k) & 0xc0) != 0x80) return i;
    i += length;
  }
  return std::string_view::npos;
}

bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

void check_python(const HostedSource& source, Diagnostics& diagnostics) {
  if (source.expected == "compile_error") return;
  for (const HostedFile& file : source.files) {
    const std::string path = (fs::is_directory(source.path) ? source.path / file.path : source.path).string();
    if (const std::size_t odd = first_odd_byte(file.content); odd != std::string_view::npos) {
      const std::size_t newline = odd == 0 ? std::string::npos : file.content.rfind('\n', odd - 1);
      const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
      const auto lines =
          std::count(file.content.begin(), file.content.begin() + static_cast<std::ptrdiff_t>(odd), '\n');
      diagnostics.push_back({path, static_cast<int>(lines) + 1, static_cast<int>(odd - begin) + 1,
                             "a byte that is not UTF-8", ""});
    }
  }
  const HostedFile& model = source.files.front();
  if (source.expected.empty()) return;
  if (!has_word(model.content, "ModelNew") && !has_word(model.content, "forward"))
    diagnostics.push_back({(fs::is_directory(source.path) ? source.path / model.path : source.path).string(),
                           1, 1, "defines neither `ModelNew` nor `forward`",
                           "class ModelNew(torch.nn.Module): …, or def forward(…): …"});
}

}  // namespace

bool is_native_source(std::string_view path) {
  constexpr std::array<std::string_view, 8> kEndings = {".cu",  ".cuh", ".cpp", ".cc",
                                                        ".cxx", ".h",   ".hpp", ".inl"};
  return std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view e) { return path.ends_with(e); });
}

bool has_plan(const HostedSource& source) {
  static const std::regex kPlan("(^|\n)[ \t]*//[ \t]*plan:");
  return source.tier == HostedTier::kExtension && !fs::is_directory(source.path) &&
         std::regex_search(source.files.front().content, kPlan);
}

namespace {

std::optional<HostedSource> load_source(HostedTier tier, const fs::path& path, const std::string& expected,
                                        Diagnostics& diagnostics) {
  const Form& form = form_of(tier);
  const std::size_t before = diagnostics.size();
  HostedSource source{tier, path.stem().string(), expected, path, {}};
  if (fs::is_directory(path))
    load_folder(form, source, diagnostics);
  else
    load_file(form, source, diagnostics);
  if (tier == HostedTier::kPython && diagnostics.size() == before) check_python(source, diagnostics);
  return diagnostics.size() == before ? std::optional(std::move(source)) : std::nullopt;
}

}  // namespace

std::optional<HostedSource> load_hosted_source(const fs::path& path, Diagnostics& diagnostics) {
  const bool of_python = fs::is_directory(path) ? fs::exists(path / "model.py") : path.extension() == ".py";
  return load_source(of_python ? HostedTier::kPython : HostedTier::kExtension, path, "ok", diagnostics);
}

std::optional<HostedSource> load_imported_source(const fs::path& path, Diagnostics& diagnostics) {
  const bool of_python = path.extension() == ".py";
  if (of_python || path.extension() == ".cu")
    return load_source(of_python ? HostedTier::kPython : HostedTier::kExtension, path, "", diagnostics);
  diagnostics.push_back({path.string(), 0, 0, "an imported kernel is a file that ends in .py or .cu", ""});
  return std::nullopt;
}

std::vector<HostedSource> load_imported_sources(const fs::path& task_folder, Diagnostics& diagnostics) {
  std::vector<HostedSource> sources;
  const fs::path folder = task_folder / kImportedFolder;
  if (!fs::exists(folder)) return sources;
  for (const fs::path& path : sorted_names(folder, diagnostics)) {
    if (is_made_by_python(path) || path.filename() == kImportedOrigin) continue;
    if (std::optional<HostedSource> source = load_imported_source(path, diagnostics))
      sources.push_back(std::move(*source));
  }
  return sources;
}

std::vector<HostedSource> load_hosted_sources(const Task& task, HostedTier tier, Diagnostics& diagnostics) {
  const Form& form = form_of(tier);
  std::vector<HostedSource> sources;
  for (const auto& [expected, folder] : folders_by_verdict(task.folder / form.folder, diagnostics)) {
    for (const fs::path& path : sorted_names(folder, diagnostics)) {
      if (is_made_by_python(path)) continue;
      if (std::optional<HostedSource> source = load_source(tier, path, expected, diagnostics))
        sources.push_back(std::move(*source));
    }
  }
  return sources;
}

std::vector<HostedSource> load_hosted_sources(const Task& task, Diagnostics& diagnostics) {
  std::vector<HostedSource> sources = load_hosted_sources(task, HostedTier::kExtension, diagnostics);
  for (HostedSource& source : load_hosted_sources(task, HostedTier::kPython, diagnostics))
    sources.push_back(std::move(source));
  return sources;
}

}  // namespace warpsmith::task
