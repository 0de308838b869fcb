//! Translates text completions into chat completions: OpenAI's older API, and Amazon, Meta and Mistral models on
//! Bedrock, which name the same fields differently.

use serde_json::json;

use super::PROVIDER_USAGE_FIELD;
use crate::decoding::json_fields::{count_field, list_field, object_field, text_field};
use steno_model::json::{Object, Value};

pub(super) fn translate_request(mut request: Object) -> Object {
    // Mistral's fill-in-the-middle request also has the text that follows the gap.
    let prompt = request.shift_remove("prompt").or_else(|| request.shift_remove("inputText"));
    let prompts = match prompt {
        Some(Value::Array(prompts)) if prompts.iter().all(Value::is_string) => prompts,
        Some(prompt @ Value::String(_)) => vec![prompt],
        // Token ids instead of text.
        Some(other) => vec![json!(other.to_string())],
        None => Vec::new(),
    };
    let suffix = text_field(&request, "suffix").filter(|suffix| !suffix.is_empty());
    let suffix = suffix.map(|suffix| json!(format!("[suffix]\n{suffix}")));
    let contents = prompts.into_iter().chain(suffix);
    let messages: Vec<_> =
        contents.map(|prompt| json!({"role": "user", "content": prompt})).collect();
    request.insert("messages".to_owned(), messages.into());
    request
}

pub(super) fn translate_answer(answer: Object) -> Object {
    translate_choices(answer, "message")
}

pub(super) fn translate_event(event: Object) -> Object {
    let mut event = translate_choices(event, "delta");
    event.insert("object".to_owned(), json!("chat.completion.chunk"));
    event
}

/// Wraps each text in a message, or in a delta of one.
fn translate_choices(mut answer: Object, field: &str) -> Object {
    let choice = |index: usize, content: &Value, reason: &Value| json!({"index": index, field: {"role": "assistant", "content": content}, "finish_reason": reason});
    let listed = ["choices", "results", "outputs"].iter().find(|name| answer.contains_key(**name));
    let choices: Vec<Value> = match listed {
        Some(name) => {
            let items = list_field(&answer, name).iter().enumerate();
            items.map(|(at, item)| translate_listed_choice(at, item, field)).collect()
        }
        // A single text: Llama, and Titan in a stream.
        None => {
            let content = answer.get("generation").or(answer.get("outputText"));
            let reason = answer.get("stop_reason").or(answer.get("completionReason"));
            let reason = reason.cloned().unwrap_or_default();
            content.map(|content| choice(0, content, &reason)).into_iter().collect()
        }
    };
    if let Some(usage) = bedrock_usage(&answer) {
        let provider_usage = answer.get("usage").cloned().unwrap_or_else(|| usage.clone());
        answer.insert(PROVIDER_USAGE_FIELD.to_owned(), provider_usage);
        answer.insert("usage".to_owned(), usage);
    }
    ["results", "outputs", "generation", "outputText"].iter().for_each(|name| {
        answer.shift_remove(*name);
    });
    answer.insert("choices".to_owned(), choices.into());
    answer
}

fn translate_listed_choice(at: usize, item: &Value, field: &str) -> Value {
    let content = item.get("text").or(item.get("outputText"));
    let Some(content) = content else { return item.clone() };
    let reason = ["finish_reason", "stop_reason", "completionReason"]
        .iter()
        .find_map(|name| item.get(*name))
        .cloned()
        .unwrap_or_default();
    let index = item.get("index").cloned().unwrap_or_else(|| json!(at));
    json!({"index": index, field: {"role": "assistant", "content": content}, "finish_reason": reason})
}

/// Usage of Bedrock models, in OpenAI's field names.
fn bedrock_usage(answer: &Object) -> Option<Value> {
    let counts = |input: u64, output: u64| {
        (input + output > 0).then(|| json!({"prompt_tokens": input, "completion_tokens": output}))
    };
    if let Some(metrics) = object_field(answer, "amazon-bedrock-invocationMetrics") {
        return counts(
            count_field(metrics, "inputTokenCount"),
            count_field(metrics, "outputTokenCount"),
        );
    }
    if answer.contains_key("usage") {
        return None;
    }
    let results = list_field(answer, "results").iter().filter_map(Value::as_object);
    let titan = results.map(|result| count_field(result, "tokenCount")).sum::<u64>();
    counts(
        count_field(answer, "prompt_token_count") + count_field(answer, "inputTextTokenCount"),
        count_field(answer, "generation_token_count") + titan,
    )
}

#[cfg(test)]
mod tests {
    use super::super::into_object;
    use super::*;

    fn of(value: Value) -> Object {
        into_object(value)
    }

    #[test]
    fn every_model_becomes_one_choice() {
        let answers = [
            json!({"choices": [{"text": "Hi", "index": 0, "finish_reason": "stop"}]}),
            json!({"generation": "Hi", "stop_reason": "stop"}),
            json!({"outputs": [{"text": "Hi", "stop_reason": "stop"}]}),
            json!({"results": [{"outputText": "Hi", "completionReason": "stop"}]}),
        ];
        for answer in answers {
            let translated = translate_answer(of(answer.clone()));
            assert_eq!(
                translated["choices"],
                json!([{"index": 0, "message": {"role": "assistant", "content": "Hi"},
                    "finish_reason": "stop"}]),
                "{answer}"
            );
        }
    }

    #[test]
    fn tokens_have_one_name() {
        let llama = json!({"generation": "", "prompt_token_count": 3, "generation_token_count": 4});
        let titan =
            json!({"inputTextTokenCount": 3, "results": [{"outputText": "", "tokenCount": 4}]});
        for answer in [llama, titan] {
            assert_eq!(
                translate_answer(of(answer))["usage"],
                json!({"prompt_tokens": 3, "completion_tokens": 4})
            );
        }
    }
}
