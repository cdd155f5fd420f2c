// The plugin of Kilo, a fork of OpenCode: OpenCode's, with Kilo's name.
import { pluginOf } from "../opencode/index.js";

export const SessionMemory = pluginOf("kilo");
