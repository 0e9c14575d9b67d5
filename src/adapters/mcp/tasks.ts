/** Tools that a server runs as tasks only, through what SDK 1.24 and later call `client.experimental.tasks` (SPEC 12.3). */
import { abortError } from "../shared/call.js";
import { anyResult, type McpRequestOptions } from "./client.js";

interface McpTasks {
  callToolStream(params: object, resultSchema: unknown, options: object): AsyncIterable<TaskMessage>;
  getTaskResult(taskId: string, resultSchema: unknown, options: object): Promise<unknown>;
  cancelTask(taskId: string): Promise<unknown>;
}

interface TaskMessage {
  type: string;
  task?: { taskId: string; status: string; statusMessage?: string };
  result?: unknown;
  error?: unknown;
}

/** Undefined for a client without them: the server then says itself what it misses. */
export function tasksOf(client: { experimental?: unknown } | object): McpTasks | undefined {
  const tasks = Object(Object(client).experimental).tasks as Partial<McpTasks> | undefined;
  return typeof tasks?.callToolStream === "function" ? (tasks as McpTasks) : undefined;
}

/** The result of a call that the server makes a task of. An abort cancels the task and does not wait for the next poll. */
export async function callAsTask(
  tasks: McpTasks,
  params: object,
  options: McpRequestOptions,
  onStatus: (message: string) => void,
): Promise<unknown> {
  const { signal } = options;
  let taskId: string | undefined;
  const follow = async (): Promise<unknown> => {
    let shown: string | undefined;
    for await (const { type, task, result, error } of tasks.callToolStream(params, anyResult, { ...options, task: {} })) {
      taskId ??= task?.taskId;
      if (type === "result") return result;
      if (type === "error") throw error;
      if (type !== "taskStatus" || !task) continue;
      // the stream would only say that it failed, the result says why
      if (task.status === "failed") return await tasks.getTaskResult(task.taskId, anyResult, options);
      if (task.statusMessage && task.statusMessage !== shown) {
        shown = task.statusMessage;
        onStatus(shown);
      }
    }
    throw new Error("The task ended without a result.");
  };
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => {
      if (taskId !== undefined) tasks.cancelTask(taskId).catch(() => {});
      reject(abortError(signal));
    });
  });
  return await Promise.race([follow(), aborted]);
}
