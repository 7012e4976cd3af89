import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { constants as system } from "node:os";
import { delimiter, join } from "node:path";

/** The signals that end a process by default. */
export const ENDING_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * The running child processes, each with a signal. If this process exits before the child process, it sends the signal
 * to the child's process group.
 */
const running = new Map<ChildProcess, NodeJS.Signals>();

/**
 * Starts a command in a separate process group, so that Ctrl-C in the terminal signals only this process. If this
 * process receives a signal without a handler of its own, this process exits and ends the command.
 * @param last the signal that this process sends to the command's process group if it exits before the command
 */
export function startInGroup(
  command: string,
  args: readonly string[],
  options: SpawnOptions,
  last: NodeJS.Signals,
): ChildProcess {
  const child = spawn(command, args, { ...options, detached: true });
  if (running.size === 0) {
    process.on("exit", endAll);
    for (const name of ENDING_SIGNALS) process.on(name, exitUnlessHandled);
  }
  running.set(child, last);
  const ended = (): void => {
    if (!running.delete(child) || running.size > 0) return;
    process.off("exit", endAll);
    for (const name of ENDING_SIGNALS) process.off(name, exitUnlessHandled);
  };
  child.once("error", ended).once("exit", ended);
  return child;
}

/** Sends a signal to a command that {@link startInGroup} started, and to its descendants. */
export function signalGroup({ pid }: ChildProcess, name: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, name);
  } catch (error) {
    // Some systems return EPERM for a process group that contains only dead processes.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}

function endAll(): void {
  for (const [child, last] of running) signalGroup(child, last);
}

function exitUnlessHandled(name: NodeJS.Signals): void {
  if (process.listenerCount(name) === 1) process.exit(128 + system.signals[name]);
}

/**
 * Searches the directories of PATH for a command. Returns its path, or undefined if no directory contains the command.
 */
export function findOnPath(command: string, env: NodeJS.ProcessEnv): string | undefined {
  const endings = process.platform === "win32" ? [".exe", ".cmd"] : [""];
  const folders = (env.PATH ?? "").split(delimiter).filter((entry) => entry !== "");
  return folders
    .flatMap((folder) => endings.map((ending) => join(folder, command + ending)))
    .find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
