import { execFile } from "node:child_process";
import type { FastifyBaseLogger } from "fastify";

/**
 * Reports to systemd that the service listens and, as often as its unit's `WatchdogSec` asks for, that its event loop
 * turns. Without a unit of `Type=notify` it does nothing.
 * @returns a function that reports the end
 */
export function reportToSystemd(log: FastifyBaseLogger, environment = process.env): () => void {
  const { NOTIFY_SOCKET, WATCHDOG_USEC } = environment;
  if (!NOTIFY_SOCKET) return () => {};
  let hasFailed = false;
  // Node has no datagram sockets of the kind that systemd listens on.
  const notify = (...states: readonly string[]) => {
    execFile("systemd-notify", states, { env: environment }, (error) => {
      if (error === null || hasFailed) return;
      hasFailed = true;
      log.error({ err: error }, "systemd-notify has failed: the unit needs it, or Type=exec");
    });
  };
  notify("--ready");
  const interval = Number(WATCHDOG_USEC) / 1000 / 3;
  const timer = interval > 0 ? setInterval(() => notify("WATCHDOG=1"), interval).unref() : undefined;
  return () => {
    clearInterval(timer);
    notify("STOPPING=1");
  };
}
