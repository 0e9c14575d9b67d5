import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { hasEnded } from "./restate-server.js";

export interface WorkerProcess {
  /** Ends it as a crash would. */
  kill(): Promise<void>;
}

/** Starts a worker's file on this port; resolves when it serves. `onLine` gets what else it says. */
export async function startWorkerProcess(
  file: URL,
  port: number,
  environment: Record<string, string> = {},
  onLine: (line: string) => void = () => {},
): Promise<WorkerProcess> {
  const child: ChildProcess = spawn(process.execPath, [fileURLToPath(file)], {
    env: { RESTATE_LOGGING: "ERROR", ...process.env, ...environment, PORT: String(port) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const kill = async (): Promise<void> => {
    const ended = hasEnded(child);
    child.kill("SIGKILL");
    await ended;
    process.off("exit", killNow);
  };
  const killNow = (): void => void child.kill("SIGKILL");
  process.once("exit", killNow);
  process.setMaxListeners(0);
  await new Promise<void>((resolve, reject) => {
    let rest = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) line.startsWith("serving on ") ? resolve() : onLine(line);
    });
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`The worker ended with ${code} before it served.`)));
  });
  return { kill };
}
