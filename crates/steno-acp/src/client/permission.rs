//! Decides whether an agent may use a tool: by asking the user, or by a policy.

use serde_json::{Value, json};
use steno_model::json::Object;

use super::{AgentClient, ClientError, ClientEvent, EventSink};

/// How permission requests are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermissionPolicy {
    /// Ask the user.
    Ask,
    /// Allow every request, each only once.
    Allow,
    /// Deny every request.
    Deny,
}

/// The answer to a permission request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionChoice {
    option: Option<String>,
    /// The name of the chosen option.
    pub name: String,
}

impl PermissionChoice {
    /// The answer without a decision.
    pub(super) fn cancelled() -> Self {
        Self { option: None, name: "cancelled".to_owned() }
    }

    fn from_option(option: &Value) -> Option<Self> {
        let option_id = option.get("optionId")?.as_str()?.to_owned();
        let name = option.get("name").and_then(Value::as_str).unwrap_or(&option_id).to_owned();
        Some(Self { option: Some(option_id), name })
    }

    /// The first option of the first kind that the request offers.
    fn first_of_kinds(request: &Object, kinds: [&str; 2]) -> Option<Self> {
        let is =
            |option: &&Value, kind: &str| option.get("kind").and_then(Value::as_str) == Some(kind);
        let option = |kind| request_options(request).iter().find(|option| is(option, kind));
        kinds.into_iter().find_map(option).and_then(Self::from_option)
    }

    fn allow(request: &Object) -> Self {
        Self::first_of_kinds(request, ["allow_once", "allow_always"])
            .unwrap_or_else(Self::cancelled)
    }

    fn deny(request: &Object) -> Self {
        Self::first_of_kinds(request, ["reject_once", "reject_always"])
            .unwrap_or_else(Self::cancelled)
    }

    /// Parses the user's answer: the number of an option, or yes or no.
    fn from_typed_line(request: &Object, line: &str) -> Option<Self> {
        let line = line.trim().to_lowercase();
        let number = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        if let Some(option) = number.and_then(|number| request_options(request).get(number)) {
            return Self::from_option(option);
        }
        match line.as_str() {
            "y" | "yes" => Some(Self::allow(request)),
            "n" | "no" | "" => Some(Self::deny(request)),
            _ => None,
        }
    }

    fn to_outcome(&self) -> Value {
        match &self.option {
            Some(option) => json!({ "outcome": "selected", "optionId": option }),
            None => json!({ "outcome": "cancelled" }),
        }
    }
}

/// The options of a request.
fn request_options(request: &Object) -> &[Value] {
    request.get("options").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

impl AgentClient {
    /// Handles a permission request of the agent.
    pub(super) fn handle_permission(
        &mut self,
        id: &Value,
        request: &Object,
        on_event: EventSink<'_>,
    ) -> Result<(), ClientError> {
        match self.settings.policy {
            PermissionPolicy::Allow => {
                self.answer_permission(id, request, &PermissionChoice::allow(request), on_event)
            }
            PermissionPolicy::Deny => {
                self.answer_permission(id, request, &PermissionChoice::deny(request), on_event)
            }
            PermissionPolicy::Ask => {
                self.pending_permissions.push_back((id.clone(), request.clone()));
                if self.pending_permissions.len() == 1 {
                    on_event(ClientEvent::PermissionRequested(request));
                }
                Ok(())
            }
        }
    }

    /// Handles a line that the user typed.
    pub(super) fn handle_typed_line(
        &mut self,
        line: &str,
        on_event: EventSink<'_>,
    ) -> Result<(), ClientError> {
        let Some((id, request)) = self.pending_permissions.pop_front() else { return Ok(()) };
        match PermissionChoice::from_typed_line(&request, line) {
            Some(choice) => self.answer_permission(&id, &request, &choice, on_event)?,
            None => self.pending_permissions.push_front((id, request)),
        }
        if let Some((_, request)) = self.pending_permissions.front() {
            on_event(ClientEvent::PermissionRequested(request));
        }
        Ok(())
    }

    /// Sends the answer to a permission request.
    pub(super) fn answer_permission(
        &mut self,
        id: &Value,
        request: &Object,
        choice: &PermissionChoice,
        on_event: EventSink<'_>,
    ) -> Result<(), ClientError> {
        let result = json!({ "outcome": choice.to_outcome() });
        self.send_message(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
        on_event(ClientEvent::PermissionDecided(request, choice));
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
    fn a_policy_prefers_options_that_apply_once() {
        let name = |choice: PermissionChoice| choice.name;
        assert_eq!(name(PermissionChoice::allow(&request())), "once");
        assert_eq!(name(PermissionChoice::deny(&request())), "no");
        assert_eq!(
            PermissionChoice::deny(&Object::new()).to_outcome(),
            json!({ "outcome": "cancelled" })
        );
    }

    #[test]
    fn the_user_answers_by_number_or_word() {
        let typed =
            |line| PermissionChoice::from_typed_line(&request(), line).map(|choice| choice.name);
        assert_eq!(typed("1\n").as_deref(), Some("always"));
        assert_eq!(typed(" Y ").as_deref(), Some("once"));
        assert_eq!(typed("").as_deref(), Some("no"));
        assert_eq!(typed("4"), None);
        assert_eq!(typed("perhaps"), None);
    }
}
