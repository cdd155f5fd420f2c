// The plugin of OpenCode and its forks: hands events to the Python entries beside it, and puts their answer behind the prompt,
// or behind what a tool printed. Whatever goes wrong, it answers nothing: OpenCode has no deadline for a plugin, and ends a run
// at a throw.
import { MAY_ACT, answerOf, guarded } from "../entries.mjs";

// The tools whose calls the hook is asked about, with the argument that says what they do.
const CALLS = { edit: "filePath", write: "filePath", apply_patch: "patchText", bash: "command" };

/** The plugin of the runtime with this name, which its events state. */
export const pluginOf = (runtime) => async ({ directory }) => {
	const subAgents = new Set(); // the ids of their sessions, which are told nothing
	const starts = new Map(); // what a session is told with its next prompt, by its id: a promise
	const told = new Map(); // what goes with the results of calls, by their ids

	/** What the hook in an entry has to tell on an event of a session; "" for nothing. */
	const ask = async (entry, name, sessionID, fields) => {
		const event = { hook_event_name: name, runtime, session_id: sessionID, cwd: directory, ...fields };
		return answerOf(entry, event);
	};

	return guarded({
		event: async ({ event }) => {
			const id = event.properties?.sessionID ?? event.properties?.info?.id;
			if (event.type === "session.created") {
				if (event.properties.info?.parentID) subAgents.add(id);
				else starts.set(id, ask("session_start.py", event.type, id, { source: "startup" }));
			} else if (event.type === "session.compacted" && !subAgents.has(id)) {
				starts.set(id, ask("session_start.py", event.type, id, { source: "compact" }));
			}
		},
		"chat.message": async ({ sessionID }, { parts }) => {
			const last = parts.at(-1);
			if (subAgents.has(sessionID) || !last?.id || !last.messageID) return;
			const typed = parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text);
			const start = starts.get(sessionID);
			starts.delete(sessionID);
			const prompt = ask("user_prompt_submit.py", "chat.message", sessionID, { prompt: typed.join("\n\n") });
			const text = (await Promise.all([start, prompt])).filter(Boolean).join("\n\n");
			// Parts are read in the order of their ids.
			const id = `${last.id.slice(0, -4)}zzzz`;
			if (text) parts.push({ id, sessionID, messageID: last.messageID, type: "text", text, synthetic: true });
		},
		"tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
			const key = CALLS[tool];
			const argument = key && args?.[key];
			const isOne = typeof argument === "string" && (key !== "command" || MAY_ACT.test(argument));
			if (!isOne || subAgents.has(sessionID)) return;
			const call = { tool_name: tool, tool_input: { [key]: argument }, tool_use_id: callID };
			const text = await ask("pre_tool_use.py", "tool.execute.before", sessionID, call);
			if (text) told.set(callID, text);
		},
		"tool.execute.after": async ({ callID }, output) => {
			const text = told.get(callID);
			told.delete(callID);
			if (text && typeof output.output === "string") output.output += `\n\n${text}`;
		},
		"experimental.session.compacting": async ({ sessionID }) => {
			await ask("session_end.py", "experimental.session.compacting", sessionID, { reason: "other" });
		},
		"shell.env": async ({ sessionID }, output) => {
			if (sessionID) output.env[`${runtime.toUpperCase()}_SESSION_ID`] = sessionID;
		},
	});
};

// Kilo loads this file too if its user has named it in the settings of a project that OpenCode shares.
const isInKilo = process.env.KILO_PID === String(process.pid);

export const SessionMemory = pluginOf(isInKilo ? "kilo" : "opencode");
