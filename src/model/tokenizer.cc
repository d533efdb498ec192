#include "warpsmith/model/tokenizer.h"

#include <utility>

#include "coding.h"
#include "warpsmith/base/text.h"
#include "warpsmith/tokenizer/pretrained.h"

namespace warpsmith::model {

namespace {

class PretrainedCoding final : public Tokenizer::Coding {
 public:
  PretrainedCoding(std::string json, const std::string& name, tokenizer::Frame frame)
      : json_(std::move(json)),
        tokens_(tokenizer::Pretrained::from_json(json_, name)),
        frame_(std::move(frame)) {}

  std::string to_json() const override { return json_; }
  std::string to_hugging_face() const override { return json_; }
  const tokenizer::Frame* frame() const override { return &frame_; }
  int size() const override { return tokens_.size(); }
  std::vector<Token> encode(std::string_view text) const override { return tokens_.encode(text); }
  std::string decode(std::span<const Token> tokens) const override { return tokens_.decode(tokens, false); }
  // As one text, so that its tokens are those of the template's.
  std::vector<Token> encode_prompt(std::string_view prompt) const override {
    const std::string kept = frame_.trims ? trim(prompt) : std::string(prompt);
    return tokens_.encode(frame_.before + kept + frame_.behind);
  }
  Token end() const override { return frame_.end; }
  const std::vector<Token>& stops() const override { return frame_.stops; }

 private:
  std::string json_;
  tokenizer::Pretrained tokens_;
  tokenizer::Frame frame_;
};

}  // namespace

Tokenizer Tokenizer::pretrained(std::string json, const std::string& name, tokenizer::Frame frame) {
  return Tokenizer(std::make_shared<PretrainedCoding>(std::move(json), name, std::move(frame)));
}

std::string Tokenizer::to_json() const { return coding_->to_json(); }
std::string Tokenizer::to_hugging_face() const { return coding_->to_hugging_face(); }
const tokenizer::Frame* Tokenizer::frame() const { return coding_->frame(); }
int Tokenizer::size() const { return coding_->size(); }
std::vector<Token> Tokenizer::encode(std::string_view text) const { return coding_->encode(text); }
std::string Tokenizer::decode(std::span<const Token> tokens) const { return coding_->decode(tokens); }
const std::vector<Token>& Tokenizer::stops() const { return coding_->stops(); }

std::vector<Token> Tokenizer::encode_prompt(std::string_view prompt) const {
  return coding_->encode_prompt(prompt);
}

FittedPrompt Tokenizer::encode_fitting(std::string_view prompt, std::span<const std::string> shorter,
                                       std::int64_t room) const {
  FittedPrompt fitted{0, encode_prompt(prompt)};
  while (fitted.left_out < shorter.size() && static_cast<std::int64_t>(fitted.tokens.size()) > room)
    fitted.tokens = encode_prompt(shorter[fitted.left_out++]);
  return fitted;
}

std::vector<Token> Tokenizer::encode_completion(std::string_view completion) const {
  std::vector<Token> tokens = coding_->encode(completion);
  tokens.push_back(coding_->end());
  return tokens;
}

}  // namespace warpsmith::model
