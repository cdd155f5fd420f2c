// The extension of Pi and its forks: hands events to the Python entries beside it, and their answer to pi. Whatever goes
// wrong, it answers nothing: pi has no deadline for handlers, and ends at an unhandled rejection or stream error.
import type { BeforeAgentStartEventResult, ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import type { Socket } from "node:net";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

// By the link `app`, if an install made it: an upgrade turns that, and the directory of this version goes some time later.
const HERE = dirname(fileURLToPath(import.meta.url)).replace(/([\\/]app)-[0-9a-f]{12}(?=[\\/]hooks[\\/]pi$)/, "$1");
const DEADLINE_MS = 2000;
const STATUS_MS = 60_000; // after which the ages in the status line have changed
const MOST_CHARACTERS = 64 * 1024;
const STAMPED = ["hooks/pi_prompt.py", "package.json", "session_memory/__init__.py", "session_memory/awareness/events/main.py"];

// The tools whose calls the hook is asked about, with the input that says what they do.
const CALLS: Record<string, string> = { edit: "path", write: "path", bash: "command" };
const FILE_TOOLS = ["read", "edit", "write"]; // it is asked where the file is that a failed call of these meant

// Commands that may run git or a package manager, as `may_act` in session_memory/common/text/acting_commands.py.
const MAY_ACT = /git|\b(?:npm|pnpm|yarn|bun|npx|bunx|pip|pip3|pipx|uv|uvx|poetry|conda|cargo|go|gem|bundle|composer|brew|deno|dotnet) /;

type Event = Record<string, unknown>;

/** The extension. Its events state the program that runs it: Pi and omp may have one directory, and both then load one file. */
export default (pi: ExtensionAPI): void => {
	const runtime = "pi" in pi ? "omp" : "pi"; // omp hands its own exports over as `pi.pi`
	process.env.CLAUDE_PLUGIN_ROOT = dirname(dirname(HERE)); // what our skills' commands begin with, for pi's bash
	const origin = (name: string, ctx: ExtensionContext): Event => ({ hook_event_name: name, runtime, ...sessionOf(ctx) });
	let next: Entry | undefined;
	// Node forks all of pi to start a process, which takes longer than the hook itself: not while somebody waits for it.
	const startNext = (_event: unknown, ctx: ExtensionContext) => {
		if (ctx.hasUI && !isSubAgent(ctx) && (!next || next.isOver)) next = new Entry("pi_prompt.py");
	};
	let session: ExtensionContext | undefined;
	let refresh: NodeJS.Timeout | undefined; // set while the person wants a status line
	const showStatus = async (ctx: ExtensionContext) => {
		if (!refresh || isSubAgent(ctx)) return;
		try {
			const line = await new Entry("status_line.py").ask(() => origin("status_line", ctx));
			if (refresh) ctx.ui.setStatus("session-memory", line.trim() || undefined);
		} catch {
			// pi has left the session
		}
	};
	pi.on("session_start", (event, ctx) => {
		if (isSubAgent(ctx)) return;
		startNext(event, ctx);
		session = ctx;
		// Nobody waits for it: it starts what goes on without pi, and answers if the person wants a status line.
		void new Entry("pi_session_start.py")
			.ask(() => ({ ...origin("session_start", ctx), reason: event.reason ?? "startup" }))
			.then((answer) => {
				if (session !== ctx || !ctx.hasUI || !answer.includes('"statusLine"')) return;
				clearInterval(refresh);
				refresh = setInterval(() => void showStatus(ctx), STATUS_MS).unref();
				void showStatus(ctx);
			});
	});
	// omp has no such event: there an agent may go on after its end
	pi.on((runtime === "pi" ? "agent_settled" : "agent_end") as "agent_settled", (event, ctx) => {
		startNext(event, ctx);
		void showStatus(ctx);
	});
	pi.on("before_agent_start", async (event, ctx) => {
		if (isSubAgent(ctx)) return undefined;
		if (runtime !== "pi") process.env[`${runtime.toUpperCase()}_SESSION_ID`] = ctx.sessionManager.getSessionId();
		if (next && !next.isCurrent) next.kill(); // upgraded since: half of it would be the old version
		const entry = next && !next.isOver ? next : new Entry("pi_prompt.py");
		next = undefined;
		const message = asMessage(await entry.ask(() => ({ ...origin("before_agent_start", ctx), prompt: event.prompt })));
		setTimeout(() => void showStatus(ctx), 0); // once pi has the answer
		return message;
	});
	const told = new Map<string, string[]>(); // what goes with the results of calls, by their ids
	const callers = new Map<string, string>(); // of calls that a tool made, as codemode does: the model sees its result alone
	const seenAs = (id: string): string => (callers.has(id) ? seenAs(callers.get(id) as string) : id);
	const tell = (id: string, text: string) => void told.set(seenAs(id), [...(told.get(seenAs(id)) ?? []), text]);
	pi.on("tool_call", async (event, ctx) => {
		const caller = (event as unknown as Event).parentToolCallId;
		if (typeof caller === "string") callers.set(event.toolCallId, caller);
		const given = (event.input ?? {}) as Event; // a call is blocked if its handler throws
		const key = CALLS[event.toolName];
		// an edit of omp may be of several files, and a command may have a directory of its own
		const [paths, cwd] = [Array.isArray(given.paths) ? given.paths : undefined, given.cwd];
		const argument = key && (given[key] ?? paths?.[0]);
		if (typeof argument !== "string" || (key === "command" && !MAY_ACT.test(argument))) return undefined;
		const call = { tool_name: event.toolName, tool_input: { [key]: argument, paths, cwd }, tool_use_id: event.toolCallId };
		const entry = new Entry("pre_tool_use.py");
		const { held, text } = asCallAnswer(await entry.ask(() => ({ ...origin("tool_call", ctx), ...call, can_ask: ctx.hasUI })));
		if (held && !(await isAllowed(held, ctx))) return { block: true, reason: text ? `${held}\n\n${text}` : held };
		if (text) {
			tell(event.toolCallId, text);
			void showStatus(ctx);
		}
		return undefined;
	});
	pi.on("tool_result", async (event, ctx) => {
		const path = FILE_TOOLS.includes(event.toolName) && (event.input as Event | undefined)?.path; // none of a patch of several files
		if (event.isError && typeof path === "string" && !existsSync(resolve(ctx.cwd, path))) {
			const call = { tool_name: event.toolName, tool_input: { path }, tool_use_id: event.toolCallId };
			const answer = await new Entry("post_tool_use_failure.py").ask(() => ({ ...origin("tool_result", ctx), ...call }));
			const { text } = asCallAnswer(answer);
			if (text) tell(event.toolCallId, text);
		}
		const texts = callers.delete(event.toolCallId) ? [] : (told.get(event.toolCallId) ?? []);
		if (texts.length) told.delete(event.toolCallId);
		const added = texts.map((text) => ({ type: "text" as const, text }));
		return added.length ? { content: [...event.content, ...added] } : undefined;
	});
	pi.on("session_before_compact", async (event, ctx) => {
		await new Entry("pi_archive.py").ask(() => ({ ...origin("session_before_compact", ctx), reason: event.reason }));
	});
	pi.on("session_shutdown", async (event, ctx) => {
		if (isSubAgent(ctx)) return;
		next?.kill();
		clearInterval(refresh);
		session = refresh = undefined;
		await new Entry("pi_archive.py").ask(() => ({ ...origin("session_shutdown", ctx), reason: event.reason }));
	});
};

/** The session of an event. Paths may be relative to the directory that pi was started in. */
function sessionOf(ctx: ExtensionContext): Event {
	const file = ctx.sessionManager.getSessionFile();
	const directory = ctx.sessionManager.getSessionDir();
	const session = {
		session_id: ctx.sessionManager.getSessionId(),
		transcript_path: file ? resolve(file) : null,
		session_dir: directory ? resolve(directory) : null,
		cwd: ctx.cwd,
	};
	if (!file || !isSubAgent(ctx)) return session;
	const main = `${dirname(resolve(file))}.jsonl`;
	const id = basename(main, ".jsonl").replace(/^[^_]*_/, "");
	return { ...session, session_id: id, transcript_path: main, session_dir: dirname(main), agent_id: basename(file, ".jsonl") };
}

/** Whether a session is a sub-agent's: omp keeps that in a folder beside the file of the main session. */
function isSubAgent(ctx: ExtensionContext): boolean {
	const file = ctx.sessionManager.getSessionFile();
	return !!file && existsSync(`${dirname(resolve(file))}.jsonl`);
}

/** A run of a Python entry, which waits for its event. It may be over before: there is none, it failed, it was killed. */
class Entry {
	#child: ChildProcess | undefined;
	#stamp = stamp();
	#printed = "";
	#answer: string | undefined;
	#onAnswer = (_answer: string) => {};

	constructor(script: string) {
		try {
			const path = join(HERE, "..", script);
			if (!existsSync(path)) throw new Error(`${path}: there is no such entry`);
			const child = spawn(interpreter(), ["-I", "-S", path], {
				detached: true, // a process group of its own, to be killed as a whole
				stdio: ["pipe", "pipe", "ignore"],
				windowsHide: true,
			});
			this.#child = child;
			child.on("error", () => this.kill());
			child.on("close", (code) => this.#end(code === 0 ? this.#printed : ""));
			child.stdin?.on("error", () => {}); // EPIPE: it ended before it read
			child.stdout?.on("error", () => this.kill());
			child.stdout?.setEncoding("utf8").on("data", (text: string) => {
				this.#printed += text;
				if (this.#printed.length > MOST_CHARACTERS) this.kill();
			});
			// in bun, which omp runs on, stdin has no such method
			for (const handle of [child, child.stdin as Socket | null, child.stdout as Socket | null]) handle?.unref?.();
		} catch {
			this.kill();
		}
	}

	/** Whether the program is still the one that it was started from. */
	get isCurrent(): boolean {
		return this.#stamp === stamp();
	}

	get isOver(): boolean {
		return this.#answer !== undefined;
	}

	/** What it prints on the event's JSON; "" if it fails or takes too long, and then it is killed. */
	ask(event: () => Event): Promise<string> {
		return new Promise((settle) => {
			const timer = setTimeout(() => this.kill(), DEADLINE_MS);
			this.#onAnswer = (answer) => {
				clearTimeout(timer);
				settle(answer);
			};
			if (this.#answer !== undefined) return this.#onAnswer(this.#answer);
			try {
				this.#child?.stdin?.end(JSON.stringify(event()));
			} catch {
				this.kill();
			}
		});
	}

	/** Ends it and all that it started, and lets go of its pipes, so that nothing keeps pi from ending. */
	kill(): void {
		if (this.isOver) return;
		this.#end("");
		const child = this.#child;
		try {
			if (child?.pid) process.kill(-child.pid, "SIGKILL");
		} catch {
			child?.kill("SIGKILL"); // it leads no group: on Windows, or as it is gone
		}
		child?.stdin?.destroy(); // only now: it would take the end of its stdin for an event that is no JSON
		child?.stdout?.destroy();
	}

	#end(answer: string): void {
		if (this.#answer !== undefined) return;
		this.#answer = answer;
		this.#onAnswer(answer);
	}
}

/** What differs in another version of the program: an install writes all files anew, a checkout those that changed. */
function stamp(): string {
	try {
		const root = dirname(dirname(HERE));
		const found = STAMPED.map((file) => statSync(join(root, file), { throwIfNoEntry: false }));
		return found.map((status) => `${status?.ino} ${status?.mtimeMs}`).join();
	} catch {
		return ""; // as where it may not be asked for: then it counts as unchanged
	}
}

/** The Python that install found, as it wrote it beside this file, else the one on the PATH. */
function interpreter(): string {
	const marker = join(HERE, "python");
	return process.env.SESSION_MEMORY_PYTHON || (existsSync(marker) && readFileSync(marker, "utf8").trim()) || "python3";
}

/** Whether the user lets a call be made that is held back. Where asking fails it is: pi blocks a call whose handler throws. */
async function isAllowed(held: string, ctx: ExtensionContext): Promise<boolean> {
	try {
		return await ctx.ui.confirm("Another session is at work there", `${held}. Go on?`);
	} catch {
		return true;
	}
}

/** Why a call is held back, and what goes with its result; "" for none. */
function asCallAnswer(answer: string): { held: string; text: string } {
	let held: unknown;
	try {
		held = JSON.parse(answer).held;
	} catch {
		// nothing to tell, or no JSON
	}
	const content = asMessage(answer)?.message?.content;
	return { held: typeof held === "string" ? held : "", text: typeof content === "string" ? content : "" };
}

/** The message in an entry's answer, if that is one. */
function asMessage(answer: string): BeforeAgentStartEventResult | undefined {
	try {
		const { customType, content, display } = JSON.parse(answer).message;
		const isMessage = typeof customType === "string" && typeof content === "string";
		return isMessage ? { message: { customType, content, display: display === true } } : undefined;
	} catch {
		return undefined; // nothing to tell, or no JSON
	}
}
