/** What a host asks of a Restate server, over HTTP. Each call has a time limit: a handler that fails is tried again, silently. */
import type { AgentMessage } from "turnloop";
import type { Approval, PendingApproval, Reply } from "./conversation.js";

const CALL_MS = 10_000;

export class Conversations {
  readonly #ingress: string;
  readonly #admin: string;

  constructor({ ingress, admin }: { ingress: string; admin: string }) {
    this.#ingress = ingress;
    this.#admin = admin;
  }

  /** Tells the server where the workers are. */
  async register(uri: string): Promise<void> {
    await post(`${this.#admin}/deployments`, { uri, force: true });
  }

  /** Sends a prompt; prompts to one conversation wait for each other. Gives the invocation. */
  prompt(conversation: string, text: string): Promise<string> {
    return this.#send(`Conversation/${conversation}/prompt`, text);
  }

  /** The reply to a prompt, when it is there. */
  async reply(invocation: string, timeoutMs: number): Promise<Reply> {
    return json(await fetch(`${this.#ingress}/restate/invocation/${invocation}/attach`, { signal: AbortSignal.timeout(timeoutMs) }));
  }

  /** Resolves when it is in the inbox: delivered once, also when no worker is up now. */
  async steer(conversation: string, text: string): Promise<{ delivered: Promise<unknown> }> {
    const invocation = await this.#send(`Inbox/${conversation}/push`, text);
    return { delivered: this.reply(invocation, CALL_MS) };
  }

  async cancel(invocation: string): Promise<void> {
    await request(`${this.#admin}/invocations/${invocation}/cancel`, { method: "PATCH" });
  }

  messages(conversation: string): Promise<AgentMessage[]> {
    return request(`${this.#ingress}/Conversation/${conversation}/messages`, { method: "POST" });
  }

  pending(conversation: string): Promise<PendingApproval[]> {
    return request(`${this.#ingress}/Conversation/${conversation}/pending`, { method: "POST" });
  }

  async decide(approval: string, decision: Approval): Promise<void> {
    await post(`${this.#ingress}/restate/awakeables/${approval}/resolve`, decision);
  }

  async #send(path: string, body: unknown): Promise<string> {
    const { invocationId } = await post<{ invocationId: string }>(`${this.#ingress}/${path}/send`, body);
    return invocationId;
  }
}

function post<T>(url: string, body: unknown): Promise<T> {
  return request(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
}

async function request<T>(url: string, init: RequestInit): Promise<T> {
  return json(await fetch(url, { ...init, signal: AbortSignal.timeout(CALL_MS) }));
}

async function json<T>(response: Response): Promise<T> {
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}: ${text}`);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}
