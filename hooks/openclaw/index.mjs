// The plugin of OpenClaw: hands events to the Python entries, and puts their answer behind the prompt, or behind what a tool
// printed. Whatever goes wrong, it answers nothing, and in time: OpenClaw does not run a call if a handler throws or takes 15 s.
import { MAY_ACT, answerOf, quiet } from "../entries.mjs";

// The tools whose calls the hook is asked about, with the argument that says what they do.
const CALLS = { edit: "path", write: "path", apply_patch: "input", exec: "command" };
const HOUSEKEEPING = ["heartbeat", "memory"]; // turns that nobody asked for: the next prompt is told

/** Whether a session is a sub-agent's, by its key: `agent:<agent>:subagent:<id>`. */
const isSubAgent = ({ sessionKey }) => typeof sessionKey === "string" && sessionKey.split(":")[2] === "subagent";

// OpenClaw registers the plugin more than once, and runs the hooks of one registration with the results of another.
const directories = new Map(); // of the sessions that had a prompt
const sessions = new Map(); // the same sessions by their keys
const starters = new Map(); // the keys of the sessions that started sub-agents, by the keys of these
const compacted = new Set(); // the sessions whose next prompt gets their past again
const told = new Map(); // what goes with the results of calls, by their sessions and ids

/** Names a session: two agents may have sessions with the same id. */
const nameOf = ({ agentId = "", sessionId }) => `${agentId} ${sessionId}`;

/** The session that a sub-agent works for; the session itself if it is none; undefined if unknown. */
const ownerOf = (session, passed = []) => {
	if (!session || !isSubAgent(session)) return session;
	const starter = starters.get(session.sessionKey);
	return passed.includes(starter) ? undefined : ownerOf(sessions.get(starter), [...passed, starter]);
};

/** What the hook in an entry has to tell on an event of a session, or of its sub-agent; "" for nothing. */
const tell = (entry, name, session, fields) => {
	const cwd = directories.get(nameOf(session));
	const owner = ownerOf(session);
	if (!cwd || !owner) return "";
	const { agentId: agent, sessionId: session_id } = owner;
	const agent_id = owner === session ? undefined : session.sessionId;
	return answerOf(entry, { hook_event_name: name, runtime: "openclaw", agent, session_id, agent_id, cwd, ...fields });
};

export default {
	id: "session-memory",
	name: "session-memory",
	description: "Tells an agent what the other sessions did.",
	register(api) {
		const on = (name, handler) => api.on(name, quiet(handler));

		on("before_prompt_build", async ({ prompt, messages }, session) => {
			const { sessionKey, sessionId, workspaceDir, trigger } = session;
			if (!sessionId || !workspaceDir) return undefined;
			directories.set(nameOf(session), workspaceDir);
			if (sessionKey) sessions.set(sessionKey, { sessionKey, sessionId, agentId: session.agentId });
			if (HOUSEKEEPING.includes(trigger)) return undefined;
			const isFirst = !messages?.length;
			const isHelper = isSubAgent(session);
			if (isHelper && !isFirst) return undefined; // it was told with its task
			const source = compacted.delete(nameOf(session)) ? "compact" : isFirst && !isHelper ? "startup" : "";
			const start = source && tell("session_start.py", "session_start", session, { source });
			const update = tell("user_prompt_submit.py", "before_prompt_build", session, { prompt });
			const text = (await Promise.all([start, update])).filter(Boolean).join("\n\n");
			return text ? { appendContext: text } : undefined;
		});
		on("subagent_spawned", async (_event, { childSessionKey, requesterSessionKey }) => {
			starters.set(childSessionKey, requesterSessionKey);
		});
		on("before_tool_call", async ({ toolName, params, toolCallId }, session) => {
			const key = CALLS[toolName];
			const argument = key && params[key];
			if (typeof argument !== "string" || (key === "command" && !MAY_ACT.test(argument))) return undefined;
			const given = { [key]: argument, workdir: params.workdir }; // a command may have a directory of its own
			const call = { tool_name: toolName, tool_input: given, tool_use_id: toolCallId };
			const text = await tell("pre_tool_use.py", "before_tool_call", session, call);
			if (text) told.set(`${nameOf(session)} ${toolCallId}`, text);
			return undefined;
		});
		on("resolve_exec_env", async (_event, session) => {
			const { sessionId, agentId } = ownerOf(session) ?? {};
			return sessionId ? { OPENCLAW_SESSION_ID: sessionId, ...(agentId && { OPENCLAW_SESSION_AGENT: agentId }) } : undefined;
		});
		on("before_compaction", async (_event, session) => {
			if (!isSubAgent(session)) await tell("session_end.py", "before_compaction", session, { reason: "other" });
		});
		on("after_compaction", async (_event, session) => {
			compacted.add(nameOf(session));
		});
		// OpenClaw refuses this one, and nothing else, unless its user has switched the plugin on by name.
		const withText = quiet(async ({ toolCallId, result }, session) => {
			const call = `${nameOf(session)} ${toolCallId}`;
			const text = told.get(call);
			told.delete(call);
			if (!text || !Array.isArray(result?.content)) return undefined;
			return { result: { ...result, content: [...result.content, { type: "text", text }] } };
		});
		api.registerAgentToolResultMiddleware?.(withText, { runtimes: ["openclaw"], matcher: Object.keys(CALLS) });
	},
};
