/** One conversation with an agent: what the user enters, whether a question, a word in between or a command. */
import { type Agent, type AgentEvent, type AgentTool, type RunOutcome, TurnLoopError, type UserMessage, userMessage } from "turnloop";
import type { Renderer } from "./render.js";
import { counted, shortened } from "./wording.js";

const MAX_QUOTED = 80;
const NOTHING_RUNS = "Nothing is running.";

export const COMMANDS = `/later TEXT       asks TEXT when the answer is complete
/stop             stops the answer; /retry answers again after a stop or a failure
/model [NAME]     shows the model, or takes another one from the next turn on
/tools            lists the tools; /tools off NAME and /tools on NAME count from the next turn on
/help, /quit`;

interface SessionOptions {
  canSwitchModel: boolean;
  onQuit(): void;
}

export class Session {
  readonly #agent: Agent;
  readonly #renderer: Renderer;
  readonly #options: SessionOptions;
  readonly #allTools: AgentTool[];
  /** Queued, and not yet in a request. */
  readonly #queued: UserMessage[] = [];

  constructor(agent: Agent, renderer: Renderer, options: SessionOptions) {
    this.#agent = agent;
    this.#renderer = renderer;
    this.#options = options;
    this.#allTools = [...agent.tools];
    agent.subscribe((event) => this.#hear(event));
  }

  get isRunning(): boolean {
    return this.#agent.isRunning;
  }

  whenIdle(): Promise<void> {
    return this.#agent.waitForIdle();
  }

  /** Resolves when the run that the line started has ended, with its outcome; with undefined if it started none. */
  async enter(line: string): Promise<RunOutcome | undefined> {
    const text = line.trim();
    const [, command, rest = ""] = /^\/(\w+)(?:\s+(.*))?$/s.exec(text) ?? [];
    if (command !== undefined) return this.#obey(command.toLowerCase(), rest.trim());
    if (text === "") return undefined;
    return this.#say(text, "steer");
  }

  /** False if nothing is running. */
  stop(): boolean {
    if (!this.#agent.isRunning) return false;
    this.#agent.abort(new Error("stopped by the user"));
    return true;
  }

  #obey(command: string, rest: string): Promise<RunOutcome | undefined> | undefined {
    switch (command) {
      case "later":
        if (rest !== "") return this.#say(rest, "followUp");
        return this.#notice("/later needs a text: /later and how does it end?");
      case "stop":
        return this.stop() ? undefined : this.#notice(NOTHING_RUNS);
      case "retry":
        return this.#retry();
      case "model":
        return this.#model(rest);
      case "tools":
        return this.#tools(rest.split(/\s+/));
      case "help":
        return this.#notice(COMMANDS);
      case "quit":
      case "exit":
        this.#options.onQuit();
        return undefined;
      default:
        return this.#notice(`There is no command /${command}; /help shows those there are.`);
    }
  }

  /** While a run is on the text is queued, otherwise it is a question. */
  #say(text: string, how: "steer" | "followUp"): Promise<RunOutcome> | undefined {
    const message = userMessage(text);
    if (!this.#agent.isRunning) return this.#run(() => this.#agent.prompt(message));
    this.#queued.push(message);
    this.#agent[how](message);
    return this.#notice(`» queued for ${how === "steer" ? "the next turn" : "later"}: ${quoted(message)}`);
  }

  async #retry(): Promise<RunOutcome | undefined> {
    if (this.#agent.isRunning) return this.#notice("An answer is running; /stop it first.");
    if (!this.#agent.lastError) return this.#notice("The last answer did not fail; there is nothing to retry.");
    try {
      return await this.#run(() => this.#agent.retry());
    } catch (error) {
      // stopped at the very end, behind a whole answer
      if (TurnLoopError.is(error)) return this.#notice(error.message);
      throw error;
    }
  }

  /** What was queued too late for the run gets a run of its own; after a stop or a failure it waits for the user. */
  async #run(start: () => ReturnType<Agent["prompt"]>): Promise<RunOutcome> {
    const waiting = (): number => this.#agent.steeringQueue.size + this.#agent.followUpQueue.size;
    let { outcome } = await start();
    while (outcome === "completed" && waiting() > 0) ({ outcome } = await this.#agent.continue());
    if (waiting() > 0) this.#notice(`${counted(waiting(), "queued message")} will go with the next question or /retry.`);
    return outcome;
  }

  #model(name: string): undefined {
    const { model } = this.#agent;
    if (name === "") return this.#notice(`The model is ${model.id}.`);
    if (!this.#options.canSwitchModel) return this.#notice(`There is only ${model.id} here; a server has more (--help).`);
    this.#agent.model = { ...model, id: name };
    return this.#notice(`The model is ${name} from the next turn on.`);
  }

  #tools([action = "", name = "", ...rest]: string[]): undefined {
    const { tools } = this.#agent;
    const wanted = this.#allTools.find((tool) => tool.name === name);
    if (action === "") {
      const rows = this.#allTools.map((tool) => `${tools.has(tool.name) ? "on " : "off"} ${tool.name}: ${tool.description}`);
      return this.#notice(rows.join("\n"));
    }
    if ((action !== "on" && action !== "off") || name === "" || rest.length > 0) {
      return this.#notice("Expected /tools, /tools on NAME or /tools off NAME.");
    }
    if (!wanted) return this.#notice(`There is no tool "${name}"; /tools lists those there are.`);
    if (action === "on") tools.replace(wanted);
    else tools.unregister(name);
    return this.#notice(`${name} is ${action} from the next turn on.`);
  }

  #hear(event: AgentEvent): void {
    if (event.type === "message_start" && event.message.role === "user") {
      const { timestamp, content } = event.message as UserMessage;
      const index = this.#queued.findIndex((message) => message.timestamp === timestamp && message.content === content);
      for (const message of index < 0 ? [] : this.#queued.splice(index, 1)) this.#notice(`» delivered: ${quoted(message)}`);
    }
    this.#renderer.show(event);
  }

  #notice(text: string): undefined {
    this.#renderer.notice(text);
  }
}

function quoted({ content }: UserMessage): string {
  return shortened(String(content).replace(/\s+/g, " "), MAX_QUOTED);
}
