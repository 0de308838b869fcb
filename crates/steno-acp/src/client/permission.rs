//! Who decides whether an agent may use a tool: a person, or a policy that stands for one.

use serde_json::{Value, json};
use steno_core::json::Object;

use super::{Client, ClientError, Event, Tell};

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// A person.
    Ask,
    /// Everything is allowed, once at a time.
    Allow,
    /// Nothing is.
    Deny,
}

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    option: Option<String>,
    /// In words.
    pub name: String,
}

impl Choice {
    /// Nobody decided.
    pub(super) fn cancelled() -> Self {
        Self { option: None, name: "cancelled".to_owned() }
    }

    fn of(option: &Value) -> Option<Self> {
        let option_id = option.get("optionId")?.as_str()?.to_owned();
        let name = option.get("name").and_then(Value::as_str).unwrap_or(&option_id).to_owned();
        Some(Self { option: Some(option_id), name })
    }

    /// The first option of one of these kinds, those that come first before others.
    fn of_kinds(request: &Object, kinds: [&str; 2]) -> Option<Self> {
        let is =
            |option: &&Value, kind: &str| option.get("kind").and_then(Value::as_str) == Some(kind);
        let option = |kind| options(request).iter().find(|option| is(option, kind));
        kinds.into_iter().find_map(option).and_then(Self::of)
    }

    fn allowing(request: &Object) -> Self {
        Self::of_kinds(request, ["allow_once", "allow_always"]).unwrap_or_else(Self::cancelled)
    }

    fn denying(request: &Object) -> Self {
        Self::of_kinds(request, ["reject_once", "reject_always"]).unwrap_or_else(Self::cancelled)
    }

    /// What a person's answer means: the number of an option, or yes or no.
    fn typed(request: &Object, line: &str) -> Option<Self> {
        let line = line.trim().to_lowercase();
        let number = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        if let Some(option) = number.and_then(|number| options(request).get(number)) {
            return Self::of(option);
        }
        match line.as_str() {
            "y" | "yes" => Some(Self::allowing(request)),
            "n" | "no" | "" => Some(Self::denying(request)),
            _ => None,
        }
    }

    fn outcome(&self) -> Value {
        match &self.option {
            Some(option) => json!({ "outcome": "selected", "optionId": option }),
            None => json!({ "outcome": "cancelled" }),
        }
    }
}

/// What can be chosen.
fn options(request: &Object) -> &[Value] {
    request.get("options").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

impl Client {
    /// The agent asks for permission.
    pub(super) fn permission(
        &mut self,
        id: &Value,
        request: &Object,
        tell: Tell<'_>,
    ) -> Result<(), ClientError> {
        match self.settings.policy {
            Policy::Allow => self.decide(id, request, &Choice::allowing(request), tell),
            Policy::Deny => self.decide(id, request, &Choice::denying(request), tell),
            Policy::Ask => {
                self.asked.push_back((id.clone(), request.clone()));
                if self.asked.len() == 1 {
                    tell(Event::Asks(request));
                }
                Ok(())
            }
        }
    }

    /// A person has answered.
    pub(super) fn typed(&mut self, line: &str, tell: Tell<'_>) -> Result<(), ClientError> {
        let Some((id, request)) = self.asked.pop_front() else { return Ok(()) };
        match Choice::typed(&request, line) {
            Some(choice) => self.decide(&id, &request, &choice, tell)?,
            None => self.asked.push_front((id, request)),
        }
        if let Some((_, request)) = self.asked.front() {
            tell(Event::Asks(request));
        }
        Ok(())
    }

    /// Answers a request for permission.
    pub(super) fn decide(
        &mut self,
        id: &Value,
        request: &Object,
        choice: &Choice,
        tell: Tell<'_>,
    ) -> Result<(), ClientError> {
        let result = json!({ "outcome": choice.outcome() });
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
        tell(Event::Decided(request, choice));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Object {
        let option = |id: &str, kind: &str| json!({ "optionId": id, "name": id, "kind": kind });
        let options = [
            option("always", "allow_always"),
            option("once", "allow_once"),
            option("no", "reject_once"),
        ];
        Object::from_iter([("options".to_owned(), options.to_vec().into())])
    }

    #[test]
    fn a_policy_chooses_what_binds_least() {
        let name = |choice: Choice| choice.name;
        assert_eq!(name(Choice::allowing(&request())), "once");
        assert_eq!(name(Choice::denying(&request())), "no");
        assert_eq!(Choice::denying(&Object::new()).outcome(), json!({ "outcome": "cancelled" }));
    }

    #[test]
    fn a_person_answers_by_number_or_word() {
        let typed = |line| Choice::typed(&request(), line).map(|choice| choice.name);
        assert_eq!(typed("1\n").as_deref(), Some("always"));
        assert_eq!(typed(" Y ").as_deref(), Some("once"));
        assert_eq!(typed("").as_deref(), Some("no"));
        assert_eq!(typed("4"), None);
        assert_eq!(typed("perhaps"), None);
    }
}
