// The Python entries beside this file, as the plugins of OpenCode, its forks, Cline and OpenClaw ask them. Whatever goes wrong, there is no
// answer: these runtimes end a turn or refuse a call at a throw.
import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ENTRIES = dirname(fileURLToPath(import.meta.url));
const DEADLINE_MS = 2000; // OpenCode has none for a plugin; Cline ends a turn after 3 seconds
const MOST_CHARACTERS = 64 * 1024;

// Commands that may run git or a package manager, as `may_act` in session_memory/common/text/acting_commands.py.
export const MAY_ACT = /git|\b(?:npm|pnpm|yarn|bun|npx|bunx|pip|pip3|pipx|uv|uvx|poetry|conda|cargo|go|gem|bundle|composer|brew|deno|dotnet) /;

/** The same hook, which never throws. */
export const quiet = (hook) => async (...given) => {
	try {
		return await hook(...given);
	} catch {
		return undefined; // nothing is told
	}
};

/** The same hooks, none of which ever throws. */
export const guarded = (hooks) => Object.fromEntries(Object.entries(hooks).map(([name, hook]) => [name, quiet(hook)]));

/** The text that an entry answers to an event; "" for nothing. */
export const answerOf = async (entry, event) => {
	try {
		return textIn(await printedBy(entry, JSON.stringify(event)));
	} catch {
		return ""; // no process could be started
	}
};

/** What a Python entry prints on an event; "" if it fails or takes too long, and then it is killed with all it started. */
function printedBy(entry, event) {
	return new Promise((settle) => {
		let printed = "";
		const python = process.env.SESSION_MEMORY_PYTHON || "python3";
		const child = spawn(python, ["-I", "-S", join(ENTRIES, entry)], {
			detached: true, // a process group of its own, to be killed as a whole
			stdio: ["pipe", "pipe", "ignore"],
			windowsHide: true,
		});
		const end = (answer) => {
			clearTimeout(timer);
			settle(answer);
		};
		const kill = () => {
			end("");
			try {
				process.kill(-child.pid, "SIGKILL");
			} catch {
				child.kill("SIGKILL"); // it leads no group: on Windows, or as it is gone
			}
		};
		const timer = setTimeout(kill, DEADLINE_MS);
		child.on("error", () => end(""));
		child.on("close", (code) => end(code === 0 ? printed : ""));
		child.stdin.on("error", () => {}); // EPIPE: it ended before it read
		child.stdout.setEncoding("utf8").on("data", (text) => {
			printed += text;
			if (printed.length > MOST_CHARACTERS) kill();
		});
		child.stdin.end(event);
	});
}

/** The text in an entry's answer; "" where there is nothing to tell. */
function textIn(answer) {
	try {
		const { text } = JSON.parse(answer);
		return typeof text === "string" ? text : "";
	} catch {
		return "";
	}
}
