#!/usr/bin/env node
// Runs the binary of the platform package and nothing else. `steno hooks install` writes that binary's own path into
// the settings of agents, so hooks never start Node.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

/** Returns the path of the binary for this machine; ends the process if there is none. */
function findProgram() {
  const name = `@stenographer/${process.platform}-${process.arch}`;
  try {
    return require.resolve(`${name}/bin/steno`);
  } catch {
    console.error(`error: the package ${name} is not installed`);
    console.error("hint: reinstall stenographer with optional dependencies; if there is no package for this");
    console.error("hint: platform, build Steno from source: cargo install --locked --path crates/stenographer");
    process.exit(1);
  }
}

/** Runs the binary as a child process, passes signals on, and ends as it ended. */
function runAsChild(program) {
  const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
    process.on(signal, () => child.kill(signal));
  }
  child.on("error", (error) => {
    console.error(`error: could not start ${program}: ${error.message}`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
}

const program = findProgram();
if (typeof process.execve === "function") {
  // Replaces this process. Newer versions of Node only.
  process.execve(program, ["steno", ...process.argv.slice(2)]);
} else {
  runAsChild(program);
}
