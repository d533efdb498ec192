// Where PCRE2 and ICU are missing: tokenizers of Hugging Face folders cannot be read.
#include <optional>

#include "warpsmith/base/error.h"
#include "warpsmith/tokenizer/pretrained.h"

namespace warpsmith::tokenizer {

struct Pretrained::State {
  std::vector<Token> none;
};

Pretrained::Pretrained(std::unique_ptr<State> state) : state_(std::move(state)) {}
Pretrained::Pretrained(Pretrained&&) noexcept = default;
Pretrained& Pretrained::operator=(Pretrained&&) noexcept = default;
Pretrained::~Pretrained() = default;

Pretrained Pretrained::load(const std::filesystem::path& file) { return from_json("", file.string()); }
Pretrained Pretrained::from_json(std::string_view, const std::string& name) {
  throw Error(name + ": this program was built without PCRE2 and ICU, which tokenizers of Hugging Face need",
              kExitUsage);
}

std::int32_t Pretrained::size() const { return 0; }
const std::vector<Token>& Pretrained::before() const { return state_->none; }
const std::vector<Token>& Pretrained::behind() const { return state_->none; }
std::vector<Token> Pretrained::encode(std::string_view) const { return {}; }
std::string Pretrained::decode(std::span<const Token>, bool) const { return {}; }
std::optional<Token> Pretrained::find(std::string_view) const { return std::nullopt; }

}  // namespace warpsmith::tokenizer
