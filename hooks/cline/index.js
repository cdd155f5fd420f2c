// The plugin of Cline: hands events to the Python entries beside it. Their answer follows the prompt, or is the reason why a call is
// not run. Whatever goes wrong, it answers nothing: Cline ends a turn if a plugin throws or takes more than 3 seconds.
import { MAY_ACT, answerOf, guarded } from "../entries.mjs";

// The tools whose calls the hook is asked about, with the input that says what they do.
const CALLS = { editor: "path", apply_patch: "input", run_commands: "commands" };

/** The directory of a session, from Cline's context of a plugin. */
let origin = { cwd: process.cwd() };
let isNew = true; // until the first prompt

export default {
	name: "session-memory",
	manifest: { capabilities: ["hooks"] },
	setup(_api, context) {
		origin = { cwd: process.cwd(), session_id: context?.session?.sessionId };
	},
	hooks: guarded({
		beforeRun: async ({ snapshot }) => {
			const event = eventOf("beforeRun", snapshot);
			const prompt = ask("user_prompt_submit.py", { ...event, prompt: typedIn(snapshot.messages.at(-1)) });
			const start = isNew && !event.agent_id && startOf(snapshot);
			isNew &&= Boolean(event.agent_id);
			const text = (await Promise.all([start, prompt])).filter(Boolean).join("\n\n");
			return text ? { appendContext: text } : undefined;
		},
		beforeTool: async ({ snapshot, toolCall, input }) => {
			const key = CALLS[toolCall.toolName];
			const argument = key && input?.[key];
			if (!argument || (key === "commands" && !MAY_ACT.test(JSON.stringify(argument)))) return undefined;
			const call = { tool_name: toolCall.toolName, tool_input: { [key]: argument }, tool_use_id: toolCall.toolCallId };
			const reason = await ask("pre_tool_use.py", { ...eventOf("beforeTool", snapshot), ...call });
			return reason ? { skip: true, reason } : undefined;
		},
	}),
};

const ask = async (entry, event) => (event.session_id ? answerOf(entry, event) : "");

/** The event of a session, or of its sub-agent. */
function eventOf(name, { agentId, parentAgentId }) {
	const event = { hook_event_name: name, runtime: "cline", ...origin };
	return parentAgentId ? { ...event, agent_id: agentId } : event;
}

/** What a session is told at its start: the messages of one that goes on come before the prompt. */
function startOf(snapshot) {
	const source = snapshot.messages.length > 1 ? "resume" : "startup";
	return ask("session_start.py", { ...eventOf("setup", snapshot), source });
}

/** The prompt in a message, without the tag that Cline puts around it. */
function typedIn(message) {
	const texts = (message?.content ?? []).filter((part) => part.type === "text").map((part) => part.text);
	return texts.join("\n\n").replace(/^<user_input[^>]*>([\s\S]*)<\/user_input>\s*$/, "$1");
}
