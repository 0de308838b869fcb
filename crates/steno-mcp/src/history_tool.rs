//! A tool: its name, its arguments, and the function that answers a call.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::agent_history::AgentHistory;
use crate::tool_arguments::{ArgumentType, ToolArgument, ToolArguments};
use crate::tool_error::ToolError;

/// A tool.
#[derive(Debug)]
pub(crate) struct HistoryTool {
    /// The name. Some clients show the model nothing else.
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) arguments: &'static [ToolArgument],
    /// Arguments of a call that works, for messages.
    pub(crate) example: &'static str,
    /// Answers a call.
    pub(crate) answer: fn(&AgentHistory, &ToolArguments) -> Result<String, ToolError>,
}

impl HistoryTool {
    /// Answers a call with these arguments.
    pub(crate) fn call(
        &self,
        history: &AgentHistory,
        given: JsonObject,
    ) -> Result<String, ToolError> {
        let given = ToolArguments::new(self.arguments, given);
        let missing = self.arguments.iter().filter(|argument| argument.is_required);
        for argument in missing {
            if given.text(argument.name)?.is_none() {
                let ToolArgument { name, description, .. } = argument;
                let message = format!("{name} is missing: {description}");
                return Err(self.explain(ToolError::arguments(message)));
            }
        }
        let mut text = (self.answer)(history, &given).map_err(|error| self.explain(error))?;
        if !given.ignored.is_empty() {
            let names: Vec<&str> = self.arguments.iter().map(|argument| argument.name).collect();
            text.push_str(&format!(
                "\nIgnored arguments: {:?}. {} has: {}.",
                given.ignored,
                self.name,
                names.join(", ")
            ));
        }
        Ok(text)
    }

    /// Adds an example to an error about arguments.
    fn explain(&self, error: ToolError) -> ToolError {
        match error {
            ToolError::Arguments(message) => {
                ToolError::Arguments(format!("{message}\nExample: {}({})", self.name, self.example))
            }
            other => other,
        }
    }

    /// The tool as the protocol lists it.
    pub(crate) fn describe(&self) -> Tool {
        let describe = |argument: &ToolArgument| {
            let kind = match argument.kind {
                ArgumentType::Text => "string",
                ArgumentType::Number => "integer",
            };
            let schema = match argument.description {
                "" => json!({"type": kind}),
                description => json!({"type": kind, "description": description}),
            };
            (argument.name.to_owned(), schema)
        };
        let properties: Map<String, Value> = self.arguments.iter().map(describe).collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        let required = self.arguments.iter().filter(|argument| argument.is_required);
        let required: Vec<&str> = required.map(|argument| argument.name).collect();
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        Tool::new(self.name, self.description, Arc::new(schema))
            .with_annotations(ToolAnnotations::new().read_only(true))
    }
}
