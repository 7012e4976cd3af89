import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type {
  FromGatewayProcess,
  GatewayProcessState,
  ReachedDevice,
  RelayTicket,
  ToGatewayProcess,
} from "../protocol.ts";
import { AgentClient } from "./AgentClient.ts";
import { ServiceClient } from "./ServiceClient.ts";
import { SshEntry } from "./SshEntry.ts";
import { WebTerminal } from "./WebTerminal.ts";

/** Interval, in milliseconds, between the messages that report a responsive event loop. */
const ALIVE_INTERVAL = 1_000;

/**
 * Maximum time, in milliseconds, to close the sessions before this process ends. The service kills the process if it
 * takes much longer.
 */
const STOPPING = 8_000;

/** Interval between checks of this process's memory, in milliseconds. */
const MEMORY_CHECK_INTERVAL = 250;

let service: ServiceClient | undefined;
let entry: SshEntry | undefined;
const terminals = new Map<RelayTicket, WebTerminal>();

// Exit when the service has ended, because without the service no login can be allowed or recorded.
process.on("disconnect", () => process.exit(1));
// Ctrl+C in a terminal sends a signal to all processes of the group. Ignore the signal here, because the service ends
// this process.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});

process.on("message", (message: ToGatewayProcess) => {
  if (message.kind === "start") void begin(new ServiceClient(message.start));
  else if (service !== undefined) handleMessage(service, message);
});

async function begin(started: ServiceClient): Promise<void> {
  service = started;
  process.on("uncaughtException", (error) => {
    started.log.fatal({ err: error }, "the gateway process has failed");
    process.exit(1);
  });
  try {
    const { entry: place } = started.start;
    entry = place && new SshEntry(started, place.hostKey);
    const port = place && (await entry?.listen(place));
    started.send({ kind: "ready", port });
    const most = started.start.settings.sshMemory * 1024 * 1024;
    setInterval(() => started.send({ kind: "alive", state: stateOf(started) }), ALIVE_INTERVAL);
    setInterval(() => {
      const { heapUsed, external } = process.memoryUsage();
      if (heapUsed + external > most / 2) entry?.relieve(most / 4);
    }, MEMORY_CHECK_INTERVAL);
  } catch (error) {
    process.send?.({ kind: "failed", reason: (error as Error).message } satisfies FromGatewayProcess, () =>
      process.exit(1),
    );
  }
}

const stateOf = ({ sessionWriter }: ServiceClient): GatewayProcessState => ({
  memory: process.memoryUsage.rss(),
  waiting: sessionWriter.waiting,
  refusedExchanges: entry?.takeRefusedExchanges() ?? 0,
  lost: sessionWriter.takeLost(),
});

function handleMessage(to: ServiceClient, message: Exclude<ToGatewayProcess, { kind: "start" }>): void {
  if (message.kind === "answer" || message.kind === "failure") to.settle(message);
  else if (message.kind === "end") to.logins.get(message.uid)?.end(message.reason);
  else if (message.kind === "prove") void prove(to, message);
  else if (message.kind === "terminal") void openTerminal(to, message);
  else if (message.kind === "resize") terminals.get(message.ticket)?.resize(message.size);
  else if (message.kind === "leave") terminals.get(message.ticket)?.leave();
  else if (message.kind === "drain") drain(to, message.notice);
  else void stop(to);
}

async function openTerminal(
  to: ServiceClient,
  { ticket, requested }: Extract<ToGatewayProcess, { kind: "terminal" }>,
): Promise<void> {
  let socket: Socket;
  try {
    socket = await to.connect(ticket);
  } catch (error) {
    to.log.error({ err: error }, "cannot connect a web terminal");
    return;
  }
  const terminal = new WebTerminal(to, requested, socket);
  terminals.set(ticket, terminal);
  socket.on("close", () => terminals.delete(ticket));
  await terminal.open();
}

/** Requires an agent to prove that it has the private key of its device. */
async function prove(to: ServiceClient, { ticket, hostKey }: ReachedDevice): Promise<void> {
  let agent: AgentClient | undefined;
  try {
    agent = new AgentClient({ stream: await to.connect(ticket), hostKey, username: "gatehouse" });
    const failure = await agent.handshake().then(
      () => undefined,
      (error: Error) => error.message,
    );
    await to.call("proved", { ticket, failure });
  } catch (error) {
    to.log.error({ err: error }, "cannot report the proof of an agent's private key");
  } finally {
    // End the connection only after the report, because a connection that ends earlier is treated as a failed proof.
    agent?.end();
  }
}

function drain(of: ServiceClient, notice: string): void {
  entry?.stop();
  for (const login of of.logins.values()) login.notify(notice);
}

async function stop(of: ServiceClient): Promise<void> {
  entry?.stop();
  // Do not wait longer than `STOPPING`, because the sessions cannot be closed during a database outage.
  await Promise.race([of.endLogins("the service is being stopped"), sleep(STOPPING)]);
  of.sessionWriter.abandon();
  process.exit(0);
}
