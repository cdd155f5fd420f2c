#!/usr/bin/env bash
# A person has comments in the settings of five agents: above the MCP servers, in the server `docs`, and behind it. All five read them.
# Then the agent's own command adds a server `shop`; in Hermes, it sets a number elsewhere in the file.
# Guess: the comments stay, since these programs accept them, and Hermes writes with ruamel.yaml, which is made to keep comments.
# Seen: only Gemini CLI 0.61.0 keeps all of them in place. Qwen Code 0.24.4 moves the comment behind `docs` to `shop`. Codex 0.171.0 drops
# those of all servers and keeps those of other tables. Copilot CLI 1.0.102 and Hermes 0.19.0 drop every comment in the file.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
export HOME=$directory
npm install --silent --no-audit --no-fund @google/gemini-cli@0.61.0 @qwen-code/qwen-code@0.24.4 @openai/codex@0.171.0 @github/copilot@1.0.102 >/dev/null
python3 -m venv env && env/bin/pip install --quiet --disable-pip-version-check hermes-agent==0.19.0
mkdir .gemini .qwen .codex .copilot .hermes
cat >.gemini/settings.json <<'END'
{
  // about all servers
  "mcpServers": {
    // about docs
    "docs": {"command": "docs", "args": []} // behind docs
  }
}
END
cp .gemini/settings.json .qwen/settings.json
cp .gemini/settings.json .copilot/mcp-config.json
cat >.codex/config.toml <<'END'
# about all servers
[mcp_servers.docs]
# about docs
command = "docs" # behind docs

[tui]
notifications = false # elsewhere
END
cat >.hermes/config.yaml <<'END'
# about all servers
mcp_servers:
  # about docs
  docs: {command: docs} # behind docs

terminal:
  timeout: 60 # elsewhere
END
run() { env -i HOME="$HOME" PATH="$PWD/node_modules/.bin:$PWD/env/bin:$PATH" "$@" </dev/null >>log 2>&1 || { cat log; exit 1; }; }
run gemini mcp add --scope user shop shop
run qwen mcp add --scope user shop shop
run codex mcp add shop -- shop
run copilot mcp add shop -- shop
run hermes config set terminal.timeout 90
for file in .gemini/settings.json .qwen/settings.json .codex/config.toml .copilot/mcp-config.json .hermes/config.yaml; do
	awk -v file="$file" '
		match($0, /"?(docs|shop)"?[]:]/) { server = $0 ~ /shop/ ? "shop" : "docs" }
		match($0, /(#|\/\/) .*/) {
			comment = substr($0, RSTART)
			sub(/^(#|\/\/) /, "", comment)
			kept = kept ", " comment (comment ~ /^behind/ ? " (now behind " server ")" : "")
		}
		END { print file ": " (kept ? substr(kept, 3) : "none") }
	' "$file"
done | tee seen
diff seen - <<'END'
.gemini/settings.json: about all servers, about docs, behind docs (now behind docs)
.qwen/settings.json: about all servers, about docs, behind docs (now behind shop)
.codex/config.toml: elsewhere
.copilot/mcp-config.json: none
.hermes/config.yaml: none
END
